"""The lesson Multi-head attention: what is on the screen is what the library computes, and the code on it runs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import array, chart, marked, number, run, said, tables
from tests.pages.test_patches import press
from vizformer.analysis import head_maps, kinds
from vizformer.analysis.causes.ablation import parts_of, without
from vizformer.analysis.causes.asked_prompts import read_rows
from vizformer.analysis.causes.prompt_pairs import log_odds
from vizformer.analysis.causes.prompt_sets import bundled_set
from vizformer.analysis.costs.generation_cost import sharing_cost
from vizformer.analysis.head_outputs import contributions, key_contributions
from vizformer.analysis.heads.measures import find_telling_head, head_statistics
from vizformer.analysis.heads.pronouns import minimal_pair, reference_shift
from vizformer.web.lessons.heads import all_heads
from vizformer.web.lessons.heads.reference import SET, last_clause
from vizformer.web.link.view import usual_query
from vizformer.web.widgets.map_words import PAIRS
from vizformer.web.words import part_names

PAGE = "pages/learn/heads.py"
TEXTS = {"zh-en": "他喜欢喝水。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}
SITES = {
    "zh-en": ("cross", "decoder.1.cross"),
    "stories": ("decoder", "decoder.1.self"),
    "cloze": ("encoder", "encoder.1.self"),
}


@pytest.mark.parametrize("model", TEXTS)
def test_slices_and_parts_are_the_models(open_app: Open, model: str) -> None:
    kind, site = SITES[model]
    app = open_app(PAGE, part="split", model=model, text=TEXTS[model], site=kind, layer=1, head=1, query=2)
    assert not app.exception
    checkpoint = load(model)
    trace = checkpoint.trace(TEXTS[model])
    found = contributions(checkpoint, trace, site, 2)
    strips = chart(app, 0)
    shown = [array(strip["customdata"])[0] for strip in strips["data"]]
    cut = found.slices
    expected = [row for row in (cut.x, cut.q, cut.k, cut.v, cut.z, cut.out) if row is not None]
    for row, vector in zip(shown, expected, strict=True):
        np.testing.assert_allclose(row, vector, rtol=1e-5, atol=1e-5)
    heads, groups = checkpoint.model.config.n_heads, checkpoint.model.config.kv_heads
    bands = [shape for shape in strips["layout"]["shapes"] if shape.get("fillcolor")]
    assert len(bands) == 2 * heads + (0 if kind == "cross" else 2 * groups)
    parts = array(chart(app, 1)["data"][0]["z"])
    np.testing.assert_allclose(parts[:heads], found.parts, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(parts[-1], found.slices.out, rtol=1e-4, atol=1e-5)
    assert any(f"{found.proof.difference:.1g}" in box.value for box in app.success)
    assert not app.error
    rows = tables(app)[0]
    assert [number(row[1]) for row in rows[:heads]] == pytest.approx(found.norms, abs=1e-4)
    assert sum(number(row[2]) for row in rows) == pytest.approx(100.0, abs=0.06 * len(rows))
    assert marked(app, 0) == [1]
    config = checkpoint.model.config
    shapes = {row[0]: row[1:] for row in tables(app)[1]}
    assert shapes["W_Q, W_K, W_V of one head"] == ["512 × 64", f"{config.d_model} × {config.d_head}"]
    assert shapes["W_O"] == ["512 × 512", f"{heads * config.d_head} × {config.d_model}"]
    assert shapes["query heads, key and value heads"] == ["8, 8", f"{heads}, {groups}"]
    stack, layer, sort = site.split(".")
    block = getattr(checkpoint.model, stack).layers[int(layer)]
    attention = block.cross_attention if sort == "cross" else block.self_attention
    z = torch.stack([trace[site].z(head)[2] for head in range(heads)])
    done = run(app.code[0].value, z=z, W_O=attention.W_O.weight.T, b_O=attention.W_O.bias)
    np.testing.assert_allclose(done["out"].numpy(), cut.out, atol=2e-5)
    np.testing.assert_allclose(torch.stack(done["parts"]).numpy(), found.parts, atol=2e-5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_every_head_of_the_layer_is_described_by_its_measures(open_app: Open, model: str) -> None:
    kind, site = SITES[model]
    app = open_app(PAGE, part="all", model=model, text=TEXTS[model], site=kind, layer=1, head=2, query=1)
    assert not app.exception
    assert any(box.proto.component_name == "vizformer_attention" for box in app.get("bidi_component"))
    checkpoint = load(model)
    trace = checkpoint.trace(TEXTS[model])
    found = head_statistics(head_maps(trace, kind), cross=kind == "cross")
    rows = tables(app)[0]
    assert len(rows) == checkpoint.model.config.n_heads
    starts = {
        "previous": "attends to the previous token",
        "own": "attends to the query",
        "next": "attends to the next token",
        "first": "attends to the first",
        "last": "attends to the last",
    }
    for head, row in enumerate(rows):
        tendency = found.leading(1, head)
        if tendency is None:
            assert row[1].startswith(("no fixed position", "spreads out"))
        else:
            assert row[1].startswith(starts[tendency])
            assert f"{found.shares[tendency][1, head]:.0%}" in row[1]
        assert number(row[2]) == pytest.approx(found.effective[1, head], abs=0.05)
    assert marked(app, 0) == [2]
    brought = key_contributions(checkpoint, trace, site, 2, 1)
    order = np.argsort(-brought.weights, kind="stable")[:4]
    assert [number(row[1]) for row in tables(app)[-1]] == pytest.approx(brought.weights[order], abs=1e-4)
    assert [number(row[2]) for row in tables(app)[-1]] == pytest.approx(brought.norms[order], abs=1e-4)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_sharing_and_the_cache(open_app: Open, model: str) -> None:
    app = open_app(PAGE, part="groups", model=model, text=TEXTS[model], dials="heads.length:2048~heads.kv:2")
    assert not app.exception
    checkpoint = load(model)
    config, tokens = checkpoint.model.config, checkpoint.trace(TEXTS[model]).tokens
    memory = len(tokens["encoder"]) if model == "zh-en" else 0
    found = sharing_cost(config, 2, 2048, memory)
    done = run(app.code[0].value)
    assert done["nbytes"] == found.cache_bytes
    rows = tables(app)[0]
    assert [int(row[0]) for row in rows] == [g for g in (1, 2, 4, 8) if g <= config.n_heads]
    assert number(rows[1][4]) == found.model_parameters
    assert marked(app, 0) == [1]
    assert [row[1] for row in rows] == [
        "multi-query (MQA)",
        *["grouped-query (GQA)"] * (len(rows) - 2),
        "multi-head (MHA)",
    ]
    lines = [one for one in chart(app, 0)["data"] if one["mode"] == "lines"]
    assert len(lines) == config.n_heads
    assert len({float(array(line["x"])[1]) for line in lines}) == 2  # ends at two key/value heads
    said = " ".join(text.value for text in app.text)
    k = checkpoint.trace(TEXTS[model])[f"{'decoder' if model == 'stories' else 'encoder'}.0.self"].k
    assert " × ".join(map(str, k.shape)) in said
    assert ("This model shares: it has" in said) == (model == "stories")
    assert any("keeps no cache" in caption.value for caption in app.caption) == (model == "cloze")


def test_stories_as_it_is_reads_four_sets(open_app: Open) -> None:
    app = open_app(PAGE, part="groups", model="stories", text=TEXTS["stories"])
    assert marked(app, 0) == [2]
    assert "8 query heads" in app.text[0].value
    assert "sets: 4" in app.text[0].value
    found = sharing_cost(load("stories").model.config, 4, len(load("stories").encode(TEXTS["stories"])))
    assert run(app.code[0].value)["nbytes"] == found.cache_bytes


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_the_cache_of_one_set_is_asked_of_the_sentence(open_app: Open, model: str) -> None:
    app = open_app(PAGE, part="groups", model=model, text=TEXTS[model])
    checkpoint = load(model)
    config, tokens = checkpoint.model.config, checkpoint.trace(TEXTS[model]).tokens
    own, memory = (
        (len(tokens["decoder"]), len(tokens["encoder"])) if model == "zh-en" else (len(next(iter(tokens.values()))), 0)
    )
    right = sharing_cost(config, 1, own, memory).cache_bytes
    assert right * config.n_heads == sharing_cost(config, config.n_heads, own, memory).cache_bytes
    radio = next(r for r in app.radio if r.key.startswith("ask.heads.cache"))
    options = [option.replace("\\", "") for option in radio.options]
    app = radio.set_value(options.index(f"{right:,}")).run()
    app = next(b for b in app.button if b.key.startswith("ask.heads.cache.button")).click().run()
    assert any("Right" in box.value for box in app.success)


def test_the_lesson_speaks_chinese(open_app: Open) -> None:
    for part, word in (("split", "投影"), ("all", "注意力"), ("groups", "缓存")):
        app = open_app(PAGE, locale="zh-CN", part=part)
        assert not app.exception
        assert any(word in element.value for element in (*app.text, *app.markdown, *app.caption)), part
    rows = tables(open_app(PAGE, locale="zh-CN", part="groups"))[0]
    assert [row[1] for row in rows] == ["多查询（MQA）", "分组查询（GQA）", "多头（MHA）"]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("model", "pronoun", "verdict"),
    [
        ("cloze", "he", "Not shown by this model."),
        ("stories", "he_first", "It moves, but it does not find."),
        ("cloze", "he_first", "Not shown by this model."),
        ("cloze", "it", "Not shown by this model."),
        ("zh-en", "ta_meaning", "Not shown by this model."),
        ("stories", "it", "Nothing moves"),
    ],
)
def test_the_part_about_pronouns_says_what_was_measured(open_app, model, pronoun, verdict) -> None:
    text = "我有一只猫。" if model == "zh-en" else "The cat sat."
    app = open_app(PAGE, model=model, text=text, part="reference", dials=f"heads.pronoun:{pronoun}")
    assert not app.exception
    found = reference_shift(load(model).trace, PAIRS[pronoun])
    (box,) = [b.value for b in (*app.success, *app.warning, *app.info) if verdict in b.value]
    if not found.never_moves:
        assert f"head {found.head} of layer {found.layer}" in box
        assert f"{100 * found.mean:.1f} points" in box
        assert f"{found.right} of {len(found.sentences)} pairs" in box
        assert f"In {found.found} of {2 * len(found.sentences)} sentences" in box
    first, second = (array(one["x"]) for one in chart(app, 0)["data"])
    assert (first - second) / 200 == pytest.approx(found.shifts[:, found.layer, found.head], abs=1e-6)


def test_below_the_pronouns_stands_the_noun_that_the_translator_writes(open_app) -> None:
    asked = dict(text="I have a cat.", part="reference", dials="heads.pronoun:it_noun")
    app = open_app(PAGE, model="zh-en", **asked)
    assert not app.exception
    assert not app.success  # it is measured when it is asked for
    press(app, "heads.reference.measure")
    assert not app.exception
    checkpoint, prompts = load("zh-en"), bundled_set(SET)
    read, __ = read_rows(checkpoint, prompts)
    right = sum(one.odds > 0 for one in read)
    (box,) = [one.value for one in app.success]
    assert f"in {right} of {len(read)} sentences" in box
    heads = [part for part in parts_of(read[0].clean) if part.head is not None and part.sublayer.endswith("cross")]
    effects = []
    for head in heads:  # each taken out alone, in plain forwards
        without_it = [without(checkpoint, one.clean, [head]).logits[one.row] for one in read]
        moved = [
            float(log_odds(row, one.answer, one.wrong)) - one.odds for row, one in zip(without_it, read, strict=True)
        ]
        effects.append(float(np.mean(moved)))
    strongest = int(np.abs(effects).argmax())
    row = tables(app)[0][0]
    assert row[0] == part_names.name(heads[strongest])
    assert float(row[1].replace("−", "-")) == pytest.approx(effects[strongest], abs=0.006)
    assert not open_app(PAGE, model="cloze", **asked).success


def test_the_last_clause_names_neither_noun() -> None:
    for row, pair in zip(bundled_set(SET).rows[::2], PAIRS["it_noun"], strict=True):
        one, other = minimal_pair(pair)
        assert (row.clean, row.corrupted) == (one.text, other.text)
        clause = last_clause(row.clean)
        assert row.clean.endswith(clause)
        assert not any(one.text[start:end] in clause for start, end in one.spans[:2])


@pytest.mark.sweep
def test_the_button_opens_the_head_that_was_found(open_app) -> None:
    app = open_app(PAGE, model="cloze", text="The cat sat.", part="reference")
    found = reference_shift(load("cloze").trace, PAIRS["he"])
    app = next(button for button in app.button if button.key == "heads.reference.open").click().run()
    assert not app.exception
    link = {name: "".join(value) for name, value in app.query_params.items()}
    assert link["part"] == "all"
    assert link["text"] in {pair[0].text for pair in found.sentences}
    assert (int(link["layer"]), int(link.get("head", 0))) == (found.layer, found.head)


@pytest.mark.parametrize("model", TEXTS)
def test_shared_keys_and_values_mark_that_head_too(open_app: Open, model: str) -> None:
    trace = load(model).trace(TEXTS[model])
    kind = kinds(trace)[0]
    found = find_telling_head(trace, kind, usual_query(trace.tokens[kind]))
    assert found is not None
    app = open_app(PAGE, part="groups", model=model, text=TEXTS[model])
    assert not app.exception
    assert f"Shown: layer {found.layer}, head {found.head}" in " ".join(one.value for one in app.caption)
    chosen = open_app(PAGE, part="groups", model=model, text=TEXTS[model], layer=found.layer, head=found.head)
    assert app.get("plotly_chart")[0].proto.spec == chosen.get("plotly_chart")[0].proto.spec
    other = open_app(PAGE, part="groups", model=model, text=TEXTS[model], head=(found.head + 1) % 4)
    assert app.get("plotly_chart")[0].proto.spec != other.get("plotly_chart")[0].proto.spec


@pytest.mark.parametrize("model", TEXTS)
def test_all_heads_opens_on_the_head_whose_row_says_most_of_another_word(open_app: Open, model: str) -> None:
    app = open_app(PAGE, part="all", model=model, text=TEXTS[model])
    assert not app.exception
    trace = load(model).trace(TEXTS[model])
    kind = kinds(trace)[0]
    found = find_telling_head(trace, kind, usual_query(trace.tokens[kind]))
    assert found is not None
    assert (found.layer, found.head) != (0, 0)
    assert f"Shown: layer {found.layer}, head {found.head}" in " ".join(one.value for one in app.caption)
    assert any(f"The heads of layer {found.layer}" in box.proto.body for box in app.get("html"))


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_what_heads_carry_is_said_of_the_translator_and_of_no_other_weights(open_app, monkeypatch, locale) -> None:
    app = open_app(PAGE, locale=locale, model="zh-en", part="all")
    assert not app.exception
    said = [one.value for one in app.markdown if one.value.startswith("- **")]
    assert len(said) == 1
    assert said[0].count("\n") == 2  # names, numbers, negation
    found = all_heads.roles()
    none, several = {
        "en-US": ("no head of its own", "7 heads of its own"),
        "zh-CN": ("没有自己的头", "有 7 个自己的头"),
    }[locale]
    assert found.own.sum(1).tolist() == [0, 0, 7, 0, 1]
    assert [words in line for words, line in zip((none, none, several), said[0].split("\n"), strict=True)] == [True] * 3
    one = replace(found, own=np.arange(found.own.shape[1]) == found.strongest("negation") * np.ones((5, 1)))
    monkeypatch.setattr(all_heads, "roles", lambda: one)
    other = open_app(PAGE, locale=locale, model="zh-en", part="all")
    line = next(line for box in other.markdown for line in box.value.split("\n") if line.startswith("- **"))
    assert {"en-US": "a head of its own", "zh-CN": "：有自己的头"}[locale] in line
    monkeypatch.undo()
    least = np.sort(found.shares.max(0))[[17, 18]].mean()  # of 36 heads
    assert found.shares.shape[1] == 36
    assert any(f"{least:.1%}" in box.value for box in app.caption)
    for name in ("stories", "cloze"):
        other = open_app(PAGE, model=name, part="all")
        assert not [one for one in other.markdown if one.value.startswith("- **")]
    all_heads.roles.clear()
    monkeypatch.setattr(all_heads, "digest", lambda folder: "other weights")
    assert all_heads.roles() is None
    all_heads.roles.clear()


@pytest.mark.parametrize(
    ("page", "part"),
    [
        ("map", "drawing"),
        ("qkv", "lookup"),
        ("qkv", "arithmetic"),
        ("qkv", "scale"),
        ("heads", "split"),
        ("cross", "three"),
    ],
)
def test_pages_that_show_heads_say_that_none_finds_the_noun_of_a_pronoun(open_app, page, part) -> None:
    text = "The animal didn't cross the street because it was too tired."
    for asked, there in ((text, True), ("The animal slept.", False)):
        app = open_app(f"pages/learn/{page}.py", model="zh-en", text=asked, part=part, lang="en")
        assert not app.exception
        assert ("attends from “it” to the noun that it means" in said(app)) == there
