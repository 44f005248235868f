"""Sets of prompts: what is read from tables and templates, and effects that are those of each prompt alone."""

import json
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest

from tests import tiny
from tests.bundled import load
from vizformer.analysis import (
    PromptRow,
    PromptSet,
    bundled_set,
    bundled_sets,
    logit_attribution,
    over_prompts,
    patch_runs,
    prompt_pair,
    read_prompt_set,
    score_split,
)
from vizformer.analysis.causes import prompt_sets
from vizformer.analysis.causes.ablation import Part, parts_of, without
from vizformer.analysis.causes.asked_prompts import ask, read_rows
from vizformer.analysis.causes.part_outputs import draw_outputs, mean_outputs, outputs_of
from vizformer.analysis.causes.prompt_pairs import log_odds
from vizformer.analysis.causes.prompt_sets import LARGEST, MOST, template_rows
from vizformer.analysis.causes.set_effects import MEASURES, SetEffects
from vizformer.errors import TraceError

ROWS = (
    PromptRow("The boy lost", "The girl lost", "his", "her"),
    PromptRow("The king lost", "The queen lost", "his", "her"),
    PromptRow("The girl lost", "The boy lost", "her", "his"),
)


@pytest.fixture(scope="module")
def stories():
    return load("stories")


def test_a_table_is_the_same_set_however_it_is_written(tmp_path: Path) -> None:
    table = "Clean, answer,wrong,corrupted\n" + "\n".join(f"{r.clean},{r.answer},{r.wrong},{r.corrupted}" for r in ROWS)
    path = tmp_path / "whose.csv"
    path.write_text("\ufeff" + table)
    found = read_prompt_set(path)
    assert (found.name, found.rows) == ("whose", ROWS)
    as_json = json.dumps([vars(row) for row in ROWS])
    assert read_prompt_set(as_json).rows == read_prompt_set(table.encode()).rows == ROWS


def test_a_template_makes_all_rows_or_so_many_of_them() -> None:
    text = """# a comment
clean: {name} and {name.2} saw the {thing}. {name.2} saw
answer: {name}
wrong: {name.2}
name: Tom, Ann, Bob
thing: cat, dog"""
    rows = read_prompt_set(text).rows
    assert len(rows) == len(set(rows)) == 3 * 2 * 2
    assert PromptRow("Bob and Ann saw the dog. Ann saw", "", "Bob", "Ann") in rows
    assert all(row.answer != row.wrong for row in rows)
    some = read_prompt_set(text + "\ncount: 5").rows
    assert len(some) == len(set(some)) == 5
    assert set(some) < set(rows)
    assert some == read_prompt_set(text + "\ncount: 5").rows
    assert template_rows({"clean": "no slot"}, {}) == (PromptRow("no slot"),)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("clean\nThe boy lost", "2 to 500 prompts; this one has 1"),
        ("clean\n" + "a\n" * (MOST + 1), "2 to 500 prompts; this one has 501"),
        ("text\na\nb", "Row 1 is not a prompt. Name the columns"),
        ('[{"clean": "a"}, {"clean": ["b"]}]', "Row 2 is not a prompt"),
        ("[" * 50_000, "This JSON cannot be read"),
        ('{"clean": ', "This JSON cannot be read"),
        ("clean,answer\na,b\n,c", "Row 2 has no prompt"),
        ("clean\n" + "a" * 2001 + "\nb", "longer than 2000 characters"),
        ("clean: {who} lost", r"needs 1 words for \{who\}"),
        ("clean: {who} and {who.3}\nwho: a, b", r"needs 3 words for \{who\}"),
        ("clean: a\nwithout a colon", "A template has lines such as"),
        (b"\xff\xfe\x00", "not UTF-8"),
        ("x" * (LARGEST + 1), "at most 1,048,576 bytes"),
    ],
)
def test_what_is_no_set_is_refused_with_the_way_out(given: str | bytes, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        read_prompt_set(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(
            "clean: " + "{a}" * 15_000 + "\na: " + "y" * 100_000 + ",z\ncount: 2",
            "at most 64 slots",
            id="a long word in many slots",
        ),
        pytest.param("clean: {a}\na: " + "y" * 100_000 + ",z", "becomes up to 100,000 characters", id="a long word"),
        pytest.param(
            "clean: "
            + "".join(f"{{w{n}}} " for n in range(140))
            + "".join(f"\nw{n}: " + ",".join(map(str, range(200))) for n in range(140))
            + "\ncount: 500",
            "at most 64 lists of words",
            id="140 slots of 200 words",
        ),
        pytest.param("clean: " + "{a} {b}" * 40 + "\na: x,y\nb: x,y", "at most 64 slots", id="many slots"),
        pytest.param("clean: {a}\na: " + "x," * 100_000, "at most 2,000 words", id="many words"),
        pytest.param("clean: {a}{b.64}\na: x\nb: " + ",".join(map(str, range(90))), "takes 65 words", id="many taken"),
        pytest.param("clean: {who.0} lost\nwho: a,b", r"\{who\.0\} is no slot", id="counted from 0"),
        pytest.param("clean: {who.100} lost\nwho: a,b", r"\{who\.100\} is no slot", id="counted up to 100"),
        pytest.param("clean: {who." + "9" * 5_000 + "} lost\nwho: a,b", "is no slot", id="5,000 digits in a slot"),
        pytest.param("clean: {w} lost\nw: a,b\ncount: " + "9" * 5_000, "from 2 to 500", id="a count of 5,000 digits"),
        pytest.param("clean: {w} lost\nw: a,b\ncount: many", "from 2 to 500", id="a count in words"),
        pytest.param("clean: a\n" + "b" * 100_000, "not b{79}…", id="a long line"),
        pytest.param(r'[{"clean": "\ud800a"}, {"clean": "b"}]', "row 1 has half of a character", id="half a character"),
        pytest.param('[{"clean": ' + "9" * 5_000 + "}]", "This JSON cannot be read", id="a number of 5,000 digits"),
        pytest.param(
            "clean," + ",".join(map(str, range(40_000))) + "\na" * 500, "at most 64 columns", id="many columns"
        ),
    ],
)
def test_what_grows_is_refused_before_it_has_grown(given: str, said: str) -> None:
    """The first of these took 1.4 GB, the last 0.5 GB."""
    tracemalloc.start()
    try:
        with pytest.raises(TraceError, match=said) as refused:
            read_prompt_set(given)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert used < 16 * 2**20
    assert len(str(refused.value)) < 400


def test_rows_are_made_as_many_as_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the largest template: 64 slots, and 500 rows; where all rows are the same there is an end too."""
    tried, made = [], prompt_sets._slots
    monkeypatch.setattr(prompt_sets, "_slots", lambda *given: tried.append(1) or made(*given))
    words = {f"w{n}": [f"{n}.{m}" for m in range(31)] for n in range(64)}
    rows = template_rows({"clean": "".join(f"{{{name}}}" for name in words)}, words, MOST)
    assert len(rows) == len(tried) == MOST
    tried.clear()
    same = {f"w{n}": [" " * m for m in range(1, 4)] for n in range(20)}
    assert len(template_rows({"clean": "a", "target": "".join(f"{{{name}}}" for name in same)}, same, MOST)) < MOST
    assert len(tried) == 10 * MOST


def test_the_runs_of_one_prompt_at_a_time_are_kept(stories, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, most = [], []
    trace = type(stories).trace

    def traced(self, *given, **more):
        found = trace(self, *given, **more)
        runs.append(weakref.ref(found))
        most.append(sum(run() is not None for run in runs))
        return found

    monkeypatch.setattr(type(stories), "trace", traced)
    for measure, each in (("attribution", 1), ("patching", 3)):  # runs of a row: both prompts, and one with outputs
        runs.clear(), most.clear()
        found = over_prompts(stories, PromptSet("whose", ROWS * 5), measure)
        assert len(found.rows) == 15
        assert len(most) == 15 * each
        assert max(most) <= 3 * each  # of the first row, of the one that is measured, and of the one that is read


def test_work_on_a_set_is_heard_of_and_ended_at_each_prompt(stories) -> None:
    told = []

    def heard(done: int, of: int) -> None:
        told.append((done, of))
        if len(told) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        over_prompts(stories, PromptSet("whose", (PromptRow("x " * 300), *ROWS)), "attribution", heard=heard)
    assert told == [(2000, 4000), (3000, 4000)]  # the one that is too long counts


LEAST_RIGHT = {"reference": 0.75}
"""Measured on 2026-11-27: every set is 100 % right, this one 24 of 24; over more sentences its card says 90 %."""


@pytest.mark.parametrize("name", [name for name in bundled_sets() if not name.endswith("gpt2")])
def test_a_bundled_model_does_what_its_sets_ask(name: str) -> None:
    checkpoint = load(name.split(".")[1])
    assert name in bundled_sets(checkpoint)
    asked, refused = read_rows(checkpoint, bundled_set(name))
    assert not refused
    assert len(asked) >= 10
    right = [one.odds > 0 and float((pair := one.pair()).difference(pair.corrupted.logits)) < 0 for one in asked]
    assert sum(right) >= LEAST_RIGHT.get(name.split(".")[0], 1) * len(asked)


@pytest.mark.parametrize("name", ["indirect_object.gpt2", "greater_than.gpt2"])
def test_a_set_for_a_model_that_does_not_come_with_the_app_is_whole(name: str) -> None:
    rows = bundled_set(name).rows
    assert len(rows) >= 40
    assert all(
        row.clean != row.corrupted and not set(row.answer.split("|")) & set(row.wrong.split("|")) for row in rows
    )


def test_each_effect_is_that_of_its_prompt_alone(stories) -> None:
    prompts, texts = PromptSet("whose", ROWS), [stories.trace("The cat sat on the mat."), stories.trace("He was sad.")]
    head, network = Part("decoder.3.self", 3), Part("decoder.2.feedforward")
    parts = [head, network]
    found = {
        measure: over_prompts(stories, prompts, measure, parts=parts, texts=texts, draws=3, head=head)
        for measure in MEASURES
    }
    for at, row in enumerate(ROWS):
        one = ask(stories, row, at)
        his, her = (stories.encode(f"The boy lost {word}")[-1].id for word in ("his", "her"))
        answer, wrong = (his, her) if row.answer == "his" else (her, his)
        assert (one.answer, one.wrong) == ((answer,), (wrong,))
        before = float(one.clean.logits[-1, answer] - one.clean.logits[-1, wrong])
        assert found["zero"].odds[at] == pytest.approx(before, abs=1e-5)
        means, drawn = (
            mean_outputs(stories, texts),
            draw_outputs(one.clean, [outputs_of(stories, t) for t in texts], 3, at),
        )
        for place, part in enumerate(parts):
            for measure, given in (("zero", None), ("mean", means)):
                logits = without(stories, one.clean, [part], given).logits[-1]
                change = float(logits[answer] - logits[wrong]) - before
                assert found[measure].values[at, place] == pytest.approx(change, abs=1e-4)  # type: ignore[index]
            runs = [without(stories, one.clean, [part], outputs).logits[-1] for outputs in drawn]
            change = float(np.mean([float(logits[answer] - logits[wrong]) for logits in runs])) - before
            assert found["resample"].values[at, place] == pytest.approx(change, abs=1e-4)
        pair = prompt_pair(stories, row.clean, row.corrupted, answer=answer, other=wrong)
        patched = patch_runs(stories, pair, "heads", "decoder").recovered
        assert found["patching"].values[at, 0] == pytest.approx(patched[3, 3], abs=1e-4)
        terms = logit_attribution(stories, one.clean, -1, answer, against=wrong)
        assert found["attribution"].values[at, 0] == pytest.approx(terms.heads()[3, 3], abs=1e-6)
        added = sum(term.value for term in terms.terms if term.place == "decoder.2.feedforward")
        assert found["attribution"].values[at, 1] == pytest.approx(added, abs=1e-6)
        key = int(one.clean["decoder.3.self"].pattern(3)[-1].argmax())
        split = score_split(stories, one.clean, "decoder.3.self", 3, -1, key, against_mean=True)
        of = dict(zip(split.queries, split.of("query"), strict=True))
        for writer, value in zip(found["splits"].parts, found["splits"].values[at], strict=True):
            assert value == pytest.approx(of[writer], abs=1e-9)  # type: ignore[index]


def test_mean_interval_and_what_goes_against_it() -> None:
    values = np.array([[1.0, 0.5], [2.0, 0.5], [3.0, 0.5], [-4.0, 0.5], [-0.5, 0.5]])
    rows = tuple(PromptRow(f"prompt {at}") for at in range(5))
    found = SetEffects(
        "zero", (Part("decoder.0.self", 1), Part("decoder.0.self")), values, rows, (0, 1, 2, 3, 5), values[:, 0], ()
    )
    assert found.mean == pytest.approx([0.3, 0.5])
    assert found.against(0) == [3, 4]
    assert found.against(1) == []
    assert found.strongest() == [1, 0]
    low, high = found.interval()
    assert (low[1], high[1]) == (0.5, 0.5)
    draws = np.random.default_rng(5).choice(values[:, 0], size=(20_000, 5)).mean(1)
    assert [low[0], high[0]] == pytest.approx(
        np.quantile(draws, [0.025, 0.975]), abs=0.15
    )  # (of 2,000 draws; means are 0.1 apart)
    frame = found.to_frame()
    assert list(frame.columns) == ["place", "head", "mean", "low", "high", "against", "rows", "distinct"]
    assert frame.iloc[1].tolist()[:3] == ["decoder.0.self", 1, pytest.approx(0.3)]
    assert frame["against"].tolist() == [0, 2]
    by_row = found.rows_to_frame()
    assert by_row.loc[5, "decoder.0.self.1"] == -0.5
    assert by_row.loc[3, "clean"] == "prompt 3"


def effects_of(measure: str, values: np.ndarray, rows: list[PromptRow]) -> SetEffects:
    parts = (Part("decoder.0.self", 1),)
    return SetEffects(measure, parts, values[:, None], tuple(rows), (*range(len(rows)),), values, ())  # type: ignore[arg-type]


def width(found: SetEffects) -> float:
    low, high = found.interval()[:, 0]
    return float(high - low)


def test_rows_of_the_same_prompt_are_no_further_prompts() -> None:
    values = np.random.default_rng(0).normal(size=6)
    alone = effects_of("zero", values, [PromptRow(f"prompt {at}") for at in range(6)])
    again = effects_of(
        "zero", values.repeat(6), [PromptRow(f"prompt {at}", f"other {i}") for at in range(6) for i in range(6)]
    )
    assert alone.distinct == again.distinct == (6,)
    np.testing.assert_allclose(again.interval(), alone.interval())
    translated = [PromptRow("the same", target=f"words {at}") for at in range(6)]
    assert effects_of("zero", values, translated).distinct == (6,)  # what the decoder has read is a part of the prompt


@pytest.mark.parametrize("count", [144, 50])
def test_of_patching_both_sides_are_drawn(count: int) -> None:
    """The interval of effects that are sums of what both prompts give holds the true mean as often as it says."""
    rng, sides = np.random.default_rng(1), (12, 12)
    held, rows = 0, [PromptRow(f"clean {i}", f"corrupted {j}") for i in range(sides[0]) for j in range(sides[1])]
    for _ in range(60):
        clean, corrupted, chosen = rng.normal(size=12), rng.normal(size=12), rng.permutation(144)[:count]
        values = (clean[:, None] + corrupted + 0.5 * rng.normal(size=sides)).ravel()[chosen]
        found = effects_of("patching", values, [rows[at] for at in chosen])
        low, high = found.interval()[:, 0]
        held += low <= 0.0 <= high
    assert found.distinct == sides
    assert 50 <= held <= 60  # (drawn over rows: 24 of 60)


def test_a_side_that_goes_with_the_other_counts_once() -> None:
    values = np.random.default_rng(1).normal(size=8)
    alone = width(effects_of("zero", values, [PromptRow(f"clean {at}") for at in range(8)]))
    pairs = effects_of("patching", values, [PromptRow(f"clean {at}", f"corrupted {at}") for at in range(8)])
    assert width(pairs) == pytest.approx(alone, rel=0.05)
    to_one = effects_of("patching", values, [PromptRow(f"clean {at}", "corrupted") for at in range(8)])
    assert to_one.distinct == (8, 1)
    assert width(to_one) == pytest.approx(alone, rel=0.05)
    of_four = effects_of("patching", values, [PromptRow(f"clean {at}", f"corrupted {at // 2}") for at in range(8)])
    four = effects_of("zero", values.reshape(4, 2).mean(1), [PromptRow(f"clean {at}") for at in range(4)])
    assert width(of_four) >= 0.95 * width(four)
    assert np.isnan(effects_of("patching", values, [PromptRow("clean", "corrupted")] * 8).interval()).all()


LEAST_DISTINCT = 20


@pytest.mark.parametrize("name", bundled_sets())
def test_a_bundled_set_has_many_distinct_prompts(name: str) -> None:
    rows = bundled_set(name).rows
    assert len({(row.clean, row.target) for row in rows}) >= LEAST_DISTINCT


def test_the_circuit_built_by_hand_is_named_over_its_set() -> None:
    checkpoint, prompts = load("induction-by-hand"), bundled_set("induction.induction-by-hand")
    found = over_prompts(checkpoint, prompts, "zero")
    strongest = [part for at in found.strongest() if (part := found.parts[at]).head is not None][:2]
    assert set(strongest) == {Part("decoder.0.self", 1), Part("decoder.1.self", 2)}
    low, high = found.interval()
    assert (high[[found.parts.index(part) for part in strongest]] < -10).all()
    assert (low <= found.mean).all()


def test_rows_that_cannot_be_read_are_left_out_and_said(stories) -> None:
    rows = (
        *ROWS,
        PromptRow("The boy lost", "The little girl lost", "his", "her"),
        PromptRow("word " * 300, "", "his", "her"),
    )
    prompts = PromptSet("mixed", (*rows, PromptRow("The boy lost", "", "his", "his"), PromptRow("The boy lost")))
    found = over_prompts(stories, prompts, "patching", parts=[Part("decoder.0.self", 0)])
    assert found.numbers == (0, 1, 2)
    assert [number for number, _ in found.refused] == [3, 4, 5, 6]
    said = [str(why) for _, why in found.refused]
    for text, wanted in zip(
        said, ("equally many tokens", "at most 256 tokens", "same token", "no corrupted"), strict=True
    ):
        assert wanted in text
    without_pair = over_prompts(stories, prompts, "zero", parts=[Part("decoder.0.self", 0)])
    assert without_pair.numbers == (0, 1, 2, 3, 6)
    own = int(stories.trace("The boy lost").logits[-1].argmax())
    assert ask(stories, prompts.rows[6]).answer == (own,)
    with pytest.raises(TraceError, match="the model can read 0 prompts"):
        over_prompts(stories, PromptSet("none", (PromptRow("a"), PromptRow("b"))), "patching")
    with pytest.raises(TraceError, match="no other text"):
        over_prompts(stories, prompts, "mean")
    with pytest.raises(TraceError, match="whose score is split"):
        over_prompts(stories, prompts, "splits")
    for measure in MEASURES:
        for part in (Part("decoder.99.self", 0), Part("decoder.0.feedforward", 1)):
            with pytest.raises(TraceError, match=f"nothing called {part.sublayer}"):
                over_prompts(stories, prompts, measure, parts=[part], texts=[stories.trace("He was sad.")])


def test_several_answers_are_added_as_probabilities(stories) -> None:
    one = ask(stories, PromptRow("The boys", "", "were|are", "was|is"))
    p = one.clean.logits[-1].double().softmax(-1)
    assert len(one.answer) == len(one.wrong) == 2
    assert one.odds == pytest.approx(float((p[list(one.answer)].sum() / p[list(one.wrong)].sum()).log()), abs=1e-6)
    alone = log_odds(one.clean.logits[-1], one.answer[:1], ())
    assert float(alone) == pytest.approx(float(p[one.answer[0]].log()), abs=1e-6)


def test_what_heard_raises_ends_it_and_it_is_told_to_the_end() -> None:
    checkpoint, told = load("induction-by-hand"), list[tuple[int, int]]()
    prompts = PromptSet("few", bundled_set("induction.induction-by-hand").rows[:3])
    over_prompts(checkpoint, prompts, "zero", heard=lambda *heard: told.append(heard))
    assert told[-1] == (3000, 3000)
    assert told == sorted(told)

    def stop(done: int, of: int) -> None:
        raise InterruptedError

    for measure in MEASURES[:-1]:
        with pytest.raises(InterruptedError):
            over_prompts(checkpoint, prompts, measure, texts=[checkpoint.trace("a b c")], heard=stop)


def test_every_part_of_a_tiny_model_of_each_architecture_is_measured() -> None:
    for architecture in ("decoder-only", "encoder-decoder"):
        checkpoint = tiny.checkpoint(architecture)
        rows = tuple(
            PromptRow(f"The {word} are", f"The {other} are", target="I have" if architecture != "decoder-only" else "")
            for word, other in (("cats", "dogs"), ("dogs", "cats"))
        )
        found = over_prompts(checkpoint, PromptSet("tiny", rows), "zero")
        assert found.parts == parts_of(ask(checkpoint, rows[0]).clean)
