"""The Q·K·V page and the layer page show what the library computes."""

import re

import numpy as np
import pytest

from tests.bundled import load
from vizformer import explain
from vizformer.analysis.heads.measures import find_telling_head
from vizformer.web.link.view import usual_query

QKV, LAYER = "pages/learn/qkv.py", "pages/learn/layer.py"
TEXT = "他喜欢喝水。"


@pytest.fixture(scope="module")
def checkpoint():
    return load("zh-en")


def tables(app) -> list[list[list[str]]]:
    """The cells of every matrix on the page, row by row."""
    html = [element.proto.body for element in app.get("html") if "vf-matrix" in element.proto.body]
    found = [table for body in html for table in re.findall(r"<tbody>(.*?)</tbody>", body, re.S)]
    return [
        [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", t, re.S)] for t in found
    ]


def printed(value: float) -> str:
    text = f"{value:.1e}" if value != 0 and abs(value) < 0.5e-4 else f"{value:.4f}"
    return "−∞" if np.isneginf(value) else text.replace("-", "−")


@pytest.mark.sample(1)
@pytest.mark.parametrize("site", ["encoder", "decoder", "cross"])
def test_every_step_shows_the_librarys_result(open_app, checkpoint, site):
    name = {"encoder": "encoder.1.self", "decoder": "decoder.1.self", "cross": "decoder.1.cross"}[site]
    steps = explain.attention_steps(checkpoint, checkpoint.trace(TEXT), name, 2, 1)
    app = open_app(QKV, text=TEXT, site=site, layer=1, head=2, query=1)
    for index, step in enumerate(steps):
        app = app if index == 0 else app.button(key="steps.forward").click().run()
        assert not app.exception
        box = app.selectbox(key="view.step")
        assert box.options[box.index].startswith(f"{index} · {step.title}")
        assert any(step.code in code.value for code in app.code)
        row = np.atleast_2d(step.result)[0]
        shown = [printed(float(v)) for v in (row if len(row) <= 8 else [*row[:6], row[-1]])]
        assert [cell for cell in tables(app)[-1][0] if cell != "…"] == shown, step.key
        assert len(app.success) == 1
        assert not app.error
    assert app.button(key="steps.forward").disabled


def test_all_at_once_and_back(open_app):
    app = open_app(QKV, text=TEXT, part="arithmetic")
    app.toggle(key="steps.all").set_value(True).run()
    assert len(app.success) == len(app.subheader) == 16
    app.toggle(key="steps.all").set_value(False).run()
    assert len(app.success) == 1


def test_a_number_set_by_hand_changes_the_step_and_says_so(open_app):
    app = open_app(QKV, text=TEXT, edits="encoder.0.self.q@0,0,0=30", query=0, step=1)
    assert any("Edited" in warning.value for warning in app.warning)
    assert any("30.0000" in cell for table in tables(app) for row in table for cell in row)
    assert not app.error
    app.button(key="edits.reset").click().run()
    assert not app.warning
    assert "edits" not in app.query_params


def test_the_toys_walk_ends_in_the_lectures_numbers(open_app):
    app = open_app(LAYER, material="toy")
    last = tables(app)[:-1]
    expected = [
        ["−1.0328", "−0.9185", "0.6710", "1.2804"],
        ["−1.4175", "−0.1948", "1.3775", "0.2347"],
        ["−1.0022", "−0.8035", "0.3029", "1.5028"],
    ]
    assert expected in last


@pytest.mark.parametrize(("site", "layer"), [("encoder", 0), ("decoder", 0), ("decoder", 2)])
def test_every_step_of_a_layer_is_proved(open_app, site, layer):
    app = open_app(LAYER, text=TEXT, site=site, layer=layer)
    app.toggle(key="steps.all").set_value(True).run()
    assert not app.exception
    assert not app.error
    assert len(app.success) == len(app.subheader) > 15
    assert any("vocabulary" in heading.value for heading in app.subheader) == (layer == 2)


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_a_query_of_the_toy_can_be_set_and_the_change_runs_to_the_output(open_app, stack):
    app = open_app(LAYER, material="toy", site=stack)
    before = tables(app)
    app.selectbox(key=f"toy.tensor.{stack}").set_value(f"{stack}.0.self.q").run()
    # Position 1: in the decoder position 0 sees only itself, whatever it asks for.
    app.number_input(key=f"toy.{stack}.0.self.q.1").set_value(1).run()
    app.number_input(key=f"toy.{stack}.0.self.q.(0, 1, 0).").set_value(9.0).run()
    app.button(key="toy.set").click().run()
    assert not app.exception
    assert not app.error
    assert app.query_params["toy"] in (f"{stack}.0.self.q@0,1,0=9", [f"{stack}.0.self.q@0,1,0=9"])
    after = tables(app)
    assert any("9.0000" in cell for table in after for row in table for cell in row)
    assert before[-2] != after[-2]  # the overview's last table, the layer's output; the step's own comes after it
    app.button(key="toy.reset").click().run()
    assert tables(app)[:-1] == before[:-1]


def test_every_number_is_there_as_soon_as_its_box_is_opened(open_app, checkpoint):
    (step, *_) = explain.layer_steps(checkpoint, checkpoint.trace(TEXT), "encoder.0")
    app = open_app(LAYER, text=TEXT, layer=0)
    assert not app.dataframe  # tables of hundreds of columns are not made for a closed box
    app.session_state[f"steps.numbers.{step.key}"] = True
    app.run()
    assert not app.error
    np.testing.assert_allclose(app.dataframe[0].value.to_numpy(), step.result, rtol=1e-6)


@pytest.mark.parametrize("site", ["encoder", "decoder"])
def test_the_layer_of_the_telling_head_is_shown_where_nobody_chose(open_app, checkpoint, site):
    trace = checkpoint.trace(TEXT)
    found = find_telling_head(trace, site, usual_query(trace.tokens[site]))
    app = open_app(LAYER, text=TEXT, site=site)
    assert app.selectbox(key="view.layer").value == found.layer
    which = "the heads that do not rest on one token" if found.resting else "all heads"
    assert any(f"Shown: layer {found.layer}. Of {which}" in box.value for box in app.caption)
    app = open_app(LAYER, text=TEXT, site=site, layer=0)
    assert app.selectbox(key="view.layer").value == 0
    assert not any("Shown: layer" in box.value for box in app.caption)


def test_the_other_stack_opens_on_its_own_telling_layer(open_app, checkpoint):
    trace = checkpoint.trace(TEXT)
    app = open_app(LAYER, text=TEXT)
    app.segmented_control(key="layer.stack").set_value("decoder").run()
    found = find_telling_head(trace, "decoder", usual_query(trace.tokens["decoder"]))
    assert app.selectbox(key="view.layer").value == found.layer
    assert "layer" not in app.query_params
