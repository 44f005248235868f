"""Painting a mask on the page: the model answers, the link carries it, the keyboard suffices."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab
from vizformer import load

pytestmark = pytest.mark.browser

PAINT = "/masks?part=paint&model=stories"


@pytest.mark.sweep
def test_a_painted_row_changes_the_prediction_and_goes_into_the_link(open_tab: OpenTab) -> None:
    tab = open_tab(PAINT)
    table = tab.page.locator(".vf-matrix").filter(has_text="largest Δ")
    n = len(load("stories").encode("我有一只猫。"))
    expect(table.locator("tbody tr td:last-child")).to_have_text(["0"] * n)
    panel = tab.page.locator(".vf-panel").first
    with tab.runs():
        panel.locator('.vf-cell[data-query="4"][data-key="3"]').click()
    moved = table.locator("tbody tr td:last-child").all_inner_texts()
    assert moved[:4] == ["0"] * 4  # causal: what is before query 4 cannot know
    assert "0" not in moved[4:]
    expect(tab.page.locator(".vf-readout")).to_contain_text("painted by hand")
    expect(tab.page).to_have_url(re.compile("masks.cells_a"))
    copy = open_tab(tab.page.url.removeprefix(tab.home))
    cells = copy.page.locator(".vf-matrix").filter(has_text="largest Δ").locator("tbody tr td:last-child")
    expect(cells).to_have_text(moved)
    expect(copy.page.locator(".vf-panel").first.locator('.vf-cell[data-query="4"][data-key="3"]')).to_have_text("−∞")
    with copy.runs():
        copy.page.get_by_role("button", name="As the model has it").click()
    expect(cells).to_have_text(["0"] * n)
    expect(copy.page.locator(".vf-panel").first.locator('.vf-cell[data-query="4"][data-key="3"]')).to_have_text("0")


@pytest.mark.sweep
def test_painting_with_the_keyboard_in_chinese_on_a_telephone(open_tab: OpenTab) -> None:
    tab = open_tab(PAINT, locale="zh-CN", width=400)
    panels = tab.page.locator(".vf-panels")
    panels.focus()
    with tab.runs():
        for key in ("ArrowDown", "ArrowDown", "Space"):
            tab.page.keyboard.press(key)
    expect(tab.page.locator(".vf-readout")).to_contain_text("被挡住")
    expect(tab.page.locator('.vf-panel .vf-cell[data-query="2"][data-key="0"]').first).to_have_text("−∞")
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.page.evaluate(wide) <= 0
