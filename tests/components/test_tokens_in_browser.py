"""The token strip in Chromium."""

import pytest
from playwright.sync_api import expect

from tests.components.conftest import OpenFile
from vizformer.components.tokens import Token, to_html

pytestmark = pytest.mark.browser

TOKENS: list[Token] = [
    {"text": "<s>", "special": True, "hover": "id 1"},
    {"text": "我", "hover": "id 20 · e6 88 91"},
    {"text": "<b>x</b>", "hover": "<i>id</i> 3", "value": 0.5},
    {"text": " ", "value": 0.25},
    {"text": "مرحبا"},
]


def test_chips_are_text(open_file: OpenFile) -> None:
    page = open_file(to_html(TOKENS, label="Source"))
    assert page.locator(".vf-piece").all_inner_texts() == ["<s>", "我", "<b>x</b>", "␣", "مرحبا"]
    assert page.locator(".vf-index").all_inner_texts() == list("01234")
    assert page.locator(".vf-tokens b, .vf-tokens i").count() == 0
    expect(page.get_by_role("listbox", name="Source")).to_be_visible()


def test_special_tokens_look_and_read_different(open_file: OpenFile) -> None:
    page = open_file(to_html(TOKENS))
    chips = page.locator(".vf-chip")
    assert chips.nth(0).evaluate("chip => getComputedStyle(chip).borderStyle") == "dashed"
    assert chips.nth(1).evaluate("chip => getComputedStyle(chip).borderStyle") == "solid"
    expect(page.get_by_role("option", name="0: <s>, special token")).to_be_visible()


def test_a_click_and_enter_choose(open_file: OpenFile) -> None:
    page = open_file(to_html(TOKENS, selected=1))
    expect(page.locator(".vf-note")).to_have_text("1 · “我” · id 20 · e6 88 91")
    page.locator(".vf-chip").nth(2).click()
    expect(page.locator(".vf-tokens")).to_have_attribute("data-selected", "2")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    expect(page.locator(".vf-tokens")).to_have_attribute("data-selected", "2")  # moving is not choosing
    page.keyboard.press("Enter")
    expect(page.locator(".vf-tokens")).to_have_attribute("data-selected", "4")
    expect(page.locator(".vf-chip[aria-selected=true]")).to_have_count(1)


def test_pointing_tells_more_and_leaving_goes_back(open_file: OpenFile) -> None:
    page = open_file(to_html(TOKENS, selected=1))
    page.locator(".vf-chip").nth(2).hover()
    expect(page.locator(".vf-note")).to_have_text("2 · “<b>x</b>” · <i>id</i> 3")
    page.mouse.move(1, 1)
    expect(page.locator(".vf-note")).to_have_text("1 · “我” · id 20 · e6 88 91")


def test_bars_are_as_long_as_their_values(open_file: OpenFile) -> None:
    page = open_file(to_html(TOKENS))
    bars = page.locator(".vf-value")
    assert bars.count() == 2
    shares = bars.evaluate_all("bars => bars.map(b => b.firstChild.clientWidth / b.clientWidth)")
    assert shares == pytest.approx([0.5, 0.25], abs=0.03)


def test_a_selection_that_does_not_exist_is_none(open_file: OpenFile) -> None:
    page = open_file(to_html(TOKENS, selected=17))
    expect(page.locator(".vf-tokens")).to_have_attribute("data-selected", "")


def test_many_tokens_wrap(open_file: OpenFile) -> None:
    page = open_file(to_html([{"text": f"token{i}"} for i in range(60)]), width=400)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_most_chips_of_a_long_text_are_made_when_the_strip_comes_into_sight(open_file: OpenFile) -> None:
    many: list[Token] = [{"text": f"t{index}"} for index in range(1000)]
    html = to_html(many, selected=999).replace('<div id="here">', '<div style="height: 3000px"></div><div id="here">')
    page = open_file(html)
    chips = page.locator(".vf-chip")
    expect(page.locator(".vf-note")).to_contain_text("999 · “t999”")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert 0 < chips.count() < 1000
    page.locator(".vf-tokens").scroll_into_view_if_needed()
    expect(chips).to_have_count(1000)
    expect(page.locator(".vf-chip[tabindex='0']")).to_have_text("t999999")
    expect(page.locator(".vf-chip[aria-selected=true]")).to_have_count(1)
    page.locator(".vf-chips").evaluate("list => { list.scrollTop = 700; list.firstChild.textContent = 'before'; }")
    page.emulate_media(color_scheme="dark")  # everything is drawn anew
    expect(chips.first).not_to_have_text("before")
    assert chips.count() == 1000
    assert page.locator(".vf-chips").evaluate("list => list.scrollTop") == 700


def test_the_keyboard_reaches_a_chip_that_was_not_made_yet(open_file: OpenFile) -> None:
    many: list[Token] = [{"text": f"t{index}"} for index in range(1000)]
    html = to_html(many).replace('<div id="here">', '<div style="height: 3000px"></div><div id="here">')
    page = open_file(html)
    page.locator(".vf-chip").first.evaluate("chip => chip.focus({ preventScroll: true })")
    page.keyboard.press("End")
    expect(page.locator(".vf-chip").nth(999)).to_be_focused()
