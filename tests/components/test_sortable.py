"""A table that is sorted by its headings, in Chromium: with the keyboard, numbers as numbers, texts as texts."""

import pytest
from playwright.sync_api import Page, expect

from tests.components.conftest import OpenFile
from vizformer.components.sortable import LARGEST, to_html

COLUMNS = ["query", "key: name", "weight"]
ROWS = [(0, "b", 0.25), (2, "<i>a10</i>", -1.5), (10, "a2", 3e-07)]


def column(page: Page, number: int) -> list[str]:
    return page.locator(f"tbody td:nth-child({number})").all_inner_texts()


@pytest.mark.browser
def test_a_heading_sorts_and_turns_round_with_the_keyboard_alone(open_file: OpenFile) -> None:
    page = open_file(to_html(COLUMNS, ROWS, caption="Layer 0"))
    assert column(page, 3) == ["0.25", "−1.5", "3e−7".replace("−", "-").replace("-", "−")]
    page.keyboard.press("Tab")
    expect(page.get_by_role("region", name="Layer 0")).to_be_focused()
    for _ in COLUMNS:
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert column(page, 3) == ["0.25", "3e−7", "−1.5"]
    expect(page.get_by_role("columnheader", name="weight")).to_have_attribute("aria-sort", "descending")
    expect(page.get_by_role("status")).to_have_text("Sorted by “weight”, descending.")
    page.keyboard.press("Enter")
    assert column(page, 3) == ["−1.5", "3e−7", "0.25"]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert column(page, 2) == ["<i>a10</i>", "a2", "b"]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert column(page, 1) == ["10", "2", "0"]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells do not fit 3 columns"):
        to_html(COLUMNS, [(1, "a")])
    with pytest.raises(ValueError, match="are more than the"):
        to_html(["x"], [(1,)] * (LARGEST + 1))
