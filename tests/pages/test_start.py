"""The start page: the walk draws what the library says, each scene leads to its lesson, three doors lead on."""

import numpy as np
import pytest

from tests import tiny
from tests.bundled import load
from tests.checkpoints import folders as made
from tests.components.test_mount import sent
from vizformer.analysis.attribution.forward_scenes import walkthrough
from vizformer.checkpoints import save
from vizformer.components.walkthrough import KINDS
from vizformer.web.catalogue import server_folder
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import progress
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import usual_query
from vizformer.web.tools.start import film, scenes

PAGE = "pages/learn/start.py"


def drawn(app) -> dict:
    [index] = [i for i, one in enumerate(app.get("bidi_component")) if "walkthrough" in one.proto.component_name]
    return sent(app, index)


def captions(app) -> dict[str, str]:
    return {scene["kind"]: scene["caption"] for scene in drawn(app)["scenes"]}


def follow(app, scene: str):
    """The link of a scene, as a browser reports it."""
    assert scene in KINDS
    app.session_state["walk"] = {"selected": {"scene": scene, "seq": 1.0}}
    return app.run()


def said_by(app) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[-1] for name, value in app.query_params.items()}


def test_the_walk_is_this_forwards(open_app):
    checkpoint = load("zh-en")
    trace = checkpoint.trace("我有一只猫。")
    at, n = usual_query(trace.tokens["encoder"]), len(trace.tokens["encoder"])
    found = walkthrough(checkpoint, trace, at)
    app = open_app()
    assert not app.exception
    assert not app.error
    data = drawn(app)
    assert [scene["kind"] for scene in data["scenes"]] == [
        *("characters", "tokens", "vectors", "added", "attention", "residual", "layers", "cross", "next", "written")
    ]
    assert 60 <= sum(scene["seconds"] for scene in data["scenes"]) <= 90
    assert [token["id"] for token in data["tokens"]] == [token.id for token in trace.tokens["encoder"]]
    for name in ("embedded", "added", "entering"):
        np.testing.assert_allclose(data[name].reshape(n, -1), getattr(found, name), atol=1e-6)
    np.testing.assert_allclose(data["attention_weights"].reshape(n, n), found.look.weights, atol=1e-6)
    np.testing.assert_allclose(data["cross_weights"].reshape(6, n), found.cross.weights, atol=1e-6)
    np.testing.assert_allclose(data["sublayers"]["lengths"], found.sublayers.lengths, rtol=1e-5)
    np.testing.assert_allclose(data["layers"]["cosines"], found.cosines, rtol=1e-5)
    np.testing.assert_allclose(data["next"]["probabilities"], [one.probability for one in found.candidates], rtol=1e-5)
    np.testing.assert_allclose(data["written"]["probabilities"], found.writing.probabilities, rtol=1e-5)
    assert data["cross"]["queries"][found.cross.query] == "a → cat"


def test_the_walk_is_told_in_sentences_and_as_a_table_of_the_numbers_that_are_drawn(open_app):
    data = drawn(open_app())
    walk = scenes.walk(Subject(ModelRef("bundled", "zh-en"), "我有一只猫。", ""))
    said, table = film.told(walk)
    assert all(scene["caption"] in said for scene in data["scenes"])
    assert {row[0] for row in table.rows} == {scene["title"] for scene in data["scenes"]}
    assert len(table.rows) == table.total < 1000
    rows = {scene["kind"]: [row[1:] for row in table.rows if row[0] == scene["title"]] for scene in data["scenes"]}
    at, look = data["followed"], data["attention"]["query"]
    assert [row[2] for row in rows["tokens"]] == [token["id"] for token in data["tokens"]]
    entering = [value for name, __, value in rows["added"] if name == "together"]
    np.testing.assert_allclose(entering, data["entering"].reshape(len(data["tokens"]), -1)[at], atol=1e-6)
    weights = [value for *__, value in rows["attention"]]
    np.testing.assert_allclose(weights, data["attention_weights"].reshape(2 * [len(data["tokens"])])[look], atol=1e-6)
    lengths = [value for __, place, value in rows["layers"] if place == "length"]
    np.testing.assert_allclose(lengths, data["layers"]["lengths"], rtol=1e-5)
    assert [row[0] for row in rows["next"]] == data["next"]["names"]


@pytest.mark.parametrize(
    ("locale", "words"),
    [
        (
            "en-US",
            {
                "vectors": "picks a row of a learned table, times 16: ",
                "tokens": "“猫” is number {id}",
                "cross": "after “a”, there to choose “cat”, looks at “猫” with weight 0.9",
            },
        ),
        (
            "zh-CN",
            {
                "tokens": "“猫” 的编号是 {id}",
                "vectors": "取出一行，再乘以 16：",
                "cross": "要选出 “cat” 的那一行，以权重 0.9",
            },
        ),
    ],
)
def test_captions_hold_the_sentences_own_tokens_and_numbers(open_app, locale, words):
    app = open_app(locale=locale)
    said = captions(app)
    cat = next(token for token in load("zh-en").encode("我有一只猫。") if token.text == "猫")
    for kind, part in words.items():
        assert part.format(id=cat.id) in said[kind]
    data = drawn(app)
    row = data["entering"].reshape(len(data["tokens"]), -1)[data["followed"], 0]
    assert f"= {scenes.number(row)}" in said["added"]
    weight = data["attention_weights"].reshape(2 * [len(data["tokens"])])[
        data["attention"]["query"], data["attention"]["key"]
    ]
    assert f"{weight:.3f}" in said["attention"]
    assert f"{data['next']['probabilities'][0]:.1%}" in said["next"]
    assert "I have a cat." in said["written"]


def test_other_architectures_end_as_they_do(open_app):
    app = open_app(PAGE, model="stories", text="The cat sat on the mat")
    data, said = drawn(app), captions(app)
    assert list(said)[3:] == ["turned", "attention", "residual", "layers", "next"]
    assert "picks a row of a learned table: “mat”" in said["vectors"]  # as it stands in the table
    assert data["followed"] == len(data["tokens"]) - 1  # the text goes on after it
    assert "RoPE" in said["turned"]
    assert "344°" in said["turned"]  # position 6, one radian a position
    assert data["attention_blocked"].reshape(7, 7).sum() == 21
    app = open_app(PAGE, model="cloze", text="She opened the [MASK].")
    data, said = drawn(app), captions(app)
    assert list(said)[3:] == ["added", "attention", "residual", "layers", "next"]
    assert data["tokens"][data["followed"]]["text"] == "[MASK]"
    assert "normalised" in said["added"]
    assert "to stand in this place" in said["next"]


def test_models_that_lack_something(open_app, tmp_path, monkeypatch):
    made.t5(tmp_path / "headless-t5", model="T5Model")
    made.bert(tmp_path / "headless", model="BertModel")
    save(tiny.checkpoint("decoder-only", **tiny.ALIBI), tmp_path / "alibi")
    save(tiny.checkpoint("encoder-only", positions="none"), tmp_path / "unplaced")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    for model, place, ends in (
        ("headless-t5", "biased", "cross"),
        ("headless", "added", "layers"),
        ("alibi", "biased", "next"),
        ("unplaced", "unplaced", "next"),
    ):
        app = open_app(PAGE, model=f"models/{model}", text="The cats")
        assert not app.exception
        assert not app.error, model
        said = captions(app)
        assert (list(said)[3], list(said)[-1]) == (place, ends), model
        assert not any("nan" in caption or "None" in caption for caption in said.values())


def test_of_a_long_text_it_says_how_much_is_drawn(open_app):
    app = open_app(PAGE, text="我有一只猫。" * 6)
    data, tokens = drawn(app), load("zh-en").encode("我有一只猫。" * 6)
    assert len(data["tokens"]) == 16
    assert f"The text has {len(tokens)} tokens; the first 16 are drawn." in data["note"]
    assert "".join(data["characters"]) == "".join(token.text for token in tokens[:16] if not token.special)
    assert (
        "36 characters, and the model is given nothing else" in captions(app)["characters"]
    )  # not the 15 of the picture


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("scene", "title", "link"),
    [
        ("tokens", "Tokens and embeddings", {"part": "pieces"}),
        ("added", "Positional encoding", {"part": "waves"}),
        ("attention", "Query, key, value", {"part": "arithmetic"}),
        ("cross", "Cross-attention", {"part": "memory", "site": "cross"}),
        ("residual", "Add & norm, feed-forward", {}),
        ("next", "Decoding: generating text", {"part": "ways"}),
        ("written", "Decoding: generating text", {}),
    ],
)
def test_a_scene_leads_to_what_takes_it_apart(open_app, scene, title, link):
    app = open_app(text="他喜欢喝水。")
    looked = drawn(app)["cross" if scene == "cross" else "attention"]
    app = follow(app, scene)
    assert not app.exception
    assert app.title[0].value == title
    now = said_by(app)
    assert now["text"] == "他喜欢喝水。"
    assert link.items() <= now.items()
    if scene in ("attention", "cross"):  # the same row, whose weights it takes apart
        assert (
            int(now.get("query", usual_query(load("zh-en").trace("他喜欢喝水。").tokens["encoder"]))) == looked["query"]
        )


def doors(app) -> list:
    """The links below the film."""
    (body,) = [block for block in app.get("flex_container") if block.proto.id.endswith("page-body")]
    return body.get("page_link")


def test_three_doors(open_app):
    app = open_app()
    assert [one.value for one in app.subheader] == ["Learn", "Explore", "Open your own model"]
    assert [element.proto.page for element in doors(app)] == [
        "learn",
        "attention",
        "generation",
        "blanks",
        "open",
        "train",
    ]
    assert app.button(key="start.learn").label == "Begin with: The map →"


def test_the_door_to_the_course_knows_what_was_done(open_app):
    app = open_app(PAGE)
    app.session_state[progress._DONE] = frozenset({"map/share", "map/path", "map/cost", "map/felt", "tokens/pieces"})
    app.run()
    assert any(one.value.startswith("5 of ") for one in app.caption)
    button = app.button(key="start.learn")
    assert button.label == "Continue with: Tokens and embeddings →"
    assert button.click().run().title[0].value == "Tokens and embeddings"


def test_the_doors_stay_where_a_sentence_cannot_be_read(open_app):
    app = open_app(PAGE, text="")
    assert not app.exception
    assert app.error
    assert [one.value for one in app.subheader] == ["Learn", "Explore", "Open your own model"]
