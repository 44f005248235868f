"""The worksheet as it comes onto paper: the sheet alone, nothing wider than A4, the answers on a page of their own."""

import re
from urllib.parse import urlencode

import pytest

from tests.browser.conftest import OpenTab

A4 = 794  # CSS pixels at 96 to the inch
MARGINS = dict.fromkeys(("top", "bottom", "left", "right"), "15mm")
LONG = "The little cat sat on the mat and looked at the dog that was sleeping near the old wooden door of the house."


def address(key: bool) -> str:
    dials = f"worksheet.lessons:3,4,12~worksheet.calculations:0~worksheet.key:{int(key)}"
    return "/worksheet?" + urlencode({"model": "stories", "text": LONG, "dials": dials})


@pytest.mark.sweep
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_sheet_fits_on_paper_and_the_answers_begin_a_page(open_tab: OpenTab, locale: str) -> None:
    tab = open_tab(address(key=True), locale=locale, theme="dark")
    tab.settled()
    page = tab.page
    pages = {True: sheets(page.pdf(format="A4", margin=MARGINS))}
    page.emulate_media(media="print")
    page.set_viewport_size({"width": A4 - 2 * 57, "height": 1000})  # margins of 15 mm
    tab.settled()
    assert not page.locator(".st-key-bar").is_visible()
    assert not page.locator(".st-key-worksheet-settings").is_visible()
    assert page.locator("button:visible").all_inner_texts() == []
    wide = "e => e.scrollWidth - e.clientWidth"
    assert page.locator("[data-testid=stMain]").evaluate(wide) <= 0
    tables = page.locator(".vf-paper-cells").all()
    assert len(tables) == 2
    for one in tables:
        box = one.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= A4 - 2 * 57
    answer = page.locator(".st-key-worksheet-key")
    assert answer.evaluate("e => getComputedStyle(e).breakBefore") == "page"
    assert answer.locator("p").first.evaluate("e => getComputedStyle(e).color") == "rgb(0, 0, 0)"
    page.emulate_media(media="null")
    tab.goto(address(key=False))
    tab.settled()
    pages[False] = sheets(page.pdf(format="A4", margin=MARGINS))
    assert pages[True] > pages[False]


@pytest.mark.sweep
def test_a_long_sentence_moves_no_phone_sideways(open_tab: OpenTab) -> None:
    tab = open_tab(address(key=True), locale="zh-CN", width=400)
    tab.settled()
    wide = "all => Math.max(...all.map(e => e.scrollWidth - e.clientWidth))"
    assert tab.page.locator(".vf-paper-cells").evaluate_all(wide) > 0  # it is the table that scrolls
    assert tab.page.get_by_test_id("stMain").evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def sheets(pdf: bytes) -> int:
    """How many pages a PDF has."""
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))
