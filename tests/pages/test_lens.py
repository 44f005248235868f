"""The page Where does the answer come from?: what is on the screen is what the library says."""

import json
import re

import numpy as np
import pytest
import torch

from recipes.handmade_models import induction_by_hand
from tests.bundled import load
from tests.components.test_mount import sent
from tests.pages.reading import array, chart, open_boxes_of, run, said
from tests.refs import subject
from vizformer.analysis import answer_evidence, input_attribution, logit_attribution, logit_lens, taken_out
from vizformer.analysis.causes.evidence_graph import Node
from vizformer.web.catalogue import model_cache
from vizformer.web.pages.lens import inputs, layers, terms, token_choice
from vizformer.web.pages.lens.evidence import token
from vizformer.web.widgets import watched_work
from vizformer.web.words import labels
from vizformer.web.words.terms import unmarked

PAGE = "pages/explore/lens.py"
STORY = "Once upon a time there was a cat."


@pytest.fixture
def boxes_open(monkeypatch):
    open_boxes_of(monkeypatch, token_choice, inputs, terms)


def traced(model, text):
    checkpoint = load(model)
    return checkpoint, checkpoint.trace(text)


def grid(app):
    every = [sent(app, index) for index in range(len(app.get("bidi_component")))]
    return next(data for data in every if data.get("texts"))


def why(app):
    every = [sent(app, index) for index in range(len(app.get("bidi_component")))]
    return next(data for data in every if "others" in data)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("model", "text", "position"), [("stories", STORY, 4), ("zh-en", "我有一只猫。", 3), ("cloze", "a [MASK] cat", 2)]
)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_cells_and_bars_are_those_of_the_library(open_app, model, text, position, locale):
    app = open_app(PAGE, locale=locale, model=model, text=text, position=position)
    assert not app.exception
    assert not app.error
    checkpoint = load(model)
    trace = checkpoint.trace(text)
    lens = logit_lens(checkpoint, trace)
    data = grid(app)
    shown = lens.top[:, : layers.COLUMNS, 0]
    names = [token.text for token in checkpoint.tokenizer.tokens(shown.ravel().tolist())]
    assert [text for row in data["texts"] for text in row] == names
    assert np.allclose(data["values"], lens.probabilities[:, : layers.COLUMNS, 0], atol=1e-4)
    assert data["selected"] == {"row": len(lens.points) - 1, "column": position}
    token = int(trace.logits[position].argmax())
    found = logit_attribution(checkpoint, trace, position, token)
    assert f"**{found.logit:.4f}**".replace("-", "−") in said(app)
    drawn = why(app)
    into = [edge["direct"] for edge in drawn["edges"] if edge["depth"] == 0]
    assert len(drawn["edges"]) <= 12
    assert sum(into) + drawn["others"] == pytest.approx(found.logit, abs=1e-3)
    table = app.dataframe[0].value
    own = logit_lens(checkpoint, trace, [position], targets=[token])
    assert table.iloc[:, -2].tolist() == own.rank[:, 0].tolist()
    assert len(app.success) == 2  # both proofs hold


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("model", "text", "position"), [("stories", STORY, 4), ("zh-en", "我有一只猫。", 3), ("cloze", "a [MASK] cat", 2)]
)
def test_each_edge_says_what_becomes_of_the_answer_without_it(open_app, model, text, position):
    app = open_app(PAGE, model=model, text=text, position=position)
    checkpoint = load(model)
    trace = checkpoint.trace(text)
    token = int(trace.logits[position].argmax())
    found = answer_evidence(checkpoint, trace, position, token)
    removed = taken_out(checkpoint, trace, found)
    drawn = why(app)
    assert len(drawn["edges"]) == len(found.edges)
    ends = sorted(edge["total"] for edge in drawn["edges"])
    assert ends == pytest.approx(sorted(one.total for one in removed), abs=1e-5)
    kinds = [node["kind"] for node in drawn["nodes"]]
    assert kinds == sorted(kinds, key=("token", "part", "answer").index)
    assert kinds[-1] == "answer"
    for edge in drawn["edges"]:
        (one,) = {one for one in removed if abs(one.total - edge["total"]) < 1e-7}
        best = checkpoint.tokenizer.tokens([one.best])[0].text
        assert "stays first." in edge["said"] if one.best == token else f"“{best}” is first (" in edge["said"]
        assert f"to {labels.percent(one.probability)}" in edge["said"]
        assert drawn["nodes"][edge["second"]]["kind"] != "token"


def test_runs_that_take_long_wait_for_a_button(open_app, monkeypatch):
    monkeypatch.setattr(watched_work, "AT_ONCE", 1.0)
    app = open_app(PAGE, model="stories", text="Once upon a tree", position=3)
    assert all(edge["total"] is None for edge in why(app)["edges"])
    assert any(button.key == "lens.evidence.begin" for button in app.button)
    monkeypatch.setattr(watched_work, "MOST", 1.0)
    app = open_app(PAGE, model="stories", text="Once upon a tree", position=3)
    assert any("vf.analysis.taken_out" in box.value for box in app.info)


def test_the_page_attention_asks_why(open_app):
    app = open_app("pages/explore/attention.py", model="stories", text=STORY, position=4)
    app.button(key="next.why").click().run()
    assert not app.exception
    assert app.title[0].value == "Where does the answer come from?"
    assert app.query_params["position"] == "4"


def test_another_answer_and_what_is_taken_off_it_are_in_the_link(open_app):
    checkpoint = load("stories")
    trace = checkpoint.trace(STORY)
    best = trace.logits[4].topk(2).indices.tolist()
    app = open_app(PAGE, model="stories", text=STORY, position=4, dials=f"lens.token:{best[1]}~lens.against:next")
    found = logit_attribution(checkpoint, trace, 4, best[1], against=best[0])
    assert f"**{found.logit:.4f}**".replace("-", "−") in said(app)
    app.segmented_control(key="setting.lens.against").set_value("none").run()
    assert app.query_params["dials"] == f"lens.token:{best[1]}~lens.against:none"
    found = logit_attribution(checkpoint, trace, 4, best[1], against=None)
    assert f"**{found.logit:.4f}**".replace("-", "−") in said(app)


@pytest.mark.sweep
def test_a_part_is_looked_into_and_opens_on_the_page_attention(open_app, boxes_open):
    app = open_app(PAGE, model="stories", text=STORY, position=6, dials="lens.part:decoder.2.self.1")
    assert not app.error
    assert "through this head" in said(app)
    app.button(key="lens.head").click().run()
    assert {name: app.query_params[name] for name in ("site", "layer", "head", "query")} == {
        "site": "decoder",
        "layer": "2",
        "head": "1",
        "query": "6",
    }
    app = open_app(PAGE, model="stories", text=STORY, dials="lens.part:decoder.3.feedforward")
    assert not app.error
    checkpoint = load("stories")
    trace = checkpoint.trace(STORY)
    position = len(trace.logits) - 1
    found = logit_attribution(checkpoint, trace, position, int(trace.logits[position].argmax()))
    own = next(term.value for term in found.terms if (term.part, term.layer) == ("feedforward", 3))
    assert array(chart(app, 0)["data"][0]["x"]).sum() == pytest.approx(own, abs=1e-3)


def test_the_input_is_tinted_and_what_is_missing_is_said(open_app, boxes_open):
    app = open_app(PAGE, model="induction-by-hand", text="abcdabc")
    checkpoint = load("induction-by-hand")
    trace = checkpoint.trace("abcdabc")
    found = input_attribution(checkpoint, trace, 7, int(trace.logits[7].argmax()))
    less_the_mean = float(trace.logits[7].max() - trace.logits[7].mean())  # not the logit alone
    written = [f"{found.baseline:.3f}", f"{less_the_mean:.3f}", f"{found.missing:+.1g}"]
    baseline, value, missing = (one.replace("-", "−") for one in written)
    assert f"compared as chosen above, from {baseline} to {value}; with " in said(app)
    assert f" points of the integral {missing} is missing" in said(app)
    assert any(f"{found.integrated['decoder'][4]:+.4f}" in html for html in said(app).splitlines())
    told, table = inputs._told(trace.tokens["decoder"], found.integrated["decoder"])
    assert f"{found.integrated['decoder'].max():+.4f}" in told
    np.testing.assert_array_equal([row[-1] for row in table.rows], found.integrated["decoder"])


def test_tokens_that_read_the_same_are_told_apart_by_their_numbers():
    of = subject("induction-by-hand", "abcdabc")
    first, again, only = (Node("token", "decoder", row) for row in (1, 5, 4))
    assert [token(of, one) for one in (first, again, only)] == ["1 · a", "5 · a", "d"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("edits", ["", "encoder.0.self.q@0,1,0=2.5"])
def test_the_code_runs_and_gives_the_same(open_app, boxes_open, edits, capsys):
    app = open_app(PAGE, model="zh-en", text="我有一只猫。", position=2, edits=edits)
    code = next(one.value for one in app.code if "logit_lens" in one.value)
    assert "edit=Edit" in code if edits else "Edit" not in code
    run(code)
    printed = capsys.readouterr().out
    number = next(
        value for value in said(app).split("**") if value.count(".") == 1 and value.replace(".", "").isdigit()
    )
    assert number in printed or f"{float(number):.3f}" in printed


def test_a_model_without_a_head_that_predicts_is_said(open_app, monkeypatch):
    monkeypatch.setattr("vizformer.web.catalogue.model_cache.predicts", lambda model: False)
    app = open_app(PAGE, model="cloze", text="a cat")
    assert not app.exception
    assert "no answer to explain" in app.info[0].value


def test_gradients_of_too_much_are_refused_in_words(open_app, boxes_open, monkeypatch):
    monkeypatch.setattr(inputs, "WORK", 1000)
    app = open_app(PAGE, model="stories", text="a cat")
    assert "take too long here" in app.info[0].value


@pytest.mark.sample(2)
@pytest.mark.parametrize("count", [1, 11, 12, 13, 30])
def test_the_columns_are_around_the_position(open_app, count):
    app = open_app(PAGE, model="stories", text="a" + " cat" * (count - 1), position=count)
    n = count + 1
    assert not app.error
    data = grid(app)
    assert len(data["columns"]) == min(n, layers.COLUMNS)
    first = int(data["columns"][0].split()[0])
    assert first + data["selected"]["column"] == count
    assert first + len(data["columns"]) <= n


@pytest.mark.parametrize(("locale", "said_tied"), [("en-US", "30 tied"), ("zh-CN", "30 个并列")])
def test_a_tie_is_said_and_no_token_of_it_is_named(open_app, monkeypatch, locale, said_tied):
    checkpoint = induction_by_hand()
    with torch.no_grad():
        for layer in checkpoint.model.decoder.layers:
            weight = layer.self_attention.W_O.weight
            weight[weight.abs() < 0.5] = 0  # the random heads write nothing
    monkeypatch.setattr(model_cache, "checkpoint", lambda model: checkpoint)
    app = open_app(PAGE, locale=locale, model="induction-by-hand", text="a b c a b c", position=6)
    assert not app.exception
    assert grid(app)["texts"][0] == [said_tied.replace("30", str(checkpoint.tokenizer.vocab_size))] * 7
    table = app.dataframe[0].value
    assert [cell.endswith(" =") for cell in table.iloc[:, 1]] == [True, True, False]
    assert table.iloc[:, -2].tolist() == [checkpoint.tokenizer.vocab_size] * 2 + [1]


TOO_LARGE = "decoder.0.self.q@0,0,0=3e38;decoder.0.self.k@0,0,0=3e38"


@pytest.mark.parametrize(
    "page", [PAGE, *(f"pages/explore/{name}.py" for name in ("attention", "what_if")), "pages/learn/decoding.py"]
)
@pytest.mark.parametrize(("locale", "words"), [("en-US", "numbers are not finite"), ("zh-CN", "不再是有限的数")])
def test_numbers_that_are_no_longer_finite_are_said_in_words(open_app, page, locale, words):
    app = open_app(page, locale=locale, model="stories", text=STORY, edits=TOO_LARGE)
    assert not app.exception
    (warning,) = (box.value for box in app.warning if words in box.value)
    assert "decoder.0.mid" in warning
    assert "nan%" not in said(app)
    assert "nan%" not in "".join(element.proto.spec for element in app.get("plotly_chart"))


@pytest.mark.parametrize(
    ("lesson", "part"),
    [
        ("block", "stream"),
        ("block", "ffn"),
        ("training", "loss"),
        ("heads", "split"),
        ("qkv", "arithmetic"),
    ],
)
def test_lessons_go_on_with_numbers_that_are_no_longer_finite(open_app, lesson, part):
    app = open_app(
        f"pages/learn/{lesson}.py", model="stories", text="Once upon a time there was a", edits=TOO_LARGE, part=part
    )
    assert not app.exception
    assert not [error.value for error in app.error]
    assert not re.search(r"\bnan\b", said(app))


@pytest.mark.parametrize(
    ("model", "text"), [("zh-en", "我有一只猫。"), ("zh-en", "注意安全。"), ("cloze", "She has a small cat.")]
)
def test_it_opens_where_the_model_is_least_sure_unless_the_text_asks_about_a_place(open_app, model, text):
    checkpoint = load(model)
    trace = checkpoint.trace(text)
    best = trace.logits.double().softmax(-1).amax(-1)
    tokens = trace.tokens["decoder" if model == "zh-en" else "encoder"]
    rows = [row for row, token in enumerate(tokens) if not token.special]
    least = min(rows, key=lambda row: float(best[row]))
    assert least != 0
    app = open_app(PAGE, model=model, text=text)
    assert not app.exception
    assert f"Shown: position {least}, “{tokens[least].text}”" in " ".join(one.value for one in app.caption)
    assert app.session_state["vizformer.view"].view.position is None  # the link goes on to leave it out
    for other in (open_app(PAGE, model=model, text=text, position=0), open_app(PAGE, model="stories", text=STORY)):
        assert "Shown: position" not in " ".join(one.value for one in other.caption)


@pytest.mark.parametrize("page", ["lens", "what_if", "attention"])
@pytest.mark.sample(2)
def test_a_link_that_names_a_position_opens_on_it(open_app, page):
    def opened(**link):
        app = open_app(f"pages/explore/{page}.py", model="zh-en", text="注意安全。", **link)
        assert not app.exception
        strips = [part.proto for part in app.get("bidi_component") if part.proto.component_name == "vizformer_tokens"]
        return app, [json.loads(strip.json or strip.mixed.json)["selected"] for strip in strips]

    position = 2 if opened()[1] != [{"index": 2}] else 3  # another one than the page would open on
    app, selected = opened(position=position)
    assert selected == [{"index": position}]
    assert app.session_state["vizformer.view"].view.position == position


@pytest.mark.parametrize(
    ("page", "button", "link"),
    [
        ("what_if", "what_if.why", {"model": "stories", "text": "The queen lost"}),
        ("side_by_side", "side_by_side.why", {"model": "stories", "text": "The queen lost", "text2": "The king lost"}),
        ("generation", "generation.why", {"model": "stories", "text": "The queen lost", "new": 2}),
        ("generation", "generation.why", {"model": "zh-en", "text": "我有一只猫。", "new": 3}),
        ("blanks", "blanks.why", {"model": "cloze", "text": "The cat sat on the chair."}),
    ],
)
def test_every_page_with_an_answer_asks_why(open_app, page, button, link) -> None:
    app = open_app(f"pages/explore/{page}.py", **link)
    assert not app.exception
    said = app.button(key=button).label
    app.button(key=button).click().run()
    assert not app.exception
    answer = said.split("“")[1].split("”")[0].replace("\\", "")
    assert any(f"The logit of “{answer}”" in unmarked(one.value).replace("\\", "") for one in app.markdown), [
        one.value for one in app.markdown
    ]
