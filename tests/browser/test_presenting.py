"""A page at a projector: the keys of a clicker step through a lesson, and nothing stands around it."""

import re

import pytest
from playwright.sync_api import expect

from vizformer.web.frame import progress
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.widgets import lesson_text, slides

SIZES = [(1920, 1080), (1024, 768)]


@pytest.mark.sweep
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
    count = sum(len(slides.of(words)) for words in lesson_text.lesson_prose("masks", "en").values())
    expect(page.get_by_text(f"slide 1 of {count}")).to_be_in_viewport()
    for key, said in (("PageDown", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("PageUp", 1)):
        with tab.runs():
            page.keyboard.press(key)
        expect(page.get_by_text(f"slide {said} of {count}")).to_be_in_viewport()
        tab.settled()
    expect(page.locator(".st-key-bar-model")).to_be_hidden()
    page.locator(".st-key-bar-fold label").click()
    expect(page.locator(".st-key-bar-model")).to_be_in_viewport()
    page.locator(".st-key-bar-fold label").click()
    page.locator(".st-key-present-end button").first.click(trial=True)  # (nothing covers it)
    page.keyboard.press(".")
    expect(page.locator(".vf-dark-screen")).to_be_visible()
    page.keyboard.press(".")
    expect(page.locator(".vf-dark-screen")).to_have_count(0)
    with tab.runs():
        page.keyboard.press("Escape")
    expect(page.locator(".st-key-bar-doors")).to_be_visible()
    assert "slide" not in tab.address


ENDS_ABOVE_THE_BUTTONS = """() => {
  const body = document.querySelector(".st-key-page-body"), sheet = body.parentElement;
  sheet.scrollTo(0, sheet.scrollHeight);
  const end = document.querySelector(".st-key-present-end").getBoundingClientRect();
  return sheet.scrollTop > 0 && body.lastElementChild.getBoundingClientRect().bottom <= end.top;
}"""


@pytest.mark.sweep
def test_a_page_without_slides_has_the_whole_screen_and_its_buttons_at_the_foot(open_tab):
    tab = open_tab("/attention?model=zh-en&slide=words", height=720)
    tab.settled()
    page, body = tab.page, tab.page.locator(".st-key-page-body")
    assert body.bounding_box()["y"] <= 16  # (a line of letters is 30 px high)
    end = page.locator(".st-key-present-end button").first
    end.click(trial=True)  # (nothing covers it)
    page.wait_for_function(ENDS_ABOVE_THE_BUTTONS)
    expect(page.locator(".st-key-bar-model")).to_be_hidden()
    page.locator(".st-key-bar-fold label").click()
    expect(page.locator(".st-key-bar-model")).to_be_in_viewport()
    with tab.runs():
        end.click()
    expect(page.locator(".st-key-bar-doors")).to_be_visible()


@pytest.mark.sweep
def test_arrow_keys_stay_with_a_slider_and_letters_with_a_box(open_tab):
    tab = open_tab("/positions?slide=laboratory")
    page = tab.page
    slider = page.get_by_role("slider").first
    before = slider.get_attribute("aria-valuenow")
    slider.focus()
    with tab.runs():
        page.keyboard.press("ArrowLeft")
    expect(slider).not_to_have_attribute("aria-valuenow", before or "")
    expect(page.get_by_text(re.compile(r"slide \d+ of"))).to_be_visible()
    assert "slide=laboratory" in tab.address
    page.locator(".st-key-bar-fold label").click()
    box = page.get_by_role("textbox", name="Sentence")
    box.fill("")
    box.press_sequentially("a. b")
    expect(box).to_have_value("a. b")
    expect(page.locator(".vf-dark-screen")).to_have_count(0)


HEIGHTS = """() => {
  const main = document.querySelector("[data-testid=stMain]");
  const sheet = document.querySelector(".st-key-page-body").parentElement;
  const steps = document.querySelector(".st-key-slide-steps").getBoundingClientRect();
  return { main: main.scrollHeight - main.clientHeight, page: document.documentElement.scrollHeight - innerHeight,
    sheet: sheet.scrollHeight - sheet.clientHeight, covered: sheet.getBoundingClientRect().bottom - steps.top,
    foot: steps.bottom - innerHeight, above: sheet.getBoundingClientRect().top - 24 };
}"""

FITS = f"""() => {{
  const heights = ({HEIGHTS})();
  return heights.sheet <= 0 && Math.max(...Object.values(heights)) <= 1;
}}"""

BLOCKS = '[...document.querySelectorAll(".st-key-lesson-laboratory > *, .st-key-slide-asked > *")]'

SEEN = f"""() => {BLOCKS}.flatMap((one, index) => {{
  const {{ top, bottom, height }} = one.getBoundingClientRect();
  const foot = document.querySelector(".st-key-slide-steps").getBoundingClientRect().top;
  return one.checkVisibility({{ visibilityProperty: true }}) && height > 0 && top >= 0 && bottom <= foot ? [index] : [];
}})"""

DRAWN = f"""() => {BLOCKS}.flatMap((one, index) =>
  one.firstElementChild?.getBoundingClientRect().height > 0 ? [index] : [])"""

IS_LAST = """() => {
  const said = document.querySelector(".st-key-slide-steps [data-testid=stCaptionContainer] p");
  const [screen, screens] = (getComputedStyle(said, "::after").content.match(/\\d+/g) ?? [1, 1]).map(Number);
  return screen === screens;
}"""

SIZES_OF_SLIDES, LOCALES = [(1280, 720), (1920, 1080)], ["en-US", "zh-CN"]
EACH_LESSON = [  # at both sizes, a minute each; in one language at each of them
    (entry.url, size, LOCALES[(i + j) % 2]) for i, entry in enumerate(COURSE) for j, size in enumerate(SIZES_OF_SLIDES)
]


@pytest.mark.sweep
@pytest.mark.parametrize(("lesson", "size", "locale"), EACH_LESSON)
def test_no_slide_is_higher_than_the_screen_and_a_clicker_reaches_all_of_it(open_tab, lesson, size, locale):
    tab = open_tab(f"/{lesson}?slide=words", locale=locale, width=size[0], height=size[1])
    page = tab.page
    parts = lesson_text.lesson_prose(lesson, "zh_CN" if locale == "zh-CN" else "en")
    names = [name for words in parts.values() for name in slides.of(words)]
    for number, name in enumerate(names, 1):
        tab.settled()
        expect(page.locator(".st-key-slide-steps")).to_contain_text(re.compile(rf"(slide|第) {number} (of|页)"))
        page.wait_for_function("() => !document.querySelector('.st-key-page-body [data-testid=stSkeleton]')")
        seen: set[int] = set()
        for _ in range(20):  # the screens of a laboratory
            page.wait_for_function(FITS)
            seen.update(page.evaluate(SEEN))
            if page.evaluate(IS_LAST):
                break
            page.keyboard.press("PageDown")
        assert page.evaluate(IS_LAST), (number, name)
        assert seen >= set(page.evaluate(DRAWN)), (number, name, seen)
        if number < len(names):
            with tab.runs():
                page.keyboard.press("PageDown")


@pytest.mark.sweep
def test_the_notes_follow_the_slides_and_the_slides_the_notes(open_tab):
    tab = open_tab("/heads?slide=words")
    page = tab.page
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    notes = opened.value
    expect(notes.get_by_text("Next slide")).to_be_visible()
    expect(notes.locator(".st-key-slide-steps")).to_contain_text("slide 1 of")
    with tab.runs():
        page.keyboard.press("PageDown")
    expect(notes.locator(".st-key-slide-steps")).to_contain_text("slide 2 of")
    notes.evaluate(
        "history.replaceState(null, '', location.href.replace('words2', 'words'))"
    )  # as a run that is late does
    notes.wait_for_url("**slide=notes-words2*")
    expect(page.locator(".st-key-slide-steps")).to_contain_text("slide 2 of")
    with tab.runs():
        notes.keyboard.press("PageDown")
    expect(page.locator(".st-key-slide-steps")).to_contain_text("slide 3 of")
    expect(page.get_by_text("Next slide")).to_have_count(0)
    notes.close()


LOOKS_PRESSED = """all => all.filter(one => {
  const look = getComputedStyle(one);
  return one.checkVisibility() && (parseFloat(look.borderTopWidth) > 0 || look.backgroundColor !== "rgba(0, 0, 0, 0)");
}).map(one => one.outerHTML.slice(0, 300))"""
IN_A_PICTURE = ".vf-box, .vf-cell, .vf-chip"
PRESSED = f":is(button:not({IN_A_PICTURE}), select, textarea, summary, a[href], [data-testid=stSliderTickBar])"
IS_FOLDED = "one => Boolean(one.closest('[class*=st-key-ask-], [data-testid=stPopover], [data-testid=stExpander]'))"
SET = "[data-testid=stSelectbox] input, [data-testid=stTextInput] input, [data-testid=stSliderThumbValue]"


@pytest.mark.sweep
@pytest.mark.parametrize("lesson", [entry.url for entry in COURSE])
def test_a_printed_lesson_has_all_its_questions_and_nothing_to_press(open_tab, lesson):
    tab = open_tab(f"/{lesson}?slide=paper")
    tab.settled()
    page = tab.page
    page.emulate_media(media="print")
    paper = page.locator(".st-key-paper")
    for name in progress.QUESTIONS[lesson]:
        asked = paper.locator(f".st-key-ask-{lesson}-{name}")
        expect(asked).to_be_visible()
        expect(asked).to_contain_text("Predict first.")
    assert page.locator(PRESSED).evaluate_all(LOOKS_PRESSED) == []
    for one in paper.locator(f"[class*=st-key-lesson-laboratory] :is({SET})").all():
        if not one.evaluate(IS_FOLDED):
            expect(one).to_be_visible()
