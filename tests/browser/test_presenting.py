"""A page at a projector: the keys of a clicker step through a lesson, and nothing stands around it."""

import re

import pytest
from playwright.sync_api import expect

from vizformer.web.frame import progress
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.widgets import slides

SIZES = [(1920, 1080), (1024, 768)]


HEARS_KEYS = "() => window.vizformerPresents"  # (a function: the page forbids eval)


def turn_to(tab, number: int, key: str = "PageDown") -> None:
    """Presses a key until a slide is there: before it come the screens of the one that is shown."""
    steps = tab.page.locator(".st-key-slide-steps")
    for _ in range(20):
        tab.settled()
        if f"slide {number} of" in steps.inner_text():
            return
        tab.page.keyboard.press(key)
    raise AssertionError(steps.inner_text())


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
    count = len(slides.lesson_prose("masks", "en"))
    expect(page.get_by_text(f"slide 1 of {count}")).to_be_in_viewport()
    for key, said in (("PageDown", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("PageUp", 1)):
        turn_to(tab, said, key)
        expect(page.get_by_text(f"slide {said} of {count}")).to_be_in_viewport()
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

SCREEN = """() => {  // which of the screens of a laboratory is shown, and how many there are
  const said = document.querySelector(".st-key-slide-steps [data-testid=stCaptionContainer] p");
  return (getComputedStyle(said, "::after").content.match(/\\d+/g) ?? [1, 1]).map(Number);
}"""

NOTHING_AWAITED = "() => !document.querySelector('.st-key-page-body [data-testid=stSkeleton]')"
SMALL, LARGE = (1280, 720), (1920, 1080)
LANGUAGES = ["en", "zh_CN"]
SPEAK = """language => {  // as a link does
  const link = new URL(location);
  link.searchParams.set("lang", language);
  history.pushState(null, "", link);
  dispatchEvent(new PopStateEvent("popstate", { state: null }));
}"""


def is_last_screen(page) -> bool:
    screen, screens = page.evaluate(SCREEN)
    return screen == screens


@pytest.mark.sweep
@pytest.mark.parametrize("lesson", [entry.url for entry in COURSE])
def test_no_slide_is_higher_than_the_screen_and_a_clicker_reaches_all_of_it(open_tab, lesson):
    """Half of a lesson in each language, which of them first in turn; each slide on a small and on a large screen."""
    language = [entry.url for entry in COURSE].index(lesson) % 2
    tab = open_tab(f"/{lesson}?slide=words", locale=["en-US", "zh-CN"][language], width=SMALL[0], height=SMALL[1])
    page = tab.page
    count = len(slides.lesson_prose(lesson, "en"))

    def look_through(number: int) -> None:
        tab.settled()
        said = [rf"slide {number} of", rf"第 {number} 页"][language]
        expect(page.locator(".st-key-slide-steps")).to_contain_text(re.compile(said))
        page.wait_for_function(NOTHING_AWAITED)
        while page.evaluate(SCREEN)[0] > 1:
            page.keyboard.press("PageUp")
        seen: set[int] = set()
        for _ in range(20):
            page.wait_for_function(FITS)
            seen.update(page.evaluate(SEEN))
            if is_last_screen(page):
                break
            page.keyboard.press("PageDown")
        assert is_last_screen(page), number
        assert seen >= set(page.evaluate(DRAWN)), (number, seen)

    for number in range(1, count + 1):
        if number == 1 + count // 2:
            language = 1 - language
            with tab.runs():
                page.evaluate(SPEAK, LANGUAGES[language])
        look_through(number)
        page.set_viewport_size({"width": LARGE[0], "height": LARGE[1]})
        look_through(number)
        page.set_viewport_size({"width": SMALL[0], "height": SMALL[1]})
        tab.settled()
        while not is_last_screen(page):
            page.keyboard.press("PageDown")
        if number < count:
            with tab.runs():
                page.keyboard.press("PageDown")


@pytest.mark.sweep
def test_presses_that_follow_each_other_at_once_are_a_slide_each(open_tab):
    page = open_tab("/heads?slide=notes-words").page  # where a press is a slide, however many screens that has
    steps = page.locator(".st-key-slide-steps")
    expect(steps).to_contain_text("slide 1 of")
    page.wait_for_function(HEARS_KEYS)
    for key, there in (("PageDown", "slide 3 of"), ("PageUp", "slide 1 of")):
        # In one task: the second press comes while the first is on its way, and the button is still that of the first slide.
        page.evaluate(
            f"for (const key of ['{key}', '{key}']) document.body.dispatchEvent(new KeyboardEvent('keydown', {{ key }}))"
        )
        expect(steps).to_contain_text(there)


# As soon as slide 2 is there, its address is written over, as a run does that is late.  (In the page: it is led again for
# two seconds only, which `turn_to` may take.)
LATE_RUN = """() => {
  const looking = setInterval(() => {
    if (!document.querySelector(".st-key-slide-steps")?.textContent.includes("slide 2 of")) return;
    if (!location.href.includes("part=all")) return;
    clearInterval(looking);
    history.replaceState(null, "", location.href.replace("part=all", "part=split"));
    window.wasLate = true;
  }, 50);
}"""


@pytest.mark.sweep
def test_the_notes_follow_the_slides_and_the_slides_the_notes(open_tab):
    tab = open_tab("/heads?slide=words")
    page = tab.page
    page.wait_for_function(HEARS_KEYS)
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    notes = opened.value
    expect(notes.get_by_text("Next slide")).to_be_visible()
    expect(notes.locator(".st-key-slide-steps")).to_contain_text("slide 1 of")
    notes.evaluate(LATE_RUN)
    turn_to(tab, 2)
    notes.wait_for_function("() => window.wasLate")
    notes.wait_for_url("**part=all*")
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
IN_A_PICTURE = ".vf-box, .vf-cell, .vf-chip, .vf-whole-token, .vf-whole-map, .vf-whole-box, .vf-whole-candidate"
PRESSED = f":is(button:not({IN_A_PICTURE}), select, textarea, summary, a[href], [data-testid=stSliderTickBar])"
HIDDEN = """all => all.filter(one => {
  const { width, height } = one.getBoundingClientRect();
  const folded = one.closest("[class*=st-key-ask-], [data-testid=stPopover], [data-testid=stExpander]");
  return !folded && !(width && height && one.checkVisibility({ visibilityProperty: true }));
}).map(one => one.outerHTML.slice(0, 300))"""
SET = "[data-testid=stSelectbox] input, [data-testid=stTextInput] input, [data-testid=stSliderThumbValue]"


@pytest.mark.sweep
@pytest.mark.parametrize("lesson", [entry.url for entry in COURSE])
def test_a_printed_lesson_has_all_its_questions_and_nothing_to_press(open_tab, lesson):
    tab = open_tab(f"/{lesson}?slide=paper")
    tab.settled()
    page = tab.page
    page.wait_for_function(
        NOTHING_AWAITED, timeout=150_000
    )  # ("training" trains all its models: 36 s on an idle machine)
    page.emulate_media(media="print")
    paper = page.locator(".st-key-paper")
    for name in progress.QUESTIONS[lesson]:
        asked = paper.locator(f".st-key-ask-{lesson}-{name}")
        expect(asked).to_be_visible()
        expect(asked).to_contain_text("Predict first.")
    assert page.locator(PRESSED).evaluate_all(LOOKS_PRESSED) == []
    assert paper.locator(f"[class*=st-key-lesson-laboratory] :is({SET})").evaluate_all(HIDDEN) == []
