"""The page Side by side: what is on the screen is what the library says, and what is chosen is in the link."""

import json

import numpy as np
import pytest
import torch

import vizformer as vf
from recipes.handmade_models import induction_by_hand
from tests import tiny
from tests.bundled import load
from tests.checkpoints import folders
from tests.components.test_mount import sent
from tests.pages.reading import array, chart, number, open_boxes_of, said, tables
from vizformer.analysis import (
    head_divergences,
    head_pair,
    moved_weights,
    stream_cosines,
    two_answers,
    two_runs,
)
from vizformer.checkpoints import save
from vizformer.training.runs import Run
from vizformer.web.catalogue import model_cache, server_folder, sources, trainings
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.side_by_side import answers as in_python
from vizformer.web.pages.side_by_side import pair, weights
from vizformer.web.widgets import watched_work

PAGE = "pages/explore/side_by_side.py"
BOY, GIRL = "The boy was sad because", "The girl was sad because"
TRAINING = trainings.example().name


@pytest.fixture
def boxes_open(monkeypatch):
    open_boxes_of(monkeypatch, in_python, weights)


def grid(app):
    every = [sent(app, index) for index in range(len(app.get("bidi_component")))]
    return [data for data in every if data.get("texts")][-1]  # of two models, that of their weights comes before


def difference(app, index=2):
    return array(chart(app, index)["data"][0]["z"])


@pytest.mark.sweep
def test_two_texts_are_compared_as_the_library_does(open_app, boxes_open):
    app = open_app(PAGE, model="stories", text=BOY, second=GIRL, position=4)
    assert not app.exception
    assert not app.error
    model = load("stories")
    runs = two_runs(model, model.trace(BOY), model, model.trace(GIRL))
    found = head_divergences(runs, "decoder")
    assert grid(app)["texts"] == [[pair.bits(value) for value in row] for row in found]
    layer, head = (int(at) for at in np.unravel_index(found.argmax(), found.shape))
    assert grid(app)["selected"] == {"row": layer, "column": head}
    expected = head_pair(runs, "decoder", layer, head).difference
    seen = np.tril(np.ones_like(expected)) > 0
    assert np.allclose(difference(app)[seen], expected[seen], atol=1e-5)
    assert np.isnan(difference(app)[~seen]).all()
    spec = chart(app, 2)["data"][0]
    assert spec["zmax"] == -spec["zmin"] == pytest.approx(np.abs(expected[seen]).max(), abs=1e-5)
    assert np.allclose(array(chart(app, 3)["data"][0]["z"]), stream_cosines(runs, "decoder").cosines, atol=1e-5)
    answers = two_answers(runs, 4).tokens
    shown = tables(app)[0]
    assert [row[0] for row in shown] == [one.token.text for one in answers]
    assert [number(row[3]) for row in shown] == [
        pytest.approx(100 * (one.second - one.first), abs=0.051) for one in answers
    ]
    assert "boy → girl" in str(chart(app, 2)["layout"]["xaxis"]["ticktext"])
    assert not any("Which weights" in one.value for one in app.subheader)
    space = {}
    exec(app.code[0].value, space)
    assert np.allclose(space["head"].difference, expected)


def test_two_steps_of_a_training_are_compared_with_their_weights(open_app, boxes_open):
    app = open_app(PAGE, model=f"{TRAINING}@0", other=f"{TRAINING}@355", text="gcadgcadg", layer=1, head=2)
    assert not app.exception
    assert not app.error
    first, second = (Run(trainings.example()).after(step) for step in (0, 355))
    runs = two_runs(first, first.trace("gcadgcadg"), second, second.trace("gcadgcadg"))
    found = head_divergences(runs, "decoder")
    assert grid(app)["texts"] == [[pair.bits(value) for value in row] for row in found]
    assert any("Layer 1, head 2" in one.value for one in app.subheader)
    moved = moved_weights(first, second)
    table = app.dataframe[-1].value
    assert table["Tensor"].tolist() == [one.name for one in moved.tensors]
    most = moved.parts[0]
    assert f"Moved most: {weights.name(most, several=False)}, by {most.relative:.1%}" in said(app)
    assert app.selectbox(key="side_by_side.model").value == ModelRef("training", TRAINING, "355")
    space = {}
    exec(app.code[0].value, space)
    assert np.allclose(head_divergences(space["runs"], "decoder"), found, atol=1e-6)
    assert app.selectbox(key="view.model").value == ModelRef("training", TRAINING, "0")


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_it_opens_with_two_runs_and_the_head_that_differs_most(open_app, locale):
    app = open_app(PAGE, locale=locale)
    assert not app.exception
    assert not app.info
    values, chosen = np.array(grid(app)["values"]), grid(app)["selected"]
    assert np.unravel_index(values.argmax(), values.shape) == (chosen["row"], chosen["column"])
    assert not {"layer", "head"} & set(app.query_params)
    why = {"en-US": "Shown: layer {row}, head {column}. Of all heads", "zh-CN": "现在显示第 {row} 层第 {column} 个头"}
    assert why[locale].format(**chosen) in said(app)
    assert why[locale].format(**chosen) not in said(open_app(PAGE, locale=locale, layer=chosen["row"]))


@pytest.mark.parametrize(
    ("model", "text", "beside"),
    [
        ("zh-en", "My sister reads a book.", "My book reads a sister."),
        ("zh-en", "我爱北京的春天。", "我天北京的春爱。"),
        ("stories", "A small bird sang", "A sang bird small"),
    ],
)
def test_a_sentence_of_the_readers_stands_beside_its_words_in_another_order(open_app, model, text, beside):
    app = open_app(PAGE, model=model, text=text)
    assert not app.exception
    assert app.text_input(key="view.second").value == beside
    assert grid(app)["values"]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("a cat saw a cat", "a cat cat a saw"),
        ("It isn't my dog.", "It dog my isn't."),
        ("She [MASK] home", "She home [MASK]"),
        ("go on", "on go"),
        ("人人", ""),
        ("one", ""),
        ("🙂", ""),
        ("", ""),
    ],
)
def test_another_order_is_another_text_or_none(text, other):
    assert pair.in_another_order(text) == other


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("locale", "named", "shown"),
    [
        ("en-US", "layer 0, head 2 moved most, by {share} of its own weights", "its weights changed most"),
        ("zh-CN", "第 0 层第 2 个头变动最大，占自身权重的 {share}", "它的权重变化最大"),
    ],
)
def test_of_a_fine_tuned_model_the_head_that_moved_is_named_and_shown(
    open_app, tmp_path, monkeypatch, locale, named, shown
):
    checkpoint = tiny.checkpoint("decoder-only")
    save(checkpoint, tmp_path / "base")
    config = checkpoint.model.config
    own = slice(2 * config.d_head, 3 * config.d_head)
    attention = checkpoint.model.decoder.layers[0].self_attention
    with torch.no_grad():  # what head 2 writes, and not where it looks: the rows of the layer above differ
        attention.W_V.weight[own] *= 1.5
        attention.W_O.weight[:, own] *= 1.5
    save(checkpoint, tmp_path / "fine")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    app = open_app(PAGE, model="models/base", other="models/fine", text="a cat", locale=locale)
    assert not app.exception
    assert not app.error
    moved = moved_weights(tiny.checkpoint("decoder-only"), checkpoint).heads["decoder"]
    assert np.argwhere(moved > 0).tolist() == [[0, 2]]
    assert named.format(share=f"{moved[0, 2]:.1%}") in said(app)
    assert shown in said(app)
    assert grid(app)["selected"] == {"row": 0, "column": 2}
    assert not np.array(grid(app)["values"])[0].any()  # and another head's rows differ more


def test_what_is_chosen_goes_into_the_link(open_app):
    app = open_app(PAGE, model=f"{TRAINING}@0", text="gcadgcadg")
    assert "Choose a second model" in app.info[0].value
    app.selectbox(key="side_by_side.model").set_value(ModelRef("training", TRAINING)).run()
    assert not app.exception
    assert app.query_params["other"] == TRAINING
    app.text_input(key="view.second").set_value("gcad").run()
    assert app.query_params["second"] == "gcad"
    assert "only their first rows (5) are compared" in said(app)
    app.selectbox(key="side_by_side.model").set_value("").run()
    assert not app.exception
    assert "other" not in app.query_params
    example = next(one for one in app.selectbox(key="side_by_side.example").options if BOY in one)
    app.selectbox(key="side_by_side.example").select(example).run()
    assert not app.exception
    assert app.query_params["text"] == BOY
    assert app.text_input(key="view.second").value == GIRL


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        (dict(model="stories", text="A cat", other="induction-by-hand"), "other token ids"),
        (dict(model="stories", text="A cat", other="cloze"), "no stack that does the same"),
        (dict(model="stories", text="A cat", other="nonsense"), "There is no model called"),
        (dict(model="cloze", text="A [MASK].", second="A very [MASK]."), "the maps have no cells in common"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(open_app, link, reason):
    app = open_app(PAGE, **link)
    assert not app.exception
    assert any(reason in error.value for error in app.error)


@pytest.mark.sample(1)
@pytest.mark.parametrize("first", ["她有一只猫。", "", "猫" * 20_001])
def test_another_first_sentence_leaves_the_second_one(open_app, first):
    app = open_app(PAGE, model="zh-en", text="我有一只猫。", second="我有一只狗。")
    app.text_input(key="view.text").set_value(first).run()
    app.text_input(key="view.text").set_value("他有一只猫。").run()
    assert not app.exception
    assert app.text_input(key="view.second").value == "我有一只狗。"
    assert not app.info


def test_texts_of_unequal_length_still_show_their_maps_and_last_answers(open_app):
    app = open_app(PAGE, model="cloze", text="A [MASK].", second="A very [MASK].", locale="zh-CN")
    assert [array(chart(app, index)["data"][0]["z"]).shape for index in (0, 1)] == [(5, 5), (6, 6)]
    assert "没有差值可以显示" in app.info[0].value
    assert len(tables(app)) == 1


def test_a_translation_is_compared_before_the_same_target(open_app):
    app = open_app(PAGE, lang="en")  # 我有一只猫。 and, as proposed, 我有一只狗。
    assert not app.error
    model = load("zh-en")
    runs = two_runs(
        model,
        model.trace("我有一只猫。", target="I have a cat."),
        model,
        model.trace("我有一只狗。", target="I have a cat."),
    )
    assert grid(app)["texts"] == [[pair.bits(value) for value in row] for row in head_divergences(runs, "encoder")]
    assert tables(app)[0][0][0] in ("cat", "dog")  # where the two first disagree


def test_what_takes_long_waits_for_its_button(open_app, monkeypatch):
    monkeypatch.setattr(watched_work, "AT_ONCE", 1.0)
    app = open_app(PAGE, model="induction-by-hand", text="c d f e c", second="f d c e c")
    assert not app.exception
    assert not app.dataframe
    assert any("cell by cell" in text.value for text in app.text)


def test_a_step_of_a_training_is_a_model_of_its_own():
    model = ModelRef.parse(f"{TRAINING}@355")
    checkpoint = load(sources.folder(model))
    run = Run(trainings.example())
    expected = run.checkpoint([kept.step for kept in run.progress().snapshots].index(355))
    assert expected.key == run.after(355).key
    assert all(map(np.array_equal, checkpoint.model.parameters(), expected.model.parameters()))
    assert sources.title(model).endswith("step 355")
    assert sources.locate(ModelRef.parse(f"{TRAINING}@356")) is None


def test_code_tells_two_models_from_elsewhere_apart():
    first, second = (Subject(ModelRef.parse(name), "a", "") for name in ("models/base", "models/fine;dtype=bfloat16"))
    assert in_python.opening(first.model, "a") == "vf.load('a')"
    assert in_python.opening(second.model, "b") == "vf.load('b', dtype='bfloat16')"
    assert in_python.opening(ModelRef.parse(TRAINING), "c") == f"vf.load(asset('trainings', {TRAINING!r}))"


@pytest.mark.parametrize(
    ("locale", "words"), [("en-US", "squared length of most rows: embeddings: 143"), ("zh-CN", "嵌入：143")]
)
def test_a_dimension_that_makes_all_cosines_1_is_left_out_and_named(open_app, monkeypatch, locale, words):
    checkpoint = induction_by_hand()
    checkpoint.model.embedding.weight[:, 143] = 30.0  # a number that nothing else uses
    monkeypatch.setattr(model_cache, "checkpoint", lambda model: checkpoint)
    app = open_app(PAGE, locale=locale, model="induction-by-hand", text="a b c", second="a b d")
    assert not app.exception
    assert words in said(app)
    assert array(chart(app, 3)["data"][0]["z"])[0, 3] < 0.9


@pytest.mark.parametrize(
    ("value", "said"), [(0.18812, "0.188"), (0.00052, "0.001"), (0.00012, "1e−04"), (0.0, "0.000")]
)
def test_a_small_divergence_is_not_said_to_be_zero(value: float, said: str) -> None:
    assert pair.bits(value) == said


@pytest.fixture
def sentences(tmp_path, monkeypatch):
    """An encoder of sentences, whose files say that the first row is the vector of a text."""
    folders.bert(tmp_path / "sentences", model="BertModel")
    (tmp_path / "sentences" / "1_Pooling").mkdir()
    said = json.dumps({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    (tmp_path / "sentences" / "1_Pooling" / "config.json").write_text(said, encoding="utf-8")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    return vf.load(tmp_path / "sentences")


@pytest.mark.parametrize(
    ("lang", "words"), [("en", "Side by side no longer measures that"), ("zh", "“并排比较”已不再测量它")]
)
def test_a_link_to_the_similarity_of_sentences_says_that_it_is_gone(open_app, sentences, lang, words):
    texts = {"text": "the cat sat", "second": "the cap sat"}
    app = open_app(PAGE, model="models/sentences", lang=lang, dials="beside.pooling:cls", **texts)
    assert not app.exception
    assert not app.error
    assert [notice for notice in app.info if words in notice.value]
    runs = two_runs(*(one for text in texts.values() for one in (sentences, sentences.trace(text))))
    found = stream_cosines(runs, "encoder").cosines
    assert np.allclose(array(chart(app, 3)["data"][0]["z"]), found, atol=1e-6, equal_nan=True)
