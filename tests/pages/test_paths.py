"""The page What if, paths from head to head: the library's numbers, in the link and in Python, back along the circuit."""

import numpy as np
import pytest

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import said
from tests.pages.test_patches import CAT, HAND, PAGE, cell_rows, maps, press
from vizformer.analysis import Receiver, path_patch_runs, prompt_pair
from vizformer.web.widgets import watched_work


def dials(**settings: str) -> str:
    settings = {"way": "between", "what": "paths", **settings}
    return "~".join(f"whatif.{name}:{value}" for name, value in settings.items())


def code(app) -> str:
    return next(block.value for block in app.code if "path_patch_runs(" in block.value)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("link", "kind", "settings", "receiver"),
    [
        (HAND, "decoder", dict(to="k", tohead="d1s2"), Receiver("decoder.1.self", 2, "k")),
        (CAT, "encoder", dict(to="v", tohead="d0c1", held="corrupted"), Receiver("decoder.0.cross", 1, "v")),
    ],
)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_map_and_the_code_are_the_library_s(open_app: Open, locale, link, kind, settings, receiver) -> None:
    app = open_app(PAGE, locale=locale, **link, site=kind, dials=dials(**settings))
    assert not app.exception
    assert not app.error
    checkpoint = load(link["model"])
    corrupted = "f d c e c" if link is HAND else "我有一只狗。"
    pair = prompt_pair(checkpoint, link["text"], corrupted, target=link.get("target"))
    held = settings.get("held", "clean")
    expected = path_patch_runs(checkpoint, pair, kind, [receiver], held=held).share
    (shown,) = maps(app)
    np.testing.assert_allclose(shown["values"], expected, atol=2e-4)
    exec(code(app), space := {})
    np.testing.assert_allclose(space["found"].share, expected, atol=1e-5)
    runs = [float(pair.difference(run.logits)) for run in (pair.clean, space["patched"], pair.corrupted)]
    rows = [float(row[3].replace("−", "-")) for row in cell_rows(app)]
    assert rows == pytest.approx(runs if held == "clean" else runs[::-1], abs=1e-3)
    row, column = shown["selected"]["row"], shown["selected"]["column"]
    share = (rows[0] - rows[1]) / (rows[0] - rows[2])
    assert share == pytest.approx(expected[row][column], abs=2e-3)


def test_the_circuit_is_traced_back_from_the_answer(open_app: Open) -> None:
    app = open_app(PAGE, **HAND, dials=dials())
    assert maps(app)[0]["selected"] == dict(row=1, column=2)  # the induction head speaks to the logits
    app = open_app(PAGE, **HAND, dials=dials(cell="1.2"))  # as though it had been clicked
    app.button(key="what_if.back").click().run()
    assert not app.exception
    assert {"whatif.to:k", "whatif.tohead:d1s2"} <= set(app.query_params["dials"].split("~"))
    assert maps(app)[0]["selected"] == dict(row=0, column=1)  # the previous-token head speaks to its key
    app.segmented_control(key="setting.whatif.to").set_value("q").run()
    assert "No head sends much of it there." in said(app)
    app.segmented_control(key="setting.whatif.held").set_value("corrupted").run()
    assert {"whatif.to:q", "whatif.held:corrupted"} <= set(app.query_params["dials"].split("~"))


TEACHER = dict(model="zh-en", text="他是老师。", second="他是学生。", target="He is a")


def test_from_a_cross_attention_one_is_led_back_to_the_encoder(open_app: Open) -> None:
    app = open_app(PAGE, **TEACHER, site="cross", dials=dials())
    assert not app.error
    app.button(key="what_if.back").click().run()
    assert not app.exception
    assert not app.error
    assert "path_patch_runs(checkpoint, pair, 'encoder'" in code(app)
    assert np.abs(maps(app)[0]["values"]).max() > 5e-4


@pytest.mark.parametrize("written", ["x", "d9s0", "d0f", "d0s"])
def test_a_receiver_that_is_not_there_does_not_count(open_app: Open, written: str) -> None:
    app = open_app(PAGE, **HAND, dials=dials(to="k", tohead=written))
    assert not app.exception
    assert not app.error
    assert app.selectbox(key="setting.whatif.tohead").value == "d1s3"


def test_many_paths_wait_for_their_button_and_too_many_are_refused(open_app: Open, monkeypatch) -> None:
    monkeypatch.setattr(watched_work, "AT_ONCE", 1.0)
    link = dict(model="induction-by-hand", text="a b c d a c", second="a c b d a c")
    app = open_app(PAGE, **link, dials=dials(to="v", tohead="d1s2"))
    assert not maps(app)
    press(app, "what_if.path")
    assert not app.exception
    assert len(maps(app)) == 1
    monkeypatch.setattr(watched_work, "MOST", 1.0)
    app = open_app(PAGE, **link, dials=dials(to="q", tohead="d1s2"))
    assert any("takes too long here" in info.value for info in app.info)
