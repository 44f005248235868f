"""The stations in Chromium: a prediction before the answer, a dial, keys, and what the browser keeps."""

import json
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.components.conftest import OpenFile
from tests.components.test_stations import path
from vizformer.components import stations

pytestmark = pytest.mark.browser

WIDTH = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def step(page: Page, station: str, number: int) -> None:
    root = page.locator(".vf-stations")
    expect(root).to_have_attribute("data-station", station)
    expect(root).to_have_attribute("data-step", str(number))


def onwards(page: Page):
    return page.locator(".vf-stations-next")


def reload(page: Page) -> None:
    """Loads the page again once another tab sees what this one keeps: Chromium hands it on a moment after it was written."""
    kept = page.evaluate("localStorage.getItem('vizformer.path')")
    empty = Path(url2pathname(urlsplit(page.url).path)).with_name("empty.html")  # the stations would write into it, too
    empty.touch()
    other = page.context.new_page()  # in a process of its own
    other.goto(empty.as_uri())
    other.wait_for_function("kept => localStorage.getItem('vizformer.path') === kept", arg=kept)
    other.close()
    page.reload()


def test_nobody_goes_on_without_a_prediction(open_file: OpenFile) -> None:
    page = open_file(stations.to_html(stations.pack(path())))
    step(page, "one", 0)
    onwards(page).click()
    step(page, "one", 1)
    expect(onwards(page)).to_be_disabled()
    page.locator(".vf-stations").press("ArrowRight")
    step(page, "one", 1)
    expect(page.locator(".vf-station-grid")).to_have_count(0)  # the answer is not drawn yet
    page.locator(".vf-stations-option", has_text="cat").click()
    expect(page.locator(".vf-stations-because")).to_have_text("Not so. The answer is “dog”. It is not.")
    expect(page.locator(".vf-stations-option.vf-right")).to_have_text("dog")
    expect(page.locator(".vf-stations-option").first).to_be_disabled()  # no second guess
    onwards(page).click()
    step(page, "one", 2)
    cells = page.locator(".vf-station-cell")
    assert cells.all_inner_texts() == [".25", "", "−.12", "1.00"]
    assert cells.nth(1).get_attribute("title") == "“a” → “b”: blocked"
    assert cells.nth(2).get_attribute("title") == "“b” → “a”: −0.123"


def test_a_number_in_a_cell_is_rounded_once(open_file: OpenFile) -> None:
    cells = np.array([[5.1355, 4.8852, -1.0352]], np.float32)
    steps = [stations.Show("See.", [stations.Grid("", ["q"], ["a", "b", "c"], cells, signed=True, written=True)])]
    page = open_file(stations.to_html(stations.pack([stations.Station("one", "One", steps)])))
    assert page.locator(".vf-station-cell").all_inner_texts() == ["5.14", "4.89", "−1.04"]
    assert [cell.get_attribute("title") for cell in page.locator(".vf-station-cell").all()] == [
        "“q” → “a”: 5.135",  # 5.13549995 as float32
        "“q” → “b”: 4.885",
        "“q” → “c”: −1.035",
    ]


def test_a_dial_draws_the_picture_of_its_tick(open_file: OpenFile) -> None:
    page = open_file(stations.to_html(stations.pack(path())))
    page.locator(".vf-stations-line button").nth(1).click()
    step(page, "two", 0)
    expect(page.locator(".vf-station-bar")).to_have_count(2)
    page.locator(".vf-stations-dial input").fill("1")
    expect(page.locator(".vf-stations-dial output")).to_have_text("× 2")
    expect(page.locator(".vf-station-post .vf-station-value").first).to_have_text("0.75")
    onwards(page).click()
    expect(page.locator(".vf-station-curve circle")).to_have_count(1)
    expect(onwards(page)).to_be_disabled()
    expect(page.locator(".vf-stations-bar .vf-caption").first).to_contain_text("0 of 0")


def test_the_browser_keeps_answers_and_where_the_reader_was(open_file: OpenFile) -> None:
    page = open_file(stations.to_html(stations.pack(path())))
    onwards(page).click()
    page.locator(".vf-stations-option", has_text="dog").click()
    expect(page.locator(".vf-stations-because")).to_have_text("Right. It is.")
    onwards(page).click()
    expect(page.locator(".vf-stations-line button").first).to_have_class("vf-done")
    page.locator(".vf-stations-line button").nth(1).click()
    step(page, "two", 0)
    reload(page)
    step(page, "two", 0)
    expect(page.locator(".vf-stations-line button").first).to_have_class("vf-done")
    onwards(page).click()
    expect(page.locator(".vf-stations-bar .vf-caption").first).to_contain_text("1 of 1")
    page.locator(".vf-stations-line button").first.click()
    onwards(page).click()
    expect(page.locator(".vf-stations-option.vf-right")).to_have_text("dog")  # answered before


def test_a_clock_says_what_is_done_and_what_is_left(open_file: OpenFile) -> None:
    page = open_file(stations.to_html(stations.pack(path())))
    clock = page.locator(".vf-stations-clock")
    expect(clock).to_have_text("The path: 3 min, 3 to go; 3 min with the lessons.")
    onwards(page).click()
    page.locator(".vf-stations-option", has_text="dog").click()
    onwards(page).click()
    expect(clock).to_contain_text("The path: 3 min, 1 to go;")
    onwards(page).click()
    expect(page.locator(".vf-stations-second")).to_be_hidden()  # nothing behind it
    onwards(page).click()
    reload(page)
    expect(clock).to_contain_text("The path: 3 min, 0 to go;")


def test_a_wrong_prediction_is_asked_again_at_the_next_station(open_file: OpenFile) -> None:
    page = open_file(stations.to_html(stations.pack(path())))
    onwards(page).click()
    page.locator(".vf-stations-option", has_text="cat").click()
    onwards(page).click()
    onwards(page).click()
    step(page, "two", 0)
    expect(page.locator(".vf-stations-words")).to_have_text("Once more: which?")
    expect(page.locator(".vf-stations-asked b")).to_have_text("Once more, from station 1, One:")
    expect(page.locator(".vf-stations-option")).to_have_text(["<b>", "dog", "cat"])  # the other way round
    expect(page.locator(".vf-stations-dial")).to_be_hidden()
    page.locator(".vf-stations-option", has_text="dog").click()
    expect(page.locator(".vf-stations-because")).to_have_text("Right. It is.")
    onwards(page).click()
    step(page, "two", 0)
    expect(page.locator(".vf-stations-words")).to_have_text("Turn it.")
    expect(page.locator(".vf-stations-dial")).to_be_visible()
    page.locator(".vf-stations-back").click()
    onwards(page).click()
    expect(page.locator(".vf-stations-words")).to_have_text("Turn it.")  # not asked a third time today


def test_a_question_that_is_passed_over_does_not_come_at_each_station(open_file: OpenFile) -> None:
    page = open_file(stations.to_html(stations.pack(path())))
    onwards(page).click()
    page.locator(".vf-stations-option", has_text="cat").click()
    onwards(page).click()
    onwards(page).click()
    expect(page.locator(".vf-stations-words")).to_have_text("Once more: which?")
    onwards(page).click()
    expect(page.locator(".vf-stations-words")).to_have_text("Turn it.")
    page.locator(".vf-stations-back").click()
    step(page, "one", 2)
    onwards(page).click()
    expect(page.locator(".vf-stations-words")).to_have_text("Turn it.")


def test_what_was_right_is_asked_again_the_next_day(open_file: OpenFile) -> None:
    page = open_file(stations.to_html(stations.pack(path())))
    onwards(page).click()
    page.locator(".vf-stations-option", has_text="dog").click()
    onwards(page).click()
    kept = json.loads(page.evaluate("localStorage.getItem('vizformer.path')"))
    kept["answers"]["one"]["when"] -= 21 * 3600 * 1000
    # Put there as the page begins: a busy browser may not have passed a last change on before it loads anew.
    page.add_init_script(f"localStorage.setItem('vizformer.path', {json.dumps(json.dumps(kept))})")
    reload(page)
    step(page, "one", 0)
    for _ in range(3):
        onwards(page).click()
    step(page, "two", 0)
    expect(page.locator(".vf-stations-words")).to_have_text("Once more: which?")
    onwards(page).click()  # nobody is held up
    expect(page.locator(".vf-stations-words")).to_have_text("Turn it.")


def test_an_exercise_opens_at_its_station_and_closes(open_file: OpenFile) -> None:
    page = open_file(stations.to_html(stations.pack(path())))
    onwards(page).click()
    page.get_by_role("button", name="Build it: 3 · One <head>").click()
    inside = page.locator(".vf-stations-aside")
    expect(inside.locator(".vf-title")).to_have_text("3 · One <head>")
    expect(inside.locator("pre")).to_have_text(["z = weights v", "def head(q): ..."])
    expect(page.locator(".vf-stations-main")).to_be_hidden()
    inside.get_by_role("button", name="Back to the station").click()
    step(page, "one", 1)
    expect(page.locator(".vf-stations-main")).to_be_visible()
    page.locator(".vf-stations-line button").nth(1).click()
    expect(page.get_by_role("button", name="Build it")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(open_file: OpenFile, scheme: str) -> None:
    page = open_file(stations.to_html(stations.pack(path())), width=400, scheme=scheme)
    assert page.evaluate(WIDTH) <= 0
    onwards(page).click()
    assert page.evaluate(WIDTH) <= 0
    page.locator(".vf-stations-option").first.click()
    onwards(page).click()
    assert page.evaluate(WIDTH) <= 0
