"""The drawing: what travels, what comes back, and how it looks and works in Chromium."""

import pytest
from playwright.sync_api import Page, expect
from streamlit.testing.v1 import AppTest

from tests.components.conftest import OpenFile
from tests.components.test_mount import sent
from vizformer.components.architecture import ENGLISH, Box, Column, to_html


def box(key: str, **changes: object) -> Box:
    made: Box = {
        "key": key,
        "kind": "plain",
        "title": key.upper(),
        "shape": "[3, 8]",
        "count": "",
        "note": f"{key}!",
        "framed": False,
        "inside": "",
        "skip": "",
        "source": "",
    }
    made.update(changes)  # type: ignore[typeddict-item]
    return made


COLUMNS: list[Column] = [
    {
        "title": "Left",
        "frame": "× 2",
        "boxes": [
            box("tokens"),
            box("look", framed=True, kind="attention"),
            box("mask", inside="look", framed=True),
            box("norm", framed=True, skip="tokens", count="2 × 16"),
            box("out"),
        ],
    },
    {
        "title": "Right",
        "frame": "× 3",
        "boxes": [
            box("start", title="<b>x</b>"),
            box("cross", framed=True, source="out"),
            box("add", framed=True, skip="start"),
        ],
    },
]

SCRIPT = """
import streamlit as st
from tests.components.test_architecture import COLUMNS
from vizformer.components import architecture
st.session_state.box = architecture.mount(COLUMNS, selected=st.session_state.get("box", "look"), key="drawing")
"""


def test_a_click_comes_back_and_nonsense_is_no_box() -> None:
    app = AppTest.from_string(SCRIPT, default_timeout=20).run()
    assert not app.exception
    data = sent(app)
    assert data["selected"] == {"box": "look"}
    assert data["drawn"][0]["boxes"][3]["count"] == "2 × 16"
    assert data["words"] == dict(ENGLISH)
    assert app.session_state.box == "look"
    app.session_state["drawing"] = {"selected": {"box": "cross", "version": data["version"], "seq": 1}}
    app.run()
    assert app.session_state.box == "cross"
    for seq, nonsense in enumerate(("nowhere", 7, None), start=2):
        app.session_state["drawing"] = {"selected": {"box": nonsense, "version": data["version"], "seq": seq}}
        app.run()
        assert not app.exception
        assert app.session_state.box in (None, "look", "cross")


def test_boxes_must_be_there() -> None:
    for wrong in ("inside", "skip", "source", "fed_by"):
        with pytest.raises(ValueError, match="nowhere, which is not there"):
            to_html([{"title": "", "frame": "", "boxes": [box("a", **{wrong: "nowhere"})]}])
    with pytest.raises(ValueError, match="same key"):
        to_html([{"title": "", "frame": "", "boxes": [box("a"), box("a")]}])


def ends(page: Page, kind: str) -> list[tuple[float, float, float, float]]:
    """Where each line begins and where its way ends, on the page."""
    found: list[tuple[float, float, float, float]] = page.evaluate(
        """kind => [...document.querySelectorAll(`.vf-drawing path.${kind}`)].map(path => {
            const around = document.querySelector(".vf-drawing").getBoundingClientRect();
            const length = path.getTotalLength(), from = path.getPointAtLength(0);
            const head = path.getAttribute("d").split("M")[2].split("L")[1].split(" ").map(Number);
            return [from.x + around.left, from.y + around.top, head[0] + around.left, head[1] + around.top];
        })""",
        kind,
    )
    return found


def place(page: Page, key: str) -> dict[str, float]:
    found = page.locator(f'[data-key="{key}"]').bounding_box()
    assert found is not None
    return {**found, "right": found["x"] + found["width"], "bottom": found["y"] + found["height"]}


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
def test_lines_lead_from_box_to_box(open_file: OpenFile, width: int) -> None:
    page = open_file(to_html(COLUMNS, selected="look"), width=width)
    expect(page.locator('[data-key="look"]')).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.locator(".vf-name").all_inner_texts().count("<b>x</b>") == 1
    tokens, norm, cross, out = (place(page, key) for key in ("tokens", "norm", "cross", "out"))
    assert tokens["bottom"] < norm["y"] < out["y"]  # the data flows downwards
    skips = ends(page, "vf-skip")
    assert len(skips) == 2
    _, y0, x1, y1 = skips[0]
    assert (x1, y1) == pytest.approx((norm["x"], norm["y"] + norm["height"] / 2), abs=1.5)
    assert tokens["bottom"] <= y0 < norm["y"]  # begins where the tokens come out
    flows = ends(page, "vf-flow")
    assert len(flows) == 3 + 2 + 1  # in the columns, and from one to the other
    assert any((x, y) == pytest.approx((cross["x"], cross["y"] + cross["height"] / 2), abs=1.5) for _, _, x, y in flows)
    note = page.locator(".vf-box-note")
    if width == 400:  # what the page says of the box is far below
        expect(note).to_be_visible()
        expect(note).to_have_text("look!")
    else:
        expect(note).to_be_hidden()
    page.set_viewport_size({"width": width - 60, "height": 700})
    page.wait_for_function(
        """() => {
            const head = document.querySelector(".vf-drawing path.vf-skip").getAttribute("d").split("M")[2];
            const left = document.querySelector(".vf-drawing").getBoundingClientRect().left;
            const box = document.querySelector('[data-key="norm"]').getBoundingClientRect();
            return Math.abs(Number(head.split("L")[1].split(" ")[0]) + left - box.left) < 1.5;
        }"""
    )  # the lines follow


@pytest.mark.browser
def test_data_that_does_not_come_from_the_box_before(open_file: OpenFile) -> None:
    """In a parallel layer the second norm reads the input: no arrow leads there from the sum below it."""
    boxes = [box("start"), box("look"), box("sum", skip="start"), box("norm", fed_by="start"), box("end", skip="sum")]
    page = open_file(to_html([{"title": "", "frame": "", "boxes": boxes}]))
    start, added, norm = (place(page, key) for key in ("start", "sum", "norm"))
    flows = ends(page, "vf-flow")
    assert len(flows) == 4
    (aside,) = [flow for flow in flows if flow[2:] == pytest.approx((norm["right"], norm["y"] + norm["height"] / 2))]
    assert aside[1] == pytest.approx(start["bottom"] + 5, abs=1.5)
    assert not any(flow[3] == pytest.approx(norm["y"], abs=1.5) for flow in flows)
    assert any(y0 == pytest.approx(added["bottom"], abs=1.5) for _, y0, _, _ in ends(page, "vf-skip"))


@pytest.mark.browser
def test_the_keyboard_goes_everywhere(open_file: OpenFile) -> None:
    page = open_file(to_html(COLUMNS, selected="tokens"))
    focused = "document.activeElement.dataset.key"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "tokens"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "mask"
    page.keyboard.press("End")
    assert page.evaluate(focused) == "out"
    expect(page.locator(".vf-architecture")).to_have_attribute("data-selected", "tokens")  # moving is not choosing
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) in ("start", "cross", "add")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator(".vf-architecture")).to_have_attribute("data-selected", "start")
    page.keyboard.press("Tab")
    assert page.evaluate(focused) is None  # one stop for the whole drawing
    page.locator('[data-key="mask"]').click()
    expect(page.locator('[aria-pressed="true"]')).to_have_attribute("data-key", "mask")
