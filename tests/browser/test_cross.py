"""The lesson Cross-attention in a browser: what is clicked there, and what changes the whole page."""

import pytest
from playwright.sync_api import expect

from tests.bundled import load
from vizformer.analysis import alignment, telling_row
from vizformer.web.frame.progress import QUESTIONS


def sentence(tab):
    return tab.page.get_by_test_id("stTextInput").locator("input").first


@pytest.mark.sweep
def test_a_cell_is_clicked_and_its_numbers_come_with_the_answer(open_tab):
    trace = load("zh-en").trace("我有一只猫。")
    source, target = ([token.text for token in trace.tokens[stack]] for stack in ("encoder", "decoder"))
    found, rows = alignment(trace), range(1, len(target) - 1)  # of the last layer, but for what the start mark writes
    row = telling_row(found.weights[2], list(rows))
    column = int(found.mean[2, row])
    at = row * len(source) + column
    tab = open_tab("/cross?part=alignment&text=我有一只猫。")
    cells = tab.page.locator(".vf-cells").get_by_role("gridcell")
    tab.page.get_by_text("Before you look: a question", exact=True).click()
    expect(cells.first).to_have_text("")
    with tab.runs():
        cells.nth(at).click()
    tab.settled()
    boxes = tab.page.locator(".st-key-ask-cross-cell").get_by_test_id("stSelectbox").locator("input")
    expect(boxes.nth(0)).to_have_value(f"{row} · {target[row]}")
    expect(boxes.nth(1)).to_have_value(f"{column} · {source[column]}")
    with tab.runs():
        tab.page.get_by_role("button", name="Show the answer").click()
    tab.settled()
    expect(cells.nth(at)).to_have_text(f"{found.weights[2][row, column]:.2f}")
    expect(tab.page.get_by_test_id("stAlert").filter(has_text="Right.").first).to_be_visible()
    expect(tab.page.get_by_text(f"1 of {len(QUESTIONS['cross'])} questions answered").first).to_be_visible()


def test_a_head_of_the_picture_marks_its_row_and_a_row_leads_to_its_head(open_tab):
    tab = open_tab("/cross")
    row = tab.page.locator("tr.vf-marked")
    expect(row).to_contain_text("Cross-attention")
    with tab.runs():
        tab.page.locator(".vf-whole-decoder .vf-whole-map").first.click()
    tab.settled()
    expect(row).to_contain_text("Decoder self-attention")
    with tab.runs():
        tab.page.get_by_role("radio", name="Encoder self-attention").click()
    tab.settled()
    expect(row).to_contain_text("Encoder self-attention")
    expect(tab.page.locator(".vf-whole-glass h3")).to_contain_text("Encoder")


@pytest.mark.sweep
def test_an_example_and_another_model_change_the_whole_page(open_tab):
    tab = open_tab("/cross?part=bottleneck")
    with tab.runs():
        tab.page.get_by_role("button", name="那个我").click()
    tab.settled()
    expect(sentence(tab)).to_have_value("那个我在北京上大学时认识的朋友，现在在那个城市工作。")
    tab = open_tab("/cross?model=stories&text=The+cat+sat")
    expect(tab.page.get_by_text("no cross-attention")).to_be_visible()
    with tab.runs():
        tab.page.get_by_role("button", name="Use the model zh-en").click()
    tab.settled()
    expect(tab.page.get_by_text("no cross-attention")).to_have_count(0)
    tab = open_tab("/tokens?part=context")
    tab.page.get_by_role("button", name="Examples").click()
    with tab.runs():
        tab.page.get_by_role("button", name="打", exact=True).click()
    tab.settled()
    expect(sentence(tab)).to_have_value("我打电话给他。")
