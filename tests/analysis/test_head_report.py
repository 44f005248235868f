"""The head report against plain loops over the maps, its resumption, and the heads that were set by hand."""

import csv
import math
import os
import random
from dataclasses import replace

import numpy as np
import pyarrow.parquet
import pytest
import torch

from recipes.handmade_models import (
    INDUCTION,
    LETTERS,
    PREVIOUS_TOKEN,
    _attention,
    _of_head,
    induction_by_hand,
)
from tests import tiny
from tests.checkpoints import folders
from vizformer import load
from vizformer.analysis import head_maps, kinds, logit_attribution
from vizformer.analysis.corpus_heads import Corpus, bundled_corpus, head_report, read_texts, worker
from vizformer.analysis.corpus_heads.corpus import MOST_CHARACTERS
from vizformer.analysis.corpus_heads.measures import CROSS, MEASURES, TARGETS
from vizformer.analysis.corpus_heads.one_text import head_on_passage, is_delimiter, read_tokens, run
from vizformer.analysis.corpus_heads.report import COLUMNS, read_report, write_report
from vizformer.analysis.corpus_heads.running import GROUP
from vizformer.analysis.corpus_heads.sums import CORNER
from vizformer.analysis.masks import rerun
from vizformer.errors import VizformerError
from vizformer.jobs import worker as jobs

TEXTS = (
    "cats and dogs, and cats",
    "I have a cat.",
    "猫和狗",
    "The cats are here. The cats",
    "dogs dogs dogs",
    "a",
    "她有两只狗。她有两只狗。",
)
PAIRS = tuple(f"{text}\t{other}" for text, other in zip(TEXTS, reversed(TEXTS), strict=True))
MODELS = {
    "decoder-only": {},
    "decoder-only, window": {"sliding_window": 3},
    "decoder-only, llama": tiny.LLAMA,
    "decoder-only, alibi": tiny.ALIBI,
    "encoder-only": {},
    "encoder-only, bert": tiny.BERT,
    "encoder-decoder": {},
    "encoder-decoder, t5": tiny.T5,
}


def made(name):
    return tiny.checkpoint(name.partition(",")[0], vocab_size=320, max_positions=64, **MODELS[name])


def corpus_of(checkpoint):
    return Corpus.of(PAIRS if checkpoint.model.config.architecture == "encoder-decoder" else TEXTS)


def by_loops(checkpoint, corpus):
    """kind -> measure -> per text [n_layers, n_heads], cell by cell from the maps; and rows and hits of targets."""
    found = {}
    for passage in corpus.passages:
        read = read_tokens(checkpoint, passage)
        trace = run(checkpoint, read)
        for kind in kinds(trace):
            maps, cross = head_maps(trace, kind), kind == "cross"
            queries, keys = read["decoder" if cross else kind], read["encoder" if cross else kind]
            values = {name: np.full(maps.weights.shape[:2], np.nan) for name in MEASURES}
            rows = {name: np.zeros(maps.weights.shape[:2], int) for name in TARGETS}
            hits = {name: np.zeros(maps.weights.shape[:2], int) for name in TARGETS}
            for layer, head in np.ndindex(*maps.weights.shape[:2]):
                pattern, sees = maps.weights[layer, head].astype(float), maps.reasons[layer] == 0
                shares, entropies, distances = {name: [] for name in TARGETS}, [], []
                for i, query in enumerate(queries):
                    visible = [j for j in range(len(keys)) if sees[i, j]]
                    for name in TARGETS:
                        target = [j for j in visible if is_target(name, i, j, query, keys, cross)]
                        if target and len(target) < len(visible):
                            shares[name].append(sum(pattern[i, j] for j in target))
                    if len(visible) > 1:
                        entropies.append(
                            -sum(pattern[i, j] * math.log(pattern[i, j]) for j in visible if pattern[i, j] > 0)
                        )
                        distances.append(sum(pattern[i, j] * abs(i - j) for j in visible))
                for name in TARGETS:
                    rows[name][layer, head] = len(shares[name])
                    hits[name][layer, head] = sum(share > 0.5 for share in shares[name])
                    if shares[name]:
                        values[name][layer, head] = np.mean(shares[name])
                if entropies:
                    values["entropy"][layer, head] = np.mean(entropies)
                    values["distance"][layer, head] = np.nan if cross else np.mean(distances)
                singular = np.linalg.svd(pattern, compute_uv=False)
                values["effective_rank"][layer, head] = (singular**2).sum() ** 2 / (singular**4).sum()
            kept = found.setdefault(kind, ([], [], []))
            for part, one in zip(kept, (values, rows, hits), strict=True):
                part.append(one)
    return found


def is_target(name, i, j, query, keys, cross):
    if name == "first":
        return j == 0
    if name == "delimiter":
        return j > 0 and is_delimiter(keys[j])
    if name == "same_token":
        return keys[j].id == query.id
    if cross:
        return False
    return {
        "diagonal": j == i,
        "previous": j == i - 1,
        "next": j == i + 1,
        "duplicate_token": j < i and keys[j].id == query.id,
        "induction": 0 < j < i and keys[j - 1].id == query.id,
    }[name]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sample(3)
def test_every_measure_is_what_plain_loops_over_the_maps_give(name):
    checkpoint = made(name)
    corpus = corpus_of(checkpoint)
    report = head_report(checkpoint, corpus)
    for kind, (values, rows, hits) in by_loops(checkpoint, corpus).items():
        found = report.kinds[kind]
        for measure in MEASURES if kind != "cross" else CROSS:
            each = np.array([one[measure] for one in values])
            known = np.isfinite(each).any(0)
            assert np.array_equal(np.isfinite(each).sum(0), found.texts[measure])
            each[:, ~known] = 0
            expected = np.where(known, np.nanmean(each, axis=0), np.nan)
            # float32 maps; the rank squares them twice
            assert np.allclose(found.mean[measure], expected, atol=2e-5, rtol=1e-4, equal_nan=True), measure
            spread = np.where(known, np.nanstd(each, axis=0), np.nan)
            assert np.allclose(found.spread[measure], spread, atol=2e-4, equal_nan=True), measure
            strong = each if measure not in ("entropy", "effective_rank") else -each
            for place in np.ndindex(*found.shape):
                if known[place]:
                    column = strong[(slice(None), *place)]
                    assert column[found.strongest[measure][place]] == pytest.approx(np.nanmax(column), abs=2e-5)
        for target in TARGETS:
            total = sum(one[target] for one in rows)
            assert np.array_equal(found.rows[target], total)
            said = sum(one[target] for one in hits)
            assert np.allclose(found.most[target][total > 0], (said / np.maximum(total, 1))[total > 0])


@pytest.mark.parametrize("name", ["decoder-only", "encoder-decoder"])
def test_the_cells_of_a_target_are_marked_on_a_passage(name):
    checkpoint = made(name)
    passage = corpus_of(checkpoint).passages[0]
    for kind in ("decoder",) if name == "decoder-only" else ("decoder", "cross"):
        for measure in ("same_token", "previous", "induction", "entropy"):
            found = head_on_passage(checkpoint, passage, kind, 0, 1, measure)
            seen = found.reasons == 0
            for (i, j), marked in np.ndenumerate(found.marked):
                if measure == "entropy":  # no target: the strongest key
                    expected = j == found.pattern[i].argmax()
                else:
                    expected = is_target(measure, i, j, found.queries[i], found.keys, kind == "cross")
                assert marked == (expected and seen[i, j]), (kind, measure, i, j)


def test_positions_and_redundancy_are_what_plain_loops_give():
    checkpoint = made("decoder-only")
    corpus = corpus_of(checkpoint)
    report = head_report(checkpoint, corpus).kinds["decoder"]
    n_layers, n_heads = report.shape
    cells, maps, counted, choice = {}, {}, {}, 0
    for text, passage in enumerate(corpus.passages):
        read = read_tokens(checkpoint, passage)
        weights = head_maps(run(checkpoint, read), "decoder").weights.astype(float)
        n = min(weights.shape[-1], CORNER)
        sink = [j == 0 or token.special for j, token in enumerate(read["decoder"])]
        for number, pattern in enumerate(weights.reshape(-1, *weights.shape[2:])):
            for i in range(n):
                others = [j for j in range(i + 1) if not sink[j]]
                left = sum(pattern[i, j] for j in others)
                choice += number == 0 and len(others) > 1
                if len(others) > 1 and left >= 0.1:
                    counted.setdefault(number, set()).add((text, i))
                    for j in others:
                        maps[number, text, i, j] = pattern[i, j] / left - 1 / len(others)
                for j in range(i + 1):
                    cells.setdefault((number, i, j), []).append(pattern[i, j] - 1 / (i + 1))
    for number in range(n_layers * n_heads):
        several = [np.array(values) for (whose, *_), values in cells.items() if whose == number and len(values) > 1]
        within = sum(len(values) * values.var(ddof=1) for values in several)
        share = max(0, 1 - within / sum((values**2).sum() for values in several))
        assert report.mean["positional"].flat[number] == pytest.approx(share, abs=1e-4)
        assert report.mean["content"].flat[number] == pytest.approx(1 - share, abs=1e-4)
        assert report.mean["beside_sinks"].flat[number] == pytest.approx(len(counted[number]) / choice)
    others = np.full((n_layers * n_heads, n_layers * n_heads), -9.0)
    for a, b in np.ndindex(others.shape):
        both = counted[a] & counted[b]
        first, second = (
            np.array([maps[key] for key in sorted(maps) if key[0] == one and key[1:3] in both]) for one in (a, b)
        )
        if a != b and report.sign.flat[a] * report.sign.flat[b] >= 0:
            others[a, b] = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert np.array_equal(report.nearest.ravel(), others.argmax(1))
    assert np.allclose(report.mean["redundancy"].ravel(), others.max(1), atol=1e-5)


@pytest.fixture(scope="module")
def planted():
    """Heads (1, 0) and (1, 1) look where the induction head looks, and anti-copy and copy; four others mostly rest.

    Heads 2 and 3 of layer 0 leave some of their attention beside the start mark, (0, 0) and (1, 3) hardly any.
    """
    checkpoint = induction_by_hand()
    first, second = _attention(checkpoint.model)
    letters = slice(
        48, 48 + checkpoint.tokenizer.vocab_size
    )  # which numbers of the stream say the token; <s> is the first
    for attention, head, rest in ((first, 2, 4.5), (first, 3, 4.5), (first, 0, 12.0), (second, 3, 12.0)):
        queries, keys = _of_head(attention, head, "W_Q"), _of_head(attention, head, "W_K")
        queries[:, 0] = keys[:, 0] = 0
        queries[letters, 0], keys[letters.start, 0] = 1, rest
    for head, sign in ((0, -1), (1, 1)):
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            own = _of_head(second, INDUCTION[1], name)
            _of_head(second, head, name).copy_(sign * own if name == "W_O" else own)
    rng = random.Random(4)
    return head_report(checkpoint, Corpus.of(["".join(rng.choices(LETTERS[:6], k=30)) for __ in range(8)]))


def test_heads_that_look_alike_and_do_the_opposite_are_not_redundant(planted):
    found = planted.kinds["decoder"]
    assert found.sign[1, :3].tolist() == [-1, 1, 1]
    assert found.mean["redundancy"][1, 1:3] == pytest.approx(1.0)
    assert found.nearest[1, 1:3].tolist() == [6, 5]
    assert not found.mean["redundancy"][1, 0] > 0.5
    rows = {(row["layer"], row["head"]): row for row in planted.rows()}
    assert [rows[1, head]["ov_sign"] for head in range(3)] == ["anti-copying", "copying", "copying"]
    assert rows[1, 0]["copying"] < -0.9


def test_heads_that_rest_on_the_same_sink_are_not_alike_by_it(planted):
    found = planted.kinds["decoder"]
    assert found.mean["first"][[0, 0, 0, 1], [0, 2, 3, 3]].min() > 0.6
    assert not (found.mean["redundancy"][0, 2:] > 0.5).any()  # each looks elsewhere beside it
    assert found.mean["beside_sinks"][0, 2:].min() > 0.5
    for layer, head in ((0, 0), (1, 3)):  # too little is left
        assert found.mean["beside_sinks"][layer, head] < 0.1
        assert found.nearest[layer, head] == -1
        assert np.isnan(found.mean["redundancy"][layer, head])


def test_copying_is_unknown_where_a_kind_of_attention_has_no_logits():
    report = head_report(made("encoder-decoder"), Corpus.of(PAIRS))
    assert np.isfinite(report.kinds["decoder"].mean["copying"]).all()
    for kind in ("encoder", "cross"):
        assert np.isnan(report.kinds[kind].mean["copying"]).all()
        assert not report.kinds[kind].sign.any()


@pytest.fixture(scope="module")
def judged():
    rng = random.Random(4)
    texts = ["".join(rng.choices(LETTERS[:10], k=30)) for __ in range(24)]
    return head_report(induction_by_hand(), Corpus.of(texts)).kinds["decoder"]


@pytest.mark.parametrize(
    ("measure", "head"),
    [
        ("previous", PREVIOUS_TOKEN),
        ("induction", INDUCTION),
        ("induction_repeated", INDUCTION),
        ("positional", PREVIOUS_TOKEN),
    ],
)
def test_the_heads_that_were_set_by_hand_are_named_and_no_other(judged, measure, head):
    values = judged.mean[measure].copy()
    assert values[head] > 0.9  # (what follows a letter that comes twice in a row is itself, which does not count)
    values[head] = 0
    assert values.max() < 0.5
    if measure in judged.most:
        assert judged.most[measure][head] > 0.9


def test_random_heads_are_not_redundant(judged):
    assert not (judged.mean["redundancy"] >= 0.7).any()


def same(first, second):
    assert first.texts == second.texts
    for kind, report in first.kinds.items():
        for name in COLUMNS:
            assert np.array_equal(report.mean[name], second.kinds[kind].mean[name], equal_nan=True), name
            assert np.array_equal(report.spread[name], second.kinds[kind].spread[name], equal_nan=True), name
        assert np.array_equal(report.nearest, second.kinds[kind].nearest)
        assert all(np.array_equal(report.strongest[name], second.kinds[kind].strongest[name]) for name in MEASURES)


def test_a_run_that_was_cut_off_goes_on_to_the_same_result(tmp_path):
    checkpoint, corpus = made("encoder-only"), Corpus.of(TEXTS * 5)
    whole, told = head_report(checkpoint, corpus), []

    def tell(done, texts):
        told.append(done)

    assert head_report(checkpoint, corpus, work=tmp_path, tell=tell, stop=lambda: len(told) >= 2) is None
    assert told == [GROUP, 2 * GROUP]
    told.clear()
    gone_on = head_report(checkpoint, corpus, work=tmp_path, tell=tell)
    assert told[0] == 3 * GROUP
    assert told[-1] == len(corpus.passages)
    same(gone_on, whole)
    told.clear()
    same(head_report(checkpoint, corpus, work=tmp_path, tell=tell), whole)
    assert not told  # it was all there


def test_what_was_measured_of_another_model_or_of_other_texts_is_not_taken(tmp_path):
    corpus = Corpus.of(TEXTS)
    head_report(made("decoder-only"), corpus, work=tmp_path)
    other = tiny.checkpoint("decoder-only", vocab_size=320, max_positions=64, seed=1)
    same(head_report(other, corpus, work=tmp_path), head_report(other, corpus))
    fewer = Corpus.of(TEXTS[:3])
    same(head_report(other, fewer, work=tmp_path), head_report(other, fewer))


def test_a_damaged_file_of_a_run_is_begun_anew(tmp_path):
    checkpoint, corpus = made("decoder-only"), Corpus.of(TEXTS)
    whole = head_report(checkpoint, corpus, work=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:1000])
    same(head_report(checkpoint, corpus, work=tmp_path), whole)


def test_the_number_of_threads_changes_no_bit():
    checkpoint, corpus = made("decoder-only, llama"), Corpus.of(TEXTS * 3)
    before = torch.get_num_threads()
    same(head_report(checkpoint, corpus, threads=3), head_report(checkpoint, corpus, threads=1))
    assert torch.get_num_threads() == before


def test_heads_that_share_keys_are_of_one_group(tmp_path):
    report = head_report(made("decoder-only, llama"), Corpus.of(TEXTS))
    assert [row["group"] for row in report.rows() if row["layer"] == 0] == [0, 0, 1, 1]


def test_the_rows_are_written_as_csv_and_as_parquet(tmp_path):
    report = head_report(made("encoder-decoder"), Corpus.of(PAIRS))
    rows = report.rows()
    assert len(rows) == 3 * 2 * 4
    report.save(tmp_path / "heads.csv")
    report.save(tmp_path / "heads.parquet")
    with (tmp_path / "heads.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(row["first"]) for row in read] == [row["first"] for row in rows]
    assert pyarrow.parquet.read_table(tmp_path / "heads.parquet").column("entropy").to_pylist() == [
        row["entropy"] for row in rows
    ]
    with pytest.raises(VizformerError, match=r"none of the endings \.csv, \.parquet\."):
        report.save(tmp_path / "heads.txt")


def test_texts_are_read_from_a_file(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("one\n\n  two\tzwei\tand more\n", encoding="utf-8")
    assert [(one.text, one.target) for one in read_texts(path).passages] == [("one", ""), ("two", "zwei")]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(VizformerError, match="not UTF-8"):
        read_texts(path)
    path.write_text("\n\n", encoding="utf-8")
    with pytest.raises(VizformerError, match="has no text"):
        read_texts(path)
    with pytest.raises(VizformerError, match="There is no file"):
        read_texts(tmp_path / "none.txt")


def test_it_is_counted_how_many_texts_are_cut():
    corpus = Corpus.of(["a" * (MOST_CHARACTERS + 1), "b" * MOST_CHARACTERS, "c\t" + "d" * (MOST_CHARACTERS + 5)])
    assert corpus.cut == 2
    assert [(len(one.text), len(one.target)) for one in corpus.passages] == [
        (MOST_CHARACTERS, 0),
        (MOST_CHARACTERS, 0),
        (1, MOST_CHARACTERS),
    ]


@pytest.mark.parametrize("name", ["decoder-only", "decoder-only, window", "encoder-only, bert", "encoder-decoder"])
def test_largest_weights_tenths_and_tokens_are_what_plain_loops_give(name, monkeypatch):
    monkeypatch.setattr("vizformer.analysis.corpus_heads.sums.MOST", 0.2)  # (untrained heads hardly give more)
    checkpoint = made(name)
    corpus = corpus_of(checkpoint)
    report = head_report(checkpoint, corpus, threads=2)
    for kind, found in report.kinds.items():
        largest, picks = np.zeros_like(found.largest), np.zeros_like(found.picks)
        counted = {"key": {}, "query": {}, "rows": {}}
        for passage in corpus.passages:
            read = read_tokens(checkpoint, passage)
            maps = head_maps(run(checkpoint, read), kind)
            queries, keys = read["decoder" if kind == "cross" else kind], read["encoder" if kind == "cross" else kind]
            for layer, head in np.ndindex(*maps.weights.shape[:2]):
                for i, query in enumerate(queries):
                    if (maps.reasons[layer, i] == 0).sum() < 2:
                        continue
                    row = maps.weights[layer, head, i]
                    best = int(row.argmax())
                    largest[layer, head, min(19, int(row[best] * 20))] += 1
                    add(counted["rows"], (layer, head, query))
                    if row[best] > 0.2 and not keys[best].special and (best > 0 or kind == "cross"):
                        picks[layer, head] += 1
                        add(counted["key"], (layer, head, keys[best]))
                        add(counted["query"], (layer, head, query))
        assert np.array_equal(found.largest, largest)
        assert np.array_equal(found.picks, picks)
        assert picks.any()
        for layer, head in np.ndindex(*found.shape):
            for role in ("key", "query"):
                mine = {id: n for (at, one, id), n in counted[role].items() if (at, one) == (layer, head)}
                names, counts = (found.tokens[part][layer, head] for part in (role, f"{role}_count"))
                n = int((counts > 0).sum())
                assert n == min(10, len(mine))
                found_ids = [the_one(mine, name, count) for name, count in zip(names[:n], counts[:n], strict=True)]
                assert all(found_ids)
                if role == "key":
                    assert counts[:n].tolist() == sorted(mine.values(), reverse=True)[:n]
                    continue
                rows = found.tokens["query_rows"][layer, head][:n]
                known = [{counted["rows"][layer, head, id] for id in ids} for ids in found_ids]
                assert all(one in of for one, of in zip(rows.tolist(), known, strict=True))
                above = counts[:n] - rows * picks[layer, head] / largest[layer, head].sum()
                assert (np.diff(above) <= 1e-9).all()
        values = [
            one[kind][0][0] for one in (by_loops(checkpoint, replace(corpus, passages=(p,))) for p in corpus.passages)
        ]
        for measure in ("entropy", "first", "delimiter"):
            for layer, head in np.ndindex(*found.shape):
                said = [(float(one[measure][layer, head]), n) for n, one in enumerate(values)]
                said = sorted(one for one in said if math.isfinite(one[0]))
                expected = [said[(2 * tenth + 1) * len(said) // 20] for tenth in range(10)]
                assert found.tenth_values[measure][layer, head] == pytest.approx([one[0] for one in expected], abs=2e-6)
                texts = found.tenths[measure][layer, head].tolist()
                assert [values[n][measure][layer, head] for n in texts] == pytest.approx([one[0] for one in expected])


def add(counts, what):
    layer, head, token = what
    text[token.id] = token.text
    counts[layer, head, token.id] = counts.get((layer, head, token.id), 0) + 1


text = {}  # of tokens by their ids


def the_one(counts, name, count):
    """The tokens that this may be: of those that read the same, one that was counted so often."""
    return [id for id, n in counts.items() if n == count and name in (text[id], f"␣{text[id]}", f"{text[id]} #{id}")]


def test_values_and_tokens_are_kept_of_the_first_texts_alone(monkeypatch):
    checkpoint = made("decoder-only")
    monkeypatch.setattr("vizformer.analysis.corpus_heads.sums.Sums.keeps", 3)
    few = head_report(checkpoint, Corpus.of(TEXTS[:3])).kinds["decoder"]
    all_of_them = head_report(checkpoint, Corpus.of(TEXTS)).kinds["decoder"]
    for name in ("largest", "picks"):
        assert np.array_equal(getattr(few, name), getattr(all_of_them, name))
    assert all_of_them.tenths["entropy"].max() == 2
    assert all_of_them.texts["entropy"].max() > 3


@pytest.mark.parametrize("name", ["decoder-only, llama", "encoder-decoder"])
def test_the_effect_on_the_logit_is_the_heads_own_term_of_the_next_token(name):
    checkpoint = made(name)
    corpus = replace(corpus_of(checkpoint), passages=corpus_of(checkpoint).passages[:2])
    report = head_report(checkpoint, corpus)
    trace = [rerun(checkpoint, read_tokens(checkpoint, one), None) for one in corpus.passages]
    places = [(one, row) for one in trace for row in range(len(one.tokens["decoder"]) - 1)]
    assert len(places) <= 24
    for kind, found in report.kinds.items():
        if kind == "encoder":
            assert np.isnan(found.mean["logit_effect"]).all()
            continue
        for layer, head in np.ndindex(*found.shape):
            site = f"decoder.{layer}.{'cross' if kind == 'cross' else 'self'}"
            values = []
            for one, row in places:
                terms = logit_attribution(checkpoint, one, row, one.tokens["decoder"][row + 1].id).terms
                values += [term.value for term in terms if (term.part, term.place, term.head) == ("head", site, head)]
            assert found.mean["logit_effect"][layer, head] == pytest.approx(np.mean(values), abs=1e-6)
            assert found.spread["logit_effect"][layer, head] == pytest.approx(np.std(values), abs=1e-6)


def test_a_file_of_another_version_is_refused(tmp_path):
    of_a_head = {"decoder/layer_heads": [[1, 1]]}
    np.savez(tmp_path / "report.npz", said=np.array(["a", "b"]), n=[1, 1], **of_a_head)
    with pytest.raises(VizformerError, match="another version"):
        read_report(tmp_path / "report.npz")


@pytest.mark.parametrize("name", ["en", "zh"])
def test_the_bundled_texts_are_a_few_hundred(name):
    passages = bundled_corpus(name).passages
    assert len(passages) == 240
    assert all(bool(passage.target) == (name == "zh") for passage in passages)


def test_a_model_that_reads_none_of_the_texts_says_so(monkeypatch):
    checkpoint = made("decoder-only")
    monkeypatch.setattr("vizformer.analysis.corpus_heads.one_text.MOST_TOKENS", 0)
    with pytest.raises(VizformerError, match="can read none of the texts"):
        head_report(checkpoint, Corpus.of(TEXTS))


def test_a_report_is_read_as_it_was_written(tmp_path):
    report = head_report(made("encoder-decoder"), Corpus.of(PAIRS, "pairs"))
    write_report(report, tmp_path / "report.npz")
    read = read_report(tmp_path / "report.npz")
    same(read, report)
    assert (read.model, read.corpus, read.given) == (report.model, "pairs", len(PAIRS))
    assert str(read.rows()) == str(report.rows())


@pytest.mark.sweep
def test_of_a_model_without_a_head_nobody_knows_what_copies(tmp_path):
    folders.bert(tmp_path / "headless", model="BertModel")
    report = head_report(load(tmp_path / "headless"), Corpus.of(TEXTS)).kinds["encoder"]
    assert np.isnan(report.mean["copying"]).all()
    assert not report.sign.any()
    folders.bert(tmp_path / "filler", model="BertForMaskedLM")
    assert np.isfinite(head_report(load(tmp_path / "filler"), Corpus.of(TEXTS)).kinds["encoder"].mean["copying"]).all()


def test_the_process_that_measures_ends_well_also_where_it_was_told_to_stop(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "take_low_priority", lambda: None)
    request = worker.Request("stories", {}, "float32", "cpu", "two", ("The cat sat.", "A dog ran."))
    for stopped in (False, True):
        folder = tmp_path / str(stopped)
        folder.mkdir()
        request.write(folder)
        (folder / jobs.WATCHED).touch()
        if stopped:
            (folder / jobs.STOP).touch()
        assert worker.main(folder, os.getppid()) == 0
        assert (folder / worker.REPORT).is_file() != stopped
    unreadable = replace(request, path=str(tmp_path))
    unreadable.write(folder)
    assert worker.main(folder, os.getppid()) == worker.UNREADABLE
