"""The first page: its picture is this forward's, its presses write and lead on, and it names what the model does."""

import base64
import gzip
import json
import re

import numpy as np
import pytest

from tests import tiny
from tests.bundled import load
from tests.checkpoints import folders as made
from tests.components.test_mount import sent
from vizformer.checkpoints import save
from vizformer.components.packing import LIMIT_BYTES
from vizformer.components.whole_model_picture import DOES
from vizformer.web.catalogue import server_folder
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.start import EXAMPLES
from vizformer.web.widgets.whole_model import picture

PAGE = "pages/learn/start.py"


def drawn(app) -> dict:
    [index] = [
        i for i, one in enumerate(app.get("bidi_component")) if "whole_model_picture" in one.proto.component_name
    ]
    return sent(app, index)


def press(app, does: str, **where):
    """What a browser reports."""
    assert does in DOES
    app.session_state["picture"] = {"selected": {"does": does, "seq": 1.0, **where}}
    return app.run()


def said_by(app) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[-1] for name, value in app.query_params.items()}


def test_the_picture_is_this_forwards(open_app):
    trace = load("zh-en").trace("我有一只猫。")
    app = open_app()
    assert not app.exception
    assert not app.error
    data = drawn(app)
    encoder, decoder = data["lanes"]
    assert encoder["tokens"] == [token.text for token in trace.tokens["encoder"]]
    assert decoder["tokens"] == [token.text for token in trace.tokens["decoder"]]
    assert "".join(data["written"]) == "I have a cat."
    at = 0
    for lane in data["lanes"]:
        for maps in lane["maps"]:
            record = trace[f"{lane['stack']}.{maps['layer']}.{'cross' if maps['kind'] == 'cross' else 'self'}"]
            for head in maps["heads"]:
                weights, scores = record.pattern(head).numpy().ravel(), record.scores(head).numpy().ravel()
                here = slice(at, at + weights.size)
                np.testing.assert_allclose(data["weights"][here] / 65535, weights, atol=1e-5)
                np.testing.assert_allclose(data["scores"][here], scores, atol=1e-5)
                at += weights.size
    assert at == len(data["weights"])
    assert set(data["addresses"]) == {"encoder", "decoder", "cross"}


@pytest.mark.parametrize(
    ("model", "text", "title"),
    [
        ("zh-en", "I have a cat.", "A Transformer translating your sentence."),
        ("stories", "The cat sat on the mat", "A Transformer continuing your text."),
        ("cloze", "She opened the [MASK].", "A Transformer filling in the blank."),
    ],
)
def test_it_says_what_the_model_does(open_app, model, text, title):
    app = open_app(PAGE, model=model, text=text)
    assert not app.exception
    assert app.title[0].value.startswith(title)
    assert len(drawn(app)["lanes"]) == (2 if model == "zh-en" else 1)


def test_there_is_one_field_and_examples_that_work(open_app):
    app = open_app()
    assert [one.key for one in app.text_input if one.key == "view.text"] == ["view.text"]
    for at, (__, model, text) in enumerate(EXAMPLES):
        app = app.button(key=f"start.example.{at}").click().run()
        assert not app.exception
        assert not app.error
        assert app.text_input(key="view.text").value == text
        assert app.selectbox(key="view.model").value.name == model.name


@pytest.mark.parametrize(
    ("model", "text", "row", "token", "now"),
    [
        ("zh-en", "我有一只猫。", 2, "dog", {"target": "I have dog"}),
        ("stories", "The dog went to", 4, "the", {"text": "The dog went to the"}),
        ("cloze", "She opened the [MASK].", 4, "door", {"text": "She opened the door."}),
    ],
)
def test_a_token_that_is_pressed_is_written(open_app, model, text, row, token, now):
    app = open_app(PAGE, model=model, text=text)
    checkpoint = load(model)
    [piece] = [
        one for one in checkpoint.encode(f"a {token} a" if model != "zh-en" else f" {token}") if one.text == token
    ]
    app = press(app, "write", row=row, token=piece.id)
    assert not app.exception
    assert now.items() <= said_by(app).items()
    lane = drawn(app)["lanes"][-1]
    assert token in lane["tokens"]


@pytest.mark.parametrize(
    ("does", "title", "link"),
    [
        ("heads", "Attention", {"site": "cross", "layer": "2", "head": "1", "query": "3"}),
        ("embedding", "Tokens and embeddings", {"part": "lookup"}),
        ("positions", "Positional encoding", {"part": "waves"}),
        ("norm", "Add & norm, feed-forward", {}),
        ("output", "Decoding: generating text", {"part": "ways"}),
    ],
)
def test_a_press_leads_to_what_takes_it_apart(open_app, does, title, link):
    app = open_app(text="他喜欢喝水。")
    app = press(app, does, kind="cross", layer=2, head=1, query=3)
    assert not app.exception
    assert app.title[0].value == title
    assert link.items() <= said_by(app).items()


def test_a_layer_and_all_heads_of_one_are_drawn_when_asked_for(open_app):
    app = open_app(PAGE, model="stories", text="The cat sat on the mat")

    def maps() -> list[tuple[int, int]]:
        return [(one["layer"], len(one["heads"])) for one in drawn(app)["lanes"][0]["maps"]]

    assert maps() == [(0, 4), (2, 4), (4, 4)]
    app = press(app, "layer", layer=3)
    assert maps() == [(0, 4), (3, 4), (4, 4)]
    app.session_state["picture"] = {"selected": {"does": "all", "kind": "decoder", "layer": 3, "seq": 2.0}}
    app = app.run()
    assert maps() == [(0, 4), (3, 8), (4, 4)]
    app = app.selectbox(key="view.model").set_value(ModelRef("bundled", "cloze")).run()
    assert maps() == [(0, 4), (2, 4), (3, 4)]  # of another model nothing was asked for


def test_what_was_written_can_be_taken_back(open_app):
    app = open_app(text="我有一只猫。", target="I have a dog")
    assert not [one for one in app.text_input if one.key == "view.target"]  # what is written stands in the picture
    assert not drawn(app)["own"]
    app = press(app, "own")
    assert drawn(app)["own"]
    assert "".join(drawn(app)["written"]) == "I have a cat."
    assert "target" not in said_by(app)


def test_tokens_of_the_proposed_sentences_alone_are_glossed_for_readers_of_english(open_app):
    for text in ("我有一只猫。", "我爱北京的春天。", "The cat sat on the mat.", "I have a cat."):
        lanes = drawn(open_app(text=text))["lanes"]
        glossed = [
            token for lane in lanes for token, gloss in zip(lane["tokens"], lane["glosses"], strict=False) if gloss
        ]
        chinese = [token for lane in lanes for token in lane["tokens"] if "一" <= token <= "鿿"]
        assert glossed == chinese != []
    for changes in ({"text": "我有一只狗。"}, {"text": "我有一只猫。", "lang": "zh"}):
        assert not any(gloss for lane in drawn(open_app(**changes))["lanes"] for gloss in lane["glosses"])


def test_models_that_lack_something(open_app, tmp_path, monkeypatch):
    made.t5(tmp_path / "headless-t5", model="T5Model")
    made.bert(tmp_path / "headless", model="BertModel")
    save(tiny.checkpoint("decoder-only", **tiny.ALIBI), tmp_path / "alibi")
    save(tiny.checkpoint("encoder-only", positions="none"), tmp_path / "unplaced")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    for model, added, predicts in (
        ("headless-t5", False, False),
        ("headless", True, False),
        ("alibi", False, True),
        ("unplaced", False, True),
    ):
        app = open_app(PAGE, model=f"models/{model}", text="The cats")
        assert not app.exception
        assert not app.error, model
        data = drawn(app)
        assert (data["lanes"][0]["added"], bool(data["candidates"])) == (added, predicts), model


def test_of_a_long_text_the_first_tokens_travel_and_the_rest_is_counted(open_app):
    data = drawn(open_app(PAGE, text="我有一只猫。" * 6))
    tokens = load("zh-en").encode("我有一只猫。" * 6)
    lane = data["lanes"][0]
    assert (len(lane["tokens"]), lane["count"]) == (31, len(tokens))
    assert sum(data[name].nbytes for name in ("weights", "scores", "reasons", "strips", "totals")) < LIMIT_BYTES / 20


def test_what_it_begins_with_is_told_in_a_sentence_and_a_table():
    subject = Subject(ModelRef("bundled", "zh-en"), "我有一只猫。", "")
    said, table = picture.told(subject)
    assert "“a” attends to “猫” with weight 0." in said
    weights = [row[-1] for row in table.rows if row[2] == "weight"]
    assert sum(weights) == pytest.approx(1)
    assert f"weight {max(weights):.3f}" in said


def test_what_is_looked_at_is_offered_as_a_page_without_a_server(open_app, monkeypatch):
    offered = []
    monkeypatch.setattr(picture, "take_away", lambda *pictures, key: offered.extend(pictures))
    assert not open_app(text="我有一只猫。", target="I have a dog", lang="zh").exception
    [((label, ending), make)] = offered[0].more.items()
    assert (label, ending) == ("保存为网页", "html")
    page = make().decode()
    packed = re.search(r'"packed": "([^"]+)", "language": "zh_CN"', page)[1]
    [run] = json.loads(gzip.decompress(base64.b64decode(packed)))["runs"]
    shown = run["pictures"][""]
    assert shown["lanes"][1]["tokens"] == ["<s>", "I", "have", "a", "dog"]
    for lane in shown["lanes"]:
        for one in lane["maps"]:
            for head in one["heads"]:
                assert f"{one['kind']}/{one['layer']}/{head}" in run["answers"]


def doors(app) -> list:
    """The links below the picture."""
    (body,) = [block for block in app.get("flex_container") if block.proto.id.endswith("page-body")]
    return [element.proto.page for element in body.get("page_link")]


def test_one_line_of_doors_also_where_a_sentence_cannot_be_read(open_app):
    assert doors(open_app()) == ["path", "attention", "teach", "open"]
    app = open_app(PAGE, text="")
    assert not app.exception
    assert app.error
    assert doors(app) == ["path", "attention", "teach", "open"]
