"""The start page in a browser: the walk plays, pauses, steps by keyboard and leads on; it stands still where it must."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.driver import Tab
from vizformer.analysis.attribution.forward_scenes import walkthrough
from vizformer.checkpoints import load
from vizformer.web.link.view import usual_query

pytestmark = pytest.mark.browser
SENTENCE = "他喜欢喝水。"


def root(tab: Tab):
    return tab.page.locator(".vf-walkthrough")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("locale", "play", "pause", "tokens", "weight"),
    [
        ("en-US", "Play", "Pause", "“{}” is number {}", "with weight {:.3f}"),
        ("zh-CN", "播放", "暂停", "“{}” 的编号是 {}", "以权重 {:.3f}"),
    ],
)
def test_it_plays_pauses_and_steps_by_keyboard(open_tab, locale, play, pause, tokens, weight):
    checkpoint = load("zh-en")
    trace = checkpoint.trace(SENTENCE)
    at = usual_query(trace.tokens["encoder"])
    found, token = walkthrough(checkpoint, trace, at), trace.tokens["encoder"][at]
    tab = open_tab(f"/?text={SENTENCE}", locale=locale)
    expect(root(tab)).to_have_attribute("data-playing", "false")  # the reader's system asks for less motion
    expect(root(tab)).to_have_attribute("data-share", "1.00")
    tab.page.get_by_role("button", name=play, exact=True).click()
    expect(root(tab)).to_have_attribute("data-playing", "true")
    tab.page.get_by_role("button", name=pause, exact=True).click()
    expect(root(tab)).to_have_attribute("data-playing", "false")
    tab.page.locator(".vf-walk-stage").focus()
    caption = tab.page.locator(".vf-walk-caption")
    for key, scene, said in (
        ("Home", "characters", SENTENCE),
        ("ArrowRight", "tokens", tokens.format(token.text, token.id)),
        ("End", "written", checkpoint.generate(SENTENCE).text),
        ("ArrowLeft", "next", found.candidates[0].token.text),
        ("ArrowLeft", "cross", weight.format(found.cross.weight)),
    ):
        tab.page.keyboard.press(key)
        expect(root(tab)).to_have_attribute("data-scene", scene)
        expect(caption).to_contain_text(said)
    with tab.runs():
        tab.page.locator(".vf-walk-link").click()
    tab.settled()
    expect(tab.page.get_by_role("heading", level=1)).to_have_text(re.compile("Cross-attention|交叉注意力"))
    assert "site=cross" in tab.address
    for _ in range(4):  # the page and its link are entries of their own
        if tab.address.startswith("/?text="):
            break
        with tab.runs():
            tab.page.go_back()
        tab.settled()
    expect(root(tab)).to_have_attribute("data-scene", "cross")  # where it was left; and it does not lead away again
    assert tab.address.startswith("/?text=")


@pytest.mark.sweep
def test_where_motion_is_welcome_it_begins_by_itself_once(open_tab):
    tab = open_tab(None)
    tab.page.emulate_media(reduced_motion="no-preference")
    tab.goto("/")
    expect(root(tab)).to_have_attribute("data-playing", "true")
    expect(tab.page.locator("[data-scene=tokens]")).to_be_visible()  # it goes on by itself
    tab.page.keyboard.press("Tab")
    tab.page.locator(".vf-walk-stage").click()
    expect(root(tab)).to_have_attribute("data-playing", "false")
    for name in ("Glossary", "Start here"):
        tab.visit(name)
    expect(root(tab)).to_have_attribute("data-playing", "false")


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.parametrize(("width", "theme", "locale"), [(1280, "light", "en-US"), (400, "dark", "zh-CN")])
def test_nothing_scrolls_sideways(open_tab, width, theme, locale):
    tab = open_tab("/", width=width, theme=theme, locale=locale)
    chapters = tab.page.locator(".vf-chapter")
    expect(chapters).to_have_count(10)
    for index in range(10):
        chapters.nth(index).click()
        wide = (
            "() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth - m.clientWidth; }"
        )
        assert tab.page.evaluate(wide) <= 0
