"""The mask view in Chromium: reading, painting, with the pointer and with the keyboard alone."""

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.components.conftest import OpenFile
from vizformer.components.mask import MaskView, to_html

pytestmark = pytest.mark.browser

TOKENS = ["<s>", "我", "<i>x</i>"]
CAUSAL = np.triu(np.full((3, 3), 2), 1)
SCORES = np.array([[1.5, -2, 3], [0.25, 1, -1], [0, 0, 0.5]])
WEIGHTS = np.array([[1, 0, 0], [0.3, 0.7, 0], [0.2, 0.3, 0.5]])
VIEW = MaskView(TOKENS, TOKENS, CAUSAL, SCORES, WEIGHTS)
PAINT = MaskView(TOKENS, TOKENS, CAUSAL, weights=WEIGHTS, own=CAUSAL)


def cell(page: Page, query: int, key: int, panel: int = 0) -> Locator:
    return page.locator(".vf-panel").nth(panel).locator(f'.vf-cell[data-query="{query}"][data-key="{key}"]')


def texts(page: Page, panel: int) -> list[str]:
    return page.locator(".vf-panel").nth(panel).locator(".vf-cell").all_inner_texts()


def test_three_panels_with_their_numbers(open_file: OpenFile) -> None:
    page = open_file(to_html(VIEW))
    assert texts(page, 0) == ["0", "−∞", "−∞", "0", "0", "−∞", "0", "0", "0"]
    assert texts(page, 1) == ["1.5", "−2.0", "3.0", "0.3", "1.0", "−1.0", "0.0", "0.0", "0.5"]
    assert texts(page, 2) == ["1.00", "0", "0", "0.30", "0.70", "0", "0.20", "0.30", "0.50"]
    assert page.locator(".vf-query").all_inner_texts() == 3 * TOKENS
    assert page.locator(".vf-mask i").count() == 0


def test_a_cell_says_why_and_is_lit_in_every_panel(open_file: OpenFile) -> None:
    page = open_file(to_html(VIEW))
    cell(page, 0, 2, panel=1).hover()
    expect(page.locator(".vf-readout")).to_contain_text("query 0 “<s>” → key 2 “<i>x</i>” is blocked: the future")
    expect(page.locator(".vf-readout")).to_contain_text("score 3.0000, plus −∞")
    assert page.locator(".vf-lit").count() == 3
    cell(page, 1, 1).hover()
    expect(page.locator(".vf-readout")).to_contain_text("is open · score 1.0000, plus 0 · weight 0.7000")


def test_looking_does_not_paint(open_file: OpenFile) -> None:
    page = open_file(to_html(VIEW))
    cell(page, 2, 0).click()
    page.keyboard.press("Space")
    assert texts(page, 0)[6] == "0"


def test_a_click_blocks_and_opens(open_file: OpenFile) -> None:
    page = open_file(to_html(PAINT, paintable=True))
    cell(page, 2, 0).click()
    assert texts(page, 0)[6] == "−∞"
    expect(page.locator(".vf-readout")).to_contain_text("painted by hand")
    cell(page, 0, 1, panel=1).click()  # any panel takes paint
    assert texts(page, 0)[1] == "0"
    cell(page, 2, 0).click()
    assert texts(page, 0)[6] == "0"


def test_a_stroke_paints_what_its_first_cell_became(open_file: OpenFile) -> None:
    page = open_file(to_html(PAINT, paintable=True))
    cell(page, 2, 0).hover()
    page.mouse.down()
    cell(page, 2, 1).hover()
    cell(page, 2, 2).hover()
    page.mouse.up()
    assert texts(page, 0)[6:] == ["−∞"] * 3
    cell(page, 1, 0).hover()  # the button is up again
    assert texts(page, 0)[3] == "0"
    cell(page, 2, 1).hover()
    expect(page.locator(".vf-readout")).to_contain_text("the whole row is blocked")


def test_the_keyboard_alone(open_file: OpenFile) -> None:
    page = open_file(to_html(PAINT, paintable=True))
    page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Space"):
        page.keyboard.press(key)
    assert texts(page, 0)[7] == "−∞"
    page.keyboard.press("End")
    expect(page.locator(".vf-mask")).to_have_attribute("data-cell", "2,2")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".vf-mask")).to_have_attribute("data-cell", "2,2")
    page.keyboard.press("Enter")
    assert texts(page, 0)[8] == "−∞"


def test_what_was_painted_before_is_there(open_file: OpenFile) -> None:
    page = open_file(to_html(PAINT, paintable=True, selected=[(0, 2), (2, 0)]))
    assert texts(page, 0) == ["0", "−∞", "0", "0", "0", "−∞", "−∞", "0", "0"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_thirty_two_long_tokens_fit(open_file: OpenFile, width: int, scheme: str) -> None:
    names = ["internationalisation", "国"] * 16
    view = MaskView(names, names, np.triu(np.full((32, 32), 2), 1), np.ones((32, 32)), np.ones((32, 32)) / 32)
    page = open_file(to_html(view), width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    box = cell(page, 31, 31).bounding_box()
    assert box is not None
    assert box["width"] > 5
