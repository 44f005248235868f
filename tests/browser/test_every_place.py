"""Every page and every part of a lesson, opened by its link: what is seen of it first, and whether everybody can use it.

Each is opened at both widths, in both languages and in both themes, which takes two visits.
"""

from typing import Literal

import pytest
from playwright.sync_api import Browser

from tests.benchmarks import first_look
from tests.browser.driver import Server, Tab
from tests.browser.test_accessible import lost_stops, serious

PLACES = first_look.places()
PAGES = {path.partition("?")[0]: path for path in reversed(PLACES)}.values()  # the first place of each
LOOKS: list[tuple[int, str, Literal["light", "dark"]]] = [  # in turn of the even and of the odd places
    (1280, "en-US", "light"),
    (1280, "zh-CN", "dark"),
    (400, "zh-CN", "dark"),
    (400, "en-US", "light"),
]
PORTIONS = 4  # of which each is opened in two of the looks
WORKS_FOR_LONG = 5  # seconds, after which the cover of a page goes (assets/first_picture/first_picture.js)
WIDE = """() => {
  const main = document.querySelector("[data-testid=stMain]");
  return Math.max(main.scrollWidth - main.clientWidth,
    document.documentElement.scrollWidth - document.documentElement.clientWidth);
}"""


def faults(tab: Tab, path: str, width: int, locale: str) -> list[str]:
    """Of a place: its picture stands too low, something moves while it comes, the page is too wide or failed."""
    link = first_look.with_own_sentence(path, locale)
    look = first_look.opened(tab.page, tab.home, link, "later", width, locale)
    if look.picture is None or look.picture > WORKS_FOR_LONG:  # one has seen how far its work was, which is done
        look = first_look.opened(tab.page, tab.home, link, "later", width, locale)
    found = [first_look.row(look)] if look.missed_places else []
    if tab.page.evaluate(WIDE) > 0:
        found.append("scrolls sideways")
    if tab.page.get_by_test_id("stException").count():
        found.append("failed")
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("portion", range(PORTIONS))
@pytest.mark.parametrize("size", first_look.TOPS)
def test_every_picture_is_on_top_nothing_moves_or_is_too_wide_and_nobody_is_shut_out(
    browser: Browser, server: Server, size: int, portion: int
) -> None:
    width, locale, theme = [look for look in LOOKS if look[0] == size][portion % 2]
    found = {}
    with first_look.tab(browser, width, locale, theme) as page:
        tab = Tab(page, server.url)
        for path in PLACES[portion::PORTIONS]:
            found[path] = faults(tab, path, width, locale)
            if width == 1280 and path in PAGES:
                page.emulate_media(reduced_motion="reduce")
                found[path] += serious(tab) + lost_stops(tab)
                page.emulate_media(reduced_motion="no-preference")
        tab.check()
    assert {path: of_one for path, of_one in found.items() if of_one} == {}
