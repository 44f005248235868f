"""The course in a browser: one walks through its parts, and what was done is remembered there."""

import re

import pytest
from playwright.sync_api import expect

from vizformer.web.frame.progress import QUESTIONS
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.widgets import slides

PARTS = {entry.url: list(slides.lesson_prose(entry.url, "en")) for entry in COURSE}

SEEN = """() => {
  const list = document.querySelector("[class*='st-key-lesson-part-']").getBoundingClientRect();
  return [list.top, list.bottom < innerHeight / 2, document.activeElement.textContent];
}"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(("lesson", "width"), [("masks", 1280), ("qkv", 400)])
def test_the_next_part_begins_at_its_top_and_the_keyboard_goes_on_there(open_tab, lesson, width):
    tab = open_tab(f"/{lesson}", width=width)
    tab.settled()
    assert "1 · " not in tab.page.evaluate("() => document.activeElement.textContent.slice(0, 4)")  # nobody moved it
    for number in range(2, len(PARTS[lesson]) + 1):
        onward = tab.page.locator(".st-key-lesson-next button")
        onward.scroll_into_view_if_needed()
        onward.focus()
        with tab.runs():
            tab.page.keyboard.press("Enter")
        tab.settled()
        top, is_high, focused = tab.page.evaluate(SEEN)
        assert top >= 0
        assert is_high
        assert focused.startswith(f"{number} · ")
    with tab.runs():  # and the next lesson at its own
        tab.page.get_by_role("link", name="Next lesson").click()
    tab.settled()
    assert tab.page.get_by_role("heading", level=1).bounding_box()["y"] >= 0


def test_the_arithmetic_stays_where_everything_is_at_its_beginning(open_tab):
    tab = open_tab("/qkv?step=1")  # without a part: a place is named, so the arithmetic opens
    with tab.runs():
        tab.page.get_by_role("button", name="Previous").click()
    tab.settled()
    assert tab.address == "/qkv?part=arithmetic"
    expect(tab.page.get_by_role("combobox", name="Step")).to_have_value(re.compile("^0 · "))


@pytest.mark.sweep
def test_answers_are_remembered_by_the_browser_and_can_be_forgotten(open_tab):
    tab, all_of_it = open_tab("/masks?part=leak"), len(QUESTIONS["masks"])
    expect(tab.page.get_by_text(f"0 of {all_of_it} questions answered")).to_be_visible()
    question = tab.page.get_by_test_id("stRadio").last
    with tab.runs():
        question.locator("label").nth(1).click()
    with tab.runs():
        tab.page.get_by_role("button", name="Show the answer").click()
    tab.settled()
    expect(tab.page.get_by_text(f"1 of {all_of_it} questions answered")).to_be_visible()
    with tab.runs():
        tab.page.reload()  # a new session: only the browser knows
    tab.settled()
    expect(tab.page.get_by_text(f"1 of {all_of_it} questions answered")).to_be_visible()
    tab.page.get_by_text("The course: what I have done").click()
    tab.settled()  # what is laid out anew while it is pressed hears nothing of it
    with tab.runs():
        tab.page.get_by_role("button", name="Forget my progress").click()
    tab.settled()
    expect(tab.page.get_by_text(f"0 of {all_of_it} questions answered")).to_be_visible()
    tab.page.wait_for_function("() => JSON.parse(localStorage['vizformer.progress']).done.length === 0")
    with tab.runs():
        tab.page.reload()
    tab.settled()
    expect(tab.page.get_by_text(f"0 of {all_of_it} questions answered")).to_be_visible()


PLACES = """() => ["laboratory", "words"].map((name) => {
  const { left, right, top, bottom } = document.querySelector(`.st-key-lesson-${name}`).getBoundingClientRect();
  return { left, right, top, bottom };
})"""


def test_the_model_stays_in_sight_below_a_wide_laboratory(open_tab):
    """One line at the edge of the screen, its lit box in sight; that one opens there, another one leads to its lesson."""
    tab = open_tab("/masks?part=kinds&text=The+lamp+was+old.")
    whole = tab.page.locator(".st-key-lesson-model .vf-whole")
    for scrolled in (0, 600):
        tab.page.evaluate(f"document.querySelector('[data-testid=stMain]').scrollTo(0, {scrolled})")
        expect(whole).to_be_in_viewport(ratio=1)
    assert whole.bounding_box()["height"] < 48
    expect(whole.locator("[aria-current]").first).to_be_in_viewport(ratio=1)
    box = whole.get_by_role("button", name="Masked multi-head self-attention: show it in the whole model")
    glass = tab.page.locator(".vf-whole-glass h3")
    with tab.runs():
        box.click()
    expect(glass).to_contain_text("masked self-attention")
    with tab.runs():
        box.click()
    expect(glass).to_have_count(0)
    with tab.runs():
        whole.get_by_role("button", name="Multi-head cross-attention").click()
    expect(tab.page).to_have_url(re.compile("/cross"))


def test_the_words_stand_beside_the_laboratory_and_on_a_narrow_page_below_it(open_tab):
    tab = open_tab("/positions?part=clock")
    laboratory, words = tab.page.evaluate(PLACES)
    assert words["left"] > laboratory["right"]
    lead = tab.page.locator(".st-key-lesson-lead").bounding_box()
    assert words["top"] == pytest.approx(lead["y"], abs=1)
    assert lead["y"] + lead["height"] <= laboratory["top"] + 8
    assert laboratory["right"] - laboratory["left"] > 1.8 * (words["right"] - words["left"])
    expect(tab.page.locator(".st-key-lesson-words").get_by_text("Predict first.")).to_have_count(1)
    sliders = tab.page.locator(".st-key-lesson-laboratory .stSlider")
    expect(sliders).to_have_count(4)
    assert sliders.nth(0).bounding_box()["y"] == sliders.nth(1).bounding_box()["y"]  # in one line, as far as they fit
    tab.page.set_viewport_size({"width": 900, "height": 800})
    tab.settled()
    laboratory, words = tab.page.evaluate(PLACES)
    assert words["top"] > laboratory["bottom"]
    assert words["left"] == pytest.approx(laboratory["left"], abs=1)
