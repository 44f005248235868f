"""What axe-core finds on a page: nothing that it calls serious or critical (WCAG 2.1, levels A and AA).

`test_every_place.py` asks it of every page.
"""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"], "elementRef": False}
MENDED = """() => [...document.querySelectorAll(".katex-display:not([tabindex])")]
    .every((one) => one.scrollWidth <= one.clientWidth)"""
MOVING = """() => {
    const second = (text) => parseFloat(text) * (text.trim().endsWith("ms") ? 0.001 : 1);
    const seconds = (texts) => Math.max(...texts.split(",").map(second));
    const inside = (one) => one.shadowRoot ? [one, ...every(one.shadowRoot)] : [one];
    const every = (root) => [...root.querySelectorAll("*")].flatMap(inside);
    return every(document).filter((one) => {
        const style = getComputedStyle(one);
        return Math.max(seconds(style.transitionDuration), seconds(style.animationDuration)) > 0.05;
    }).map((one) => one.outerHTML.slice(0, 120));
}"""


def serious(tab) -> list[str]:
    tab.page.wait_for_function(MENDED)
    found = Axe().run(tab.page, options=RULES).response["violations"]
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("link", "locale", "theme"),
    [
        ("", "en-US", "light"),
        ("?model=stories&text=The+dog+went+to", "zh-CN", "dark"),
        ("masks?slide=words", "en-US", "light"),
        ("masks?slide=laboratory", "zh-CN", "dark"),
        ("attention?picture=lines", "en-US", "light"),
    ],
)
def test_nothing_on_the_first_page_a_slide_or_among_lines_shuts_people_out(open_tab, link, locale, theme):
    tab = open_tab(f"/{link}", locale=locale, theme=theme)
    tab.settled()
    assert serious(tab) == []


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("link", "locale", "theme", "opens"),
    [
        ("attention?model=zh-en&text=我有一只猫。", "en-US", "light", "As a table"),
        ("positions", "zh-CN", "dark", "表格"),
    ],
)
def test_a_picture_is_read_and_sorted_as_a_table_with_the_keyboard_alone(open_tab, link, locale, theme, opens):
    tab = open_tab(f"/{link}", locale=locale, theme=theme)
    tab.settled()
    button = tab.page.get_by_role("button", name=opens).first
    button.focus()
    with tab.runs():
        tab.page.keyboard.press("Enter")
    tab.page.get_by_role("tab", name=opens).focus()
    tab.page.keyboard.press("Enter")
    rows = tab.page.locator(".vf-sortable tbody tr")
    rows.first.wait_for()
    tab.settled()
    first = tab.page.locator(".vf-sortable th button").first
    for _ in range(3):  # from the tab, perhaps by way of the table that scrolls, to its first heading
        if not first.evaluate("one => one === one.getRootNode().activeElement"):
            tab.page.keyboard.press("Tab")
    expect(first).to_be_focused()
    tab.page.keyboard.press("Enter")
    heading = tab.page.locator(".vf-sortable th").first
    expect(heading).to_have_attribute("aria-sort", re.compile("scending"))
    assert serious(tab) == []
    tab.page.keyboard.press("Escape")
    rows.first.wait_for(state="detached")
    assert button.evaluate("one => one === document.activeElement")


@pytest.mark.sweep
def test_nothing_moves_for_those_who_asked_for_less_motion(open_tab):
    tab = open_tab("/attention?model=zh-en&text=我有一只猫。")
    tab.settled()
    tab.page.emulate_media(reduced_motion="no-preference")
    assert tab.page.evaluate(MOVING)  # Streamlit's buttons and boxes
    tab.page.emulate_media(reduced_motion="reduce")
    assert tab.page.evaluate(MOVING) == []


STOP = """() => {  // where the keyboard is, and whether that is seen
    let one = document.activeElement;
    while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    if (!one || one === document.body) return null;
    const { width, height, bottom, top } = one.getBoundingClientRect();
    const shown = (at) => {
        const style = getComputedStyle(at);
        return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
    };
    let marked = one.matches("input, textarea, canvas, canvas *, main");  // a caret; a cell; the page itself
    for (let at = one, i = 0; at && i < 6; i++, at = at.parentElement ?? at.getRootNode().host) marked ||= shown(at);
    // Streamlit's own boxes lie unseen over what they draw, and mark that.
    const visible = (width > 0 && height > 0 && bottom > 0 && top < innerHeight) || getComputedStyle(one).opacity === "0"
        || one.matches("canvas *");
    const kept = one === window.lastStop && !one.matches("canvas, canvas *");  // a table, cell by cell
    window.lastStop = one;
    return { name: one.outerHTML.slice(0, 160), visible, marked, kept };
}"""


def lost_stops(tab) -> list[str]:
    """Where the keyboard comes by that is not seen, or that keeps it."""
    stops = []
    for __ in range(60):
        tab.page.keyboard.press("Tab")
        stop = tab.page.evaluate(STOP)
        if stop is None and stops:  # once round
            break
        stops += [stop] if stop else []
    assert len(stops) > 10
    return [one["name"] for one in stops if one["kept"] or not (one["visible"] and one["marked"])]


def test_every_stop_of_the_keyboard_is_seen_and_none_keeps_it(open_tab):
    tab = open_tab("/what_if?lang=en")
    tab.settled()
    assert lost_stops(tab) == []
