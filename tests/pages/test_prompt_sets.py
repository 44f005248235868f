"""The page What if, a set of prompts: the library's numbers, the reader's own table, and in Python."""

from dataclasses import replace

import numpy as np
import pytest

from tests.bundled import load
from tests.pages.reading import said, tables
from tests.pages.test_patches import maps, press
from vizformer.analysis import (
    PromptRow,
    PromptSet,
    bundled_set,
    edge_scores,
    measured_edges,
    over_prompts,
    read_prompt_set,
)
from vizformer.model import count_parameters
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.what_if import circuit_edges, set_of_prompts
from vizformer.web.widgets import watched_work

PAGE = "pages/explore/what_if.py"
HAND = dict(model="induction-by-hand", text="c d f e c")
OWN = "clean,corrupted,answer,wrong\na b c a,b a c a,b,c\nc d e c,d c e c,d,e\nb c a b,c b a b,c,a"


def dials(**settings: str) -> str:
    return "~".join(f"whatif.{name}:{value}" for name, value in {"way": "set", **settings}.items())


@pytest.fixture(autouse=True)
def few(monkeypatch) -> None:
    """Six prompts are enough for a page."""
    monkeypatch.setattr(set_of_prompts, "bundled_set", lambda name: PromptSet(name, bundled_set(name).rows[:6]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("measure", ["patching", "zero", "attribution"])
def test_the_map_and_the_table_are_what_the_library_says(open_app, measure: str) -> None:
    app = open_app(PAGE, **HAND, dials=dials(over=measure))
    if app.button and any(button.key == "what_if.set" for button in app.button):
        press(app, "what_if.set")
    prompts = PromptSet("few", bundled_set("induction.induction-by-hand").rows[:6])
    found = over_prompts(load("induction-by-hand"), prompts, measure)  # type: ignore[arg-type]
    heads = [at for at, part in enumerate(found.parts) if part.head is not None]
    np.testing.assert_allclose(np.ravel(maps(app)[0]["values"]), found.mean[heads], atol=1e-4)
    listed = next(table for table in tables(app) if len(table[0]) == 4)
    assert float(listed[0][1].replace("−", "-")) == pytest.approx(found.mean[found.strongest()[0]], abs=1e-3)
    assert "in 6 of 6 prompts" in said(app)
    exec(
        next(block.value for block in app.code if "over_prompts(" in block.value).replace("print(", "(lambda x: x)("),
        space := {},
    )
    assert len(space["found"].rows) == len(bundled_set("induction.induction-by-hand").rows)


def test_the_readers_own_prompts_are_measured_and_a_wrong_table_is_said(open_app) -> None:
    app = open_app(PAGE, **HAND, dials=dials(set="own"))
    assert "Only the column clean is needed" in app.info[0].value
    app.text_area(key="what_if.set.own").set_value(OWN).run()
    found = over_prompts(load("induction-by-hand"), read_prompt_set(OWN), "patching")
    heads = [at for at, part in enumerate(found.parts) if part.head is not None]
    np.testing.assert_allclose(np.ravel(maps(app)[0]["values"]), found.mean[heads], atol=1e-4)
    app.text_area(key="what_if.set.own").set_value("text\na\nb").run()
    assert "Row 1 is not a prompt" in said(app)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("clean: {who.0} lost\nwho: a, b", "is no slot of a template"),
        ("clean: {who} lost\nwho: a, b\ncount: " + "9" * 5_000, "a whole number from 2 to 500"),
        (r'[{"clean": "\ud800a"}, {"clean": "b"}]', "has half of a character"),
        ("clean: " + "{a}" * 15_000 + "\na: " + "y" * 100_000 + ",z\ncount: 2", "at most 64 slots"),
    ],
    ids=["slot", "count", "surrogate", "growth"],
)
def test_what_is_no_set_of_prompts_is_said_and_read_once(open_app, monkeypatch, given: str, why: str) -> None:
    read, times = set_of_prompts.read_prompt_set, []
    monkeypatch.setattr(set_of_prompts, "read_prompt_set", lambda *said: times.append(said) or read(*said))
    app = open_app(PAGE, **HAND, dials=dials(set="own"))
    app.text_area(key="what_if.set.own").set_value(given).run()
    app.run()
    assert not app.exception
    (error,) = app.error
    assert why in error.value
    assert "our mistake" not in error.value
    assert len(times) == 1


def test_what_a_set_costs_is_that_of_all_its_prompts() -> None:
    model, checkpoint = Subject(ModelRef("bundled", "stories"), "", ""), load("stories")
    texts = ["The cat", "The boy saw that the king had lost his hat", "a " * 400]
    prompts = PromptSet("three", tuple(PromptRow(text) for text in texts))
    n = [len(checkpoint.encode(text)) for text in texts[:2]]
    assert circuit_edges.tokens(model, prompts) == sum(n) + 256  # of which no more are read
    runs = 10 * (sum(n) + 256) * count_parameters(checkpoint.model.config)
    assert circuit_edges.cost(model, prompts, 8) == pytest.approx(runs + 3 * circuit_edges.OF_ROW)


def test_of_a_large_set_few_tokens_are_counted(monkeypatch) -> None:
    """Where texts are left uncounted, each of their characters may be a token: never too few."""
    model = Subject(ModelRef("bundled", "stories"), "", "")
    prompts = PromptSet("many", tuple(PromptRow(f"猫和狗{n} " * 20) for n in range(100)))
    exactly = circuit_edges.tokens(model, prompts)
    circuit_edges.tokens.clear()
    monkeypatch.setattr(circuit_edges, "MOST_COUNTED", 1_000)
    counted, encode = [], type(load("stories")).encode
    monkeypatch.setattr(type(load("stories")), "encode", lambda self, text: counted.append(text) or encode(self, text))
    assert circuit_edges.tokens(model, prompts) >= exactly
    assert sum(map(len, counted)) <= 1_000
    circuit_edges.tokens.clear()


@pytest.mark.parametrize(
    ("measure", "why"), [("zero", "give fewer prompts"), ("circuit", "Following the edges takes too long")]
)
def test_what_takes_too_long_is_refused_in_words(open_app, monkeypatch, measure: str, why: str) -> None:
    monkeypatch.setattr(watched_work, "MOST", 1.0)
    app = open_app(PAGE, **HAND, dials=dials(over=measure))
    assert why in app.info[0].value
    assert not tables(app)


def test_a_circuit_is_what_the_library_says(open_app) -> None:
    app = open_app(PAGE, **HAND, dials=dials(over="circuit"))
    if any(button.key == "what_if.circuit" for button in app.button):
        press(app, "what_if.circuit")
    checkpoint = load("induction-by-hand")
    prompts = PromptSet("few", bundled_set("induction.induction-by-hand").rows[:6])
    scores = edge_scores(checkpoint, prompts)
    listed = next(table for table in tables(app) if len(table[0]) == 4)
    edges = scores.strongest(len(listed))
    shown = [[float(cell.replace("−", "-")) for cell in row[2:]] for row in listed]
    np.testing.assert_allclose([row[0] for row in shown], [scores.of(edge) for edge in edges], atol=1e-3)
    np.testing.assert_allclose([row[1] for row in shown], measured_edges(checkpoint, prompts, edges), atol=1e-3)
    assert (edges[0].reader, listed[0][1]) == (
        "decoder.1.self.2.v",
        "the value of Decoder self-attention, layer 1, head 2",
    )
    assert "Of 110 edges" in said(app)
    assert any("edge_scores(checkpoint, prompts)" in block.value for block in app.code)
    assert (
        "circuit"
        not in open_app(PAGE, model="cloze", text="The [MASK] sat.", dials=dials())
        .selectbox(key="setting.whatif.over")
        .options
    )


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_circuit_whose_estimate_means_nothing_is_not_drawn(open_app, monkeypatch, locale: str) -> None:
    def unfinished(*given, **named):
        found = edge_scores(*given, **named)
        return replace(found, scores=np.zeros_like(found.scores))

    monkeypatch.setattr(circuit_edges, "edge_scores", unfinished)
    circuit_edges.circuits.clear()
    app = open_app(PAGE, locale=locale, **HAND, dials=dials(over="circuit"))
    if any(button.key == "what_if.circuit" for button in app.button):
        press(app, "what_if.circuit")
    circuit_edges.circuits.clear()
    assert not app.exception
    assert not tables(app)
    assert any("0.000" in one.value for one in app.warning)
