"""The picture of the lesson The map in a browser: all of it is seen at once, and what is opened is told below it."""

import pytest
from playwright.sync_api import expect

SIZE = {"width": 1280, "height": 800}


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("model", ["zh-en", "stories"])
@pytest.mark.sample(1)
def test_the_whole_drawing_is_seen_without_scrolling(open_tab, model, locale):
    tab = open_tab(f"/map?model={model}", width=SIZE["width"], height=SIZE["height"], locale=locale)
    tab.settled()
    drawing = tab.page.locator(".vf-whole")
    expect(drawing.locator(".vf-whole-box").last).to_be_visible()
    box = drawing.bounding_box()
    assert box is not None
    assert box["y"] <= 320
    assert box["y"] + box["height"] <= SIZE["height"]


def test_a_box_that_is_opened_stays_open_while_the_page_tells_of_it(open_tab):
    tab = open_tab("/map?lang=en")
    page = tab.page
    with tab.runs():
        page.locator(".vf-whole-decoder").get_by_role("button", name="Feed-forward").first.click()
    expect(page.get_by_role("heading", name="Feed-forward", exact=True)).to_be_visible()
    expect(page.locator(".vf-whole-inside")).to_contain_text("The model computed the same row")
    page.keyboard.press("Escape")
    expect(page.locator(".vf-whole-inside")).to_be_hidden()
