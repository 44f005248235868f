"""A page at a projector: the keys of a clicker step through a lesson, and nothing stands around it."""

import re

import pytest
from playwright.sync_api import expect

SIZES = [(1920, 1080), (1024, 768)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("size", SIZES)
def test_keys_step_through_a_lesson_and_escape_leaves_it(open_tab, size):
    tab = open_tab("/masks")
    tab.page.set_viewport_size({"width": size[0], "height": size[1]})
    with tab.runs():
        tab.page.locator(".st-key-present-begin button").first.click()
    tab.settled()
    page = tab.page
    expect(page.locator(".st-key-bar-doors")).to_be_hidden()
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    assert float(page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")) >= 20
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.get_by_text("slide 1 of 10")).to_be_in_viewport()
    for key, said in (("PageDown", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("PageUp", 1)):
        with tab.runs():
            page.keyboard.press(key)
        expect(page.get_by_text(f"slide {said} of 10")).to_be_in_viewport()
        tab.settled()
    page.keyboard.press(".")
    expect(page.locator(".vf-dark-screen")).to_be_visible()
    page.keyboard.press(".")
    expect(page.locator(".vf-dark-screen")).to_have_count(0)
    with tab.runs():
        page.keyboard.press("Escape")
    expect(page.locator(".st-key-bar-doors")).to_be_visible()
    assert "slide" not in tab.address


def test_arrow_keys_stay_with_a_slider_and_letters_with_a_box(open_tab):
    tab = open_tab("/positions?slide=laboratory")
    page = tab.page
    slider = page.get_by_role("slider").first
    before = slider.get_attribute("aria-valuenow")
    slider.focus()
    with tab.runs():
        page.keyboard.press("ArrowLeft")
    expect(slider).not_to_have_attribute("aria-valuenow", before or "")
    expect(page.get_by_text(re.compile("slide 2 of"))).to_be_visible()
    page.locator(".st-key-bar-fold label").click()
    box = page.get_by_role("textbox", name="Sentence")
    box.fill("")
    box.press_sequentially("a. b")
    expect(box).to_have_value("a. b")
    expect(page.locator(".vf-dark-screen")).to_have_count(0)
