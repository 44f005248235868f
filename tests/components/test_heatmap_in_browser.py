"""One map in Chromium: what is read off it with the pointer and with the keyboard, and what is marked in it."""

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.components.conftest import OpenFile
from vizformer.components.heatmap import Heatmap, to_html

pytestmark = pytest.mark.browser

WEIGHTS = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
SCORES = np.array([[1.5, -2.0, 0.0], [0.0, 3.25, 1.0]])
ROWS, COLUMNS = ["a", "<i>b</i>"], ["x", "x", "猫"]


def point(page: Page, query: int, key: int) -> None:
    left, top, width, height = map(float, (page.locator(".vf-stage").get_attribute("data-plot") or "").split())
    position = {"x": left + (key + 0.5) * width, "y": top + (query + 0.5) * height}
    page.locator(".vf-over").hover(position=position)  # type: ignore[arg-type]


def test_every_number_stands_in_its_cell_and_is_read_out(open_file: OpenFile) -> None:
    page = open_file(to_html(Heatmap(WEIGHTS, ROWS, COLUMNS, title="Layer 0, head 2")))
    written = page.evaluate("window.written")
    assert [text for text in written if text.replace(".", "").isdigit()] == [f"{x:.3f}" for x in WEIGHTS.ravel()]
    assert {*ROWS, *COLUMNS} <= set(written)
    expect(page.locator(".vf-title")).to_have_text("Layer 0, head 2")
    readout = page.locator(".vf-readout")
    expect(readout).to_have_text("query 0 “a” attends most to key 0 “x”, with weight 0.9000")
    point(page, 1, 2)
    expect(readout).to_have_text("query 1 “<i>b</i>” attends to key 2 “猫” with weight 0.5000")


def test_scores_are_shown_where_they_are_given(open_file: OpenFile) -> None:
    reasons = np.array([[0, 0, 2], [0, 0, 0]])
    page = open_file(to_html(Heatmap(WEIGHTS, ROWS, COLUMNS, SCORES, reasons)))
    point(page, 0, 1)
    expect(page.locator(".vf-readout")).to_have_text("query 0 “a” and key 1 “x” have the score −2.0000")
    point(page, 0, 2)
    expect(page.locator(".vf-readout")).to_contain_text("is masked: the future")
    expect(page.locator(".vf-legend")).to_contain_text("score, −3.25 to 3.25")


@pytest.mark.sweep
def test_rings_and_squares_lie_in_their_cells(open_file: OpenFile) -> None:
    plain = Heatmap(np.zeros((2, 3)), ROWS, COLUMNS)
    marked = Heatmap(np.zeros((2, 3)), ROWS, COLUMNS, rings=[1, 2], squares=[(0, 0)])
    # How many pixels of each cell are other ones than without the marks.
    differ = """() => {
      const [left, top, width, height] = document.querySelector(".vf-stage").dataset.plot.split(" ").map(Number);
      const canvas = document.querySelector(".vf-base");
      return [0, 1].map((query) => [0, 1, 2].map((key) => {
        const at = [left + key * width + 2, top + query * height + 2, width - 4, height - 4];
        return [...canvas.getContext("2d").getImageData(...at).data];
      }));
    }"""
    before, after = (open_file(to_html(one)).evaluate(differ) for one in (plain, marked))
    changed = [[a != b for a, b in zip(x, y, strict=True)] for x, y in zip(before, after, strict=True)]
    assert changed == [[True, True, False], [False, False, True]]
    page = open_file(to_html(marked))
    expect(page.locator(".vf-readout")).to_have_text("row 0 “a” attends most to “x”")
    expect(page.locator(".vf-legend")).to_contain_text("the largest weight of a row")
    expect(page.locator(".vf-legend")).to_contain_text("aligned by hand")


def test_the_keyboard_alone(open_file: OpenFile) -> None:
    page = open_file(to_html(Heatmap(WEIGHTS, ROWS, COLUMNS)))
    page.locator(".vf-over").focus()
    for key in ("ArrowDown", "ArrowDown", "End"):  # the first one shows where the cursor is
        page.keyboard.press(key)
    expect(page.locator(".vf-readout")).to_contain_text("query 1 “<i>b</i>” attends to key 2 “猫”")
    page.keyboard.press("Enter")
    page.locator(".vf-over").blur()
    expect(page.locator(".vf-readout")).to_contain_text("query 1 “<i>b</i>” attends to key 2 “猫”")


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_hundred_long_tokens_fit_and_can_be_enlarged(open_file: OpenFile, width: int, scheme: str) -> None:
    names = ["internationalisation", "国"] * 50
    page = open_file(to_html(Heatmap(np.full((100, 100), 0.01), names, names)), width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.get_by_role("button", name="Enlarge").click()
    expect(page.get_by_role("button", name="Reduce")).to_be_enabled()


def test_the_canvas_says_what_stands_out_to_those_who_do_not_see_it(open_file: OpenFile) -> None:
    weights, future = np.array([[1.0, 0.0], [0.4, 0.6]]), np.array([[0, 2], [0, 0]])
    page = open_file(to_html(Heatmap(weights, ROWS, ["x", "y"], reasons=future)))
    said = "Largest: query 1 “<i>b</i>” attends to key 1 “y” with weight 0.6000."
    expect(page.locator(".vf-over")).to_have_attribute("aria-description", said)  # not the row that sees one key
