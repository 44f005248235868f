"""A term of the glossary in running text says its sentence: to a pointer, a press, the keyboard."""

import pytest
from playwright.sync_api import expect

from vizformer.web.words.terms import in_letters, read_terms

pytestmark = pytest.mark.browser


def said(tab):
    return tab.page.locator("#vf-term")


def test_a_term_says_its_sentence_to_a_pointer_and_to_the_keyboard_and_leads_nowhere(open_tab):
    tab = open_tab("/qkv?part=lookup&lang=en&model=zh-en")
    terms, sentences = tab.page.locator("a[href^='#term-']"), read_terms("en")
    address = tab.page.url
    expect(said(tab)).to_be_hidden()
    terms.nth(0).hover()
    expect(said(tab)).to_have_text(f"query {in_letters(sentences['query'].text)}")
    expect(terms.nth(0)).to_have_attribute("aria-description", in_letters(sentences["query"].text))
    said(tab).hover()  # its sentence can be pointed at, and stays
    expect(said(tab)).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(said(tab)).to_be_hidden()
    terms.nth(1).focus()
    expect(said(tab)).to_contain_text(in_letters(sentences["key"].text))
    tab.page.keyboard.press("Tab")
    expect(said(tab)).to_contain_text(in_letters(sentences["value"].text))
    tab.page.keyboard.press("Enter")
    expect(said(tab)).to_be_visible()
    tab.page.mouse.move(5, 5)
    tab.page.mouse.click(5, 400)
    expect(said(tab)).to_be_hidden()
    assert tab.page.url == address
    styles = "one => { const s = getComputedStyle(one); return [s.textDecorationStyle, s.color] }"
    colour = terms.nth(0).evaluate("one => getComputedStyle(one.closest('p')).color")
    assert terms.nth(0).evaluate(styles) == ["dotted", colour]


def test_a_press_on_a_phone_says_it_in_chinese_within_the_screen(open_tab):
    tab = open_tab("/path?lang=zh_CN&model=zh-en", width=400, theme="dark")
    term = tab.page.locator(".vf-stations-words a[href^='#term-']").first
    term.click()
    expect(said(tab)).to_have_text(f"词元 {in_letters(read_terms('zh_CN')['token'].text)}")
    box = said(tab).bounding_box()
    assert (box["x"] >= 0, box["x"] + box["width"] <= 400) == (True, True)
    dark = said(tab).evaluate("one => getComputedStyle(one).backgroundColor")
    assert dark == "rgb(26, 35, 45)"
    tab.page.locator(".vf-stations .vf-title").click()
    expect(said(tab)).to_be_hidden()
