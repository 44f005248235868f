"""The grid of a question "which cell ...?": what is refused, and how it works in Chromium."""

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.components.conftest import OpenFile
from vizformer.components.cells import LARGEST, to_html

ROWS, COLUMNS = ["a → <b>", "b → c"], ["我", "有", "。"]
VALUES = np.array([[0.0, 0.9, 0.1], [0.2, 0.2, 0.6]])


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="2 rows and 3 columns"):
        to_html(ROWS, COLUMNS, values=VALUES.T)
    with pytest.raises(ValueError, match="outside"):
        to_html(ROWS, COLUMNS, right=(2, 0))
    with pytest.raises(ValueError, match="drawn"):
        to_html(["a"] * (LARGEST + 1), COLUMNS)


def test_texts_need_a_number_for_each() -> None:
    with pytest.raises(ValueError, match="texts need values"):
        to_html(ROWS, COLUMNS, texts=[["a"] * 3] * 2)
    with pytest.raises(ValueError, match="2 rows and 3 columns"):
        to_html(ROWS, COLUMNS, values=VALUES, texts=[["a"] * 2] * 2)


@pytest.mark.browser
def test_texts_stand_in_the_cells_and_the_numbers_are_their_colours(open_file: OpenFile) -> None:
    texts = [["<b>", "猫", " x"], ["a", "b", "c"]]
    page = open_file(to_html(ROWS, COLUMNS, values=VALUES, texts=texts))
    cells = page.get_by_role("gridcell")
    assert [text.strip() for text in cells.all_inner_texts()] == ["<b>", "猫", "x", "a", "b", "c"]
    colours = cells.evaluate_all("cells => cells.map(cell => getComputedStyle(cell).backgroundColor)")
    assert colours[3] == colours[4] != colours[5]
    cells.nth(1).click()
    expect(page.locator(".vf-note")).to_have_text("row 0 “a → <b>”, column 1 “有”: “猫”, 0.9000")


@pytest.mark.browser
def test_numbers_below_zero_have_another_colour_than_those_above(open_file: OpenFile) -> None:
    values = np.array([[-0.6, 0.6, 0.0], [-0.001, 1.0, 1.7]])
    page = open_file(to_html(ROWS, COLUMNS, values=values, signed=True))
    cells = page.get_by_role("gridcell")
    assert cells.all_inner_texts() == ["−0.60", "0.60", "0.00", "0.00", "1.00", "1.70"]
    colours = cells.evaluate_all(
        "cells => cells.map(cell => getComputedStyle(cell).backgroundColor.match(/[0-9]+/g).map(Number))"
    )
    assert colours[0][0] > colours[0][2]  # orange: more red than blue
    assert colours[1][0] < colours[1][2]
    assert colours[2] == colours[3]
    assert colours[4] == colours[5] != colours[1]


@pytest.mark.browser
def test_a_cell_without_a_number_is_empty_and_says_only_where_it_is(open_file: OpenFile) -> None:
    page = open_file(to_html(["L0"], ["H0", "H1"], values=np.array([[0.5, np.nan]]), signed=True))
    assert page.locator(".vf-cell").all_text_contents() == ["0.50", ""]
    page.locator(".vf-cell").nth(1).hover()
    assert "nan" not in page.locator(".vf-cell").nth(1).get_attribute("aria-label").lower()


@pytest.mark.browser
def test_an_empty_cell_is_chosen_by_click_or_by_keys(open_file: OpenFile) -> None:
    page = open_file(to_html(ROWS, COLUMNS))
    grid, cells = page.locator(".vf-cells"), page.get_by_role("gridcell")
    assert cells.all_inner_texts() == [""] * 6
    assert page.get_by_role("rowheader").all_inner_texts() == ROWS
    assert page.get_by_role("columnheader").all_inner_texts() == COLUMNS
    expect(page.locator(".vf-note")).to_have_text("No cell is chosen.")
    cells.nth(4).click()
    expect(grid).to_have_attribute("data-selected", "1,1")
    expect(page.locator(".vf-note")).to_have_text("row 1 “b → c”, column 1 “有”")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("End")
    expect(grid).to_have_attribute("data-selected", "1,1")  # moving is not choosing
    page.keyboard.press("Enter")
    expect(grid).to_have_attribute("data-selected", "0,2")
    expect(page.locator("[aria-selected=true]")).to_have_count(1)


@pytest.mark.browser
def test_the_answer_shows_the_numbers_and_marks_the_right_cell(open_file: OpenFile) -> None:
    page = open_file(to_html(ROWS, COLUMNS, values=VALUES, right=(0, 1), selected=(1, 2)))
    cells = page.get_by_role("gridcell")
    assert cells.all_inner_texts() == ["0.00", "0.90", "0.10", "0.20", "0.20", "0.60"]
    assert [i for i in range(6) if "vf-right" in (cells.nth(i).get_attribute("class") or "")] == [1]
    colours = cells.evaluate_all("cells => cells.map(cell => getComputedStyle(cell).backgroundColor)")
    assert colours[3] == colours[4] != colours[5]
    cells.nth(0).click()
    expect(page.locator(".vf-cells")).to_have_attribute("data-selected", "1,2")  # it is over
    expect(cells.nth(1)).to_have_attribute("aria-label", "row 0 “a → <b>”, column 1 “有”, the right answer: 0.9000")


@pytest.mark.browser
def test_a_wide_grid_scrolls_inside_itself(open_file: OpenFile) -> None:
    page = open_file(to_html(ROWS, [f"token{i}" for i in range(LARGEST)]), width=400)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
