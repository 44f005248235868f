"""A second model beside one of the reader's, in one press: the first one stays, and Side by side shows both."""

import json
import shutil
import threading

import numpy as np
import pytest
import torch

from tests.checkpoints import folders as made
from tests.checkpoints.test_state_dict import nano_gpt
from tests.components.test_mount import sent
from tests.pages.test_opening_by_path import link, press, said, type_path, visit
from vizformer.analysis import head_divergences, moved_weights, two_runs
from vizformer.analysis.side_by_side import total_variation
from vizformer.analysis.side_by_side.weights import MATRICES, PARTS
from vizformer.checkpoints import load
from vizformer.checkpoints.files import hub as library
from vizformer.errors import CheckpointError
from vizformer.web.catalogue import hub, recents
from vizformer.web.words import labels

__all__ = ["visit"]
PAGE, REPORT = "pages/explore/side_by_side.py", "pages/checkpoint/report.py"
TEXT = "I have two dogs"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A model, and the same after training that has changed the values of one layer alone."""
    base = made.gpt2(tmp_path_factory.mktemp("pair") / "base")
    tuned = shutil.copytree(base, base.parent / "tuned")
    weights = made.tensors(tuned)
    weights["transformer.h.1.attn.c_attn.weight"][:, 32:] *= 3.0
    made.save_tensors(tuned, weights)
    return base, tuned


def others(app) -> str:
    found = app.query_params["other"]
    return found[0] if isinstance(found, list) else found


def box_is_there(app) -> bool:
    return any(box.key == "opening.path" for box in app.text_input)


def test_a_path_typed_on_side_by_side_is_the_second_model_and_the_first_stays(open_app, visit, pair):
    base, tuned = pair
    app = open_app(PAGE, model=link(type_path(open_app(REPORT), base)), text=TEXT)
    first = link(app)
    assert box_is_there(app)  # nothing stands beside it yet
    type_path(app, tuned)
    assert not app.exception
    assert not app.error
    assert link(app) == first
    assert others(app).startswith("path/")
    assert others(app) != first
    assert app.selectbox(key="side_by_side.model").options.count("tuned: continues a text") == 1
    assert not box_is_there(app)
    assert any("Layer " in one.value for one in app.subheader)
    app.switch_page(REPORT).run()  # opened once, it stands in the list of every page
    assert "tuned: continues a text" in app.selectbox(key="view.model").options
    assert {one.name for one in recents.opened()} == {str(base), str(tuned)}


def test_the_box_of_model_report_opens_beside_a_reader_s_model(open_app, visit, pair):
    base, tuned = pair
    app = type_path(open_app(REPORT), base)
    first = link(app)
    app.checkbox(key="opening.beside").check().run()
    type_path(app, tuned)
    assert not app.exception
    assert not app.error
    assert link(app) == first
    assert others(app).startswith("path/")
    assert (
        app.selectbox(key="side_by_side.model").options.count("tuned: continues a text") == 1
    )  # it went to Side by side
    assert not [
        box for box in open_app(REPORT).checkbox if box.key == "opening.beside"
    ]  # of a bundled model there is none


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_list_of_second_models_opens_the_box_and_closes_it(open_app, visit, pair, locale):
    app = open_app(PAGE, model="stories", text=TEXT, locale=locale)
    assert not box_is_there(app)
    app.selectbox(key="side_by_side.model").select("own").run()
    assert box_is_there(app)
    app.selectbox(key="side_by_side.model").select("").run()
    assert not box_is_there(app)
    app.selectbox(key="side_by_side.model").select("own").run()
    type_path(app, pair[1], locale)
    assert link(app) == "stories"
    assert others(app).startswith("path/")
    assert not box_is_there(app)
    assert app.error  # which says that the two read other token ids


def test_bare_weights_beside_others_are_read_under_the_same_assumptions(open_app, visit, tmp_path):
    for seed in (0, 1):
        torch.save(nano_gpt(seed), tmp_path / f"nano{seed}.pt")
    opened = link(type_path(open_app(REPORT), tmp_path / "nano0.pt"))
    app = open_app(PAGE, model=f"{opened};n_heads=4;activation=gelu", text="1 2 3 4")
    type_path(app, tmp_path / "nano1.pt")
    assert not app.exception
    assert others(app).partition(";")[2] == "n_heads=4;activation=gelu"


def test_what_does_not_open_leaves_the_first_alone_and_says_why(open_app, visit, pair, tmp_path):
    (tmp_path / "many").mkdir()
    for number in range(1001):
        (tmp_path / "many" / str(number)).touch()
    app = open_app(PAGE, model=link(type_path(open_app(REPORT), pair[0])), text=TEXT)
    for path, reason in (
        (tmp_path / "many", "more than 1000 files"),
        (tmp_path / "nowhere", "There is nothing"),
        (pair[0], "This is the first model itself"),
    ):
        type_path(app, path)
        assert not app.exception
        assert reason in said(app)
        assert "other" not in app.query_params
        assert box_is_there(app)
    cut = shutil.copytree(pair[1], tmp_path / "cut")
    file = cut / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    type_path(app, cut)
    assert not app.exception
    assert app.error
    assert link(app).startswith("path/")


def test_a_name_that_the_hub_does_not_have_is_said_where_it_was_typed(open_app, visit, monkeypatch):
    monkeypatch.setattr(hub, "_DESK", hub._Desk())
    pressed = threading.Event()

    def fetch(name, progress, accept):
        pressed.wait(20)
        raise CheckpointError("The hub has no model {name}.", name=name)

    monkeypatch.setattr(library, "fetch", fetch)
    app = open_app(PAGE, model="stories", text=TEXT)
    app.selectbox(key="side_by_side.model").select("own").run()
    app.text_input(key="opening.hub").set_value("nobody/nothing")
    press(app, "Fetch and open")
    pressed.set()
    while not hub.look("nobody/nothing").done:
        pass
    app.run()
    assert not app.exception
    assert "The hub has no model nobody/nothing" in said(app)
    assert link(app) == "stories"
    assert "other" not in app.query_params


def grids(app):
    every = [sent(app, index) for index in range(len(app.get("bidi_component")))]
    return [data for data in every if data.get("texts")]


@pytest.mark.parametrize(
    ("locale", "words"), [("en-US", "Moved most: layer 1, W_V"), ("zh-CN", "变动最大：第 1 层 W_V")]
)
def test_the_page_opens_on_what_moved(open_app, visit, pair, locale, words):
    base, tuned = pair
    app = open_app(PAGE, model=link(type_path(open_app(REPORT), base)), text=TEXT, locale=locale)
    type_path(app, tuned, locale)
    first, second = load(base), load(tuned)
    moved = moved_weights(first, second)
    assert words in said(app)
    assert labels.percent(moved.parts[0].relative) in said(app)
    parts, heads = grids(app)
    assert parts["texts"] == [[labels.percent(one) for one in row] for row in moved.grid("decoder")]
    assert parts["columns"][:4] == list(MATRICES)
    assert np.argmax(np.ravel(parts["values"])) == 1 * len(PARTS) + PARTS.index("W_V")
    apart = head_divergences(
        two_runs(first, first.trace(TEXT), second, second.trace(TEXT)), "decoder", measure=total_variation
    )
    count = {"en-US": "{} of {} heads move", "zh-CN": "{1} 个头中有 {0} 个"}[locale]
    assert count.format(int((apart > 0.1).sum()), apart.size) in said(app)
    head = moved.most_moved_head("decoder")
    assert head is not None
    assert heads["selected"] == {"row": head[0], "column": head[1]}  # not that of layer 2, which looks at what 1 wrote
    assert head[0] == 1


def test_two_folders_with_the_same_weights_are_said_to_be_the_same(open_app, visit, pair, tmp_path):
    copy = shutil.copytree(pair[0], tmp_path / "copy")
    app = open_app(PAGE, model=link(type_path(open_app(REPORT), pair[0])), text=TEXT)
    type_path(app, copy)
    assert not app.exception
    assert "The weights of both models are the same: nothing moved." in said(app)
    assert len(grids(app)) == 1


def test_models_that_read_a_text_otherwise_still_say_what_moved(open_app, visit, pair, tmp_path):
    """Of one shape, with two tokens of the vocabulary exchanged."""
    other = shutil.copytree(pair[1], tmp_path / "other")
    vocabulary = json.loads((other / "vocab.json").read_text(encoding="utf-8"))
    vocabulary["I"], vocabulary["t"] = vocabulary["t"], vocabulary["I"]
    (other / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    app = open_app(PAGE, model=link(type_path(open_app(REPORT), pair[0])), text=TEXT)
    type_path(app, other)
    assert not app.exception
    assert "other token ids" in app.error[0].value
    assert "Moved most: layer 1, W_V" in said(app)
    assert "for another token: 2" in said(app)
    assert len(grids(app)) == 1


def test_models_of_other_shapes_say_what_is_not_compared(open_app, visit, pair, tmp_path):
    deeper = made.gpt2(tmp_path / "deeper", n_layer=4)
    app = open_app(PAGE, model=link(type_path(open_app(REPORT), pair[0])), text=TEXT)
    type_path(app, deeper)
    assert not app.exception
    assert not app.error
    assert "Not compared, as only one model has them in this shape: decoder.layers.3." in said(app)
    wider = made.gpt2(tmp_path / "wider", n_embd=32)
    app.selectbox(key="side_by_side.model").select("own").run()
    type_path(app, wider)
    assert not app.exception
    assert "most of their weights have no counterpart" in said(app)
    assert len(grids(app)) == 1  # the heads are compared all the same
