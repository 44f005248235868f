"""The course in a browser: what was done is remembered there, and every part fits on a phone and on a projector."""

import pytest
from playwright.sync_api import expect

from vizformer.web.frame.sitemap import COURSE
from vizformer.web.widgets import lesson_text

PARTS = {entry.url: list(lesson_text.lesson_prose(entry.url, "en")) for entry in COURSE}
WIDE = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  return Math.max(main.scrollWidth - main.clientWidth,
    document.documentElement.scrollWidth - document.documentElement.clientWidth);
}"""


@pytest.mark.parametrize("lesson", PARTS)
@pytest.mark.parametrize(("width", "theme", "locale"), [(1280, "light", "en-US"), (400, "dark", "zh-CN")])
def test_no_part_scrolls_sideways(open_tab, lesson, width, theme, locale):
    tab = open_tab(f"/{lesson}", width=width, theme=theme, locale=locale)
    tabs = tab.page.get_by_test_id("stButtonGroup").filter(has_text="1 · ").first.get_by_role("radio")
    expect(tabs).to_have_count(len(PARTS[lesson]))
    for index in range(len(PARTS[lesson])):
        if index:
            with tab.runs():
                tabs.nth(index).click()
            tab.settled()
        assert tab.page.evaluate(WIDE) <= 0, PARTS[lesson][index]
        expect(tab.page.get_by_test_id("stException")).to_have_count(0)


def test_the_arithmetic_stays_where_everything_is_at_its_beginning(open_tab):
    tab = open_tab("/qkv?step=1")  # without a part: a place is named, so the arithmetic opens
    with tab.runs():
        tab.page.get_by_role("button", name="Previous").click()
    tab.settled()
    assert tab.address == "/qkv?part=arithmetic"
    expect(tab.page.get_by_role("heading", level=3)).to_contain_text("0 · ")


def test_answers_are_remembered_by_the_browser_and_can_be_forgotten(open_tab):
    tab = open_tab("/masks?part=leak")
    expect(tab.page.get_by_text("0 of 2 questions answered")).to_be_visible()
    question = tab.page.get_by_test_id("stRadio").last
    with tab.runs():
        question.locator("label").nth(1).click()
    with tab.runs():
        tab.page.get_by_role("button", name="Show the answer").click()
    tab.settled()
    expect(tab.page.get_by_text("1 of 2 questions answered")).to_be_visible()
    with tab.runs():
        tab.page.reload()  # a new session: only the browser knows
    tab.settled()
    expect(tab.page.get_by_text("1 of 2 questions answered")).to_be_visible()
    tab.page.get_by_text("The course: what I have done").click()
    with tab.runs():
        tab.page.get_by_role("button", name="Forget my progress").click()
    tab.settled()
    expect(tab.page.get_by_text("0 of 2 questions answered")).to_be_visible()
    with tab.runs():
        tab.page.reload()
    tab.settled()
    expect(tab.page.get_by_text("0 of 2 questions answered")).to_be_visible()
