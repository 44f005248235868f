"""The page Generation in a browser: playing needs no server, stopping and branching reach the link."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect


def link(tab) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(tab.page.url).query, True).items()}


@pytest.mark.sweep
def test_playing_branching_and_a_reload(open_tab):
    tab = open_tab("/generation?new=0&text=他喜欢喝水。")
    view = tab.page.locator(".vf-player")
    expect(view).to_have_attribute("data-step", "0")
    tab.settled()
    finished = tab.finished
    tab.page.get_by_role("button", name="Play").click()
    expect(view).not_to_have_attribute("data-step", "0")
    last = tab.page.locator(".vf-player input[type=range]").get_attribute("max")
    expect(view).to_have_attribute("data-step", last, timeout=30_000)
    tab.page.wait_for_function("last => new URLSearchParams(location.search).get('new') === last", arg=last)
    tab.settled()
    assert tab.finished <= finished + 2  # one report at the end, none on the way
    with tab.runs():
        tab.page.locator("[data-name=first]").click()
    tab.settled()
    written = tab.page.locator(".vf-written-token").all_inner_texts()
    candidate = tab.page.locator(".vf-candidate").nth(1)
    taken = candidate.get_attribute("data-id")
    name = candidate.locator(".vf-piece").inner_text()
    candidate.click()
    expect(view).to_have_attribute("data-branch", f"0:{taken}")
    tab.settled()
    assert link(tab)["branch"] == f"0:{taken}"
    expect(tab.page.locator(".vf-branches")).to_contain_text(name)
    with tab.runs():
        tab.page.reload()
    expect(view).to_have_attribute("data-branch", f"0:{taken}")
    tab.settled()
    tab.page.locator(".vf-branches button").first.click()
    expect(view).to_have_attribute("data-branch", "")
    tab.settled()
    assert tab.page.locator(".vf-written-token").all_inner_texts() == written
    assert "branch" not in link(tab)


@pytest.mark.sweep
def test_nothing_is_cut_off_on_a_phone(open_tab):
    tab = open_tab("/generation?sampling=beam", width=400, locale="zh-CN", theme="dark")
    expect(tab.page.locator(".vf-tree")).to_be_visible()
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.page.evaluate(wide) <= 0
    with tab.runs():
        tab.page.get_by_role("radio", name="采样").click()
    expect(tab.page.locator(".vf-player")).to_be_visible()
    assert tab.page.evaluate(wide) <= 0
    part = tab.page.locator(".vf-player .vf-stage").bounding_box()
    assert part["x"] + part["width"] <= 400
