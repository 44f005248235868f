"""What a teacher and students do in the browser."""

import re

from playwright.sync_api import expect

from tests.browser.driver import Tab

PATIENCE = 90_000  # milliseconds: three browsers and a server on one machine
CLASS = re.compile("^(Class|班级)$")


def start(tab: Tab) -> str:
    """Opens a class; its code."""
    with tab.runs():
        tab.page.get_by_role("button", name=CLASS).click()
    with tab.runs():
        tab.page.get_by_role("button", name="Start a class").click()
    code = tab.page.get_by_test_id("stPopoverBody").get_by_role("heading").inner_text()
    tab.settled()
    tab.page.keyboard.press("Escape")
    tab.settled()
    return code.strip()


def title(tab: Tab, name: str) -> None:
    """Waits until a page is there."""
    expect(tab.page.get_by_role("heading", level=1, name=name, exact=True)).to_be_visible(timeout=PATIENCE)
