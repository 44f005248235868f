"""That a tab which is used again is as a new one: every other test here relies on it."""

import pytest

from tests.browser.driver import Server, Tabs

STORED = """() => {
    localStorage.setItem("done", "1");
    sessionStorage.setItem("done", "1");
    document.cookie = "done=1";
}"""
FOUND = """() => [
    localStorage.length,
    sessionStorage.length,
    document.cookie.includes("done"),  // Streamlit sets one of its own
    innerWidth,
    matchMedia("(prefers-color-scheme: dark)").matches,
]"""


def test_an_emptied_tab_has_nothing_of_the_test_before(tabs: Tabs, server: Server) -> None:
    health = "/_stcore/health"
    first, hand_back = tabs.take(locale="fr-FR", theme="dark", width=400)
    first.page.goto(server.url + health)
    first.page.evaluate(STORED)
    assert first.page.evaluate(FOUND) == [1, 1, True, 400, True]
    hand_back()
    again, hand_back = tabs.take(locale="fr-FR")
    assert again is first
    assert again.page.url == "about:blank"
    again.page.goto(server.url + health)
    assert again.page.evaluate(FOUND) == [0, 0, False, 1280, False]
    beside, __ = tabs.take(locale="fr-FR")
    assert beside.page.context is not again.page.context
    beside.close()
    again.problems.append("a complaint")
    with pytest.raises(AssertionError, match="a complaint"):
        hand_back()
    assert again.page.is_closed()
