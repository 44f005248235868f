"""The line view on the running page: quick choices reach the link and are not thrown back."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect


def link(tab) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(tab.page.url).query, True).items()}


@pytest.mark.sweep
def test_choices_reach_the_link_and_survive_the_map_and_a_reload(open_tab):
    tab = open_tab("/attention?site=cross&head=0")
    with tab.runs():
        tab.page.get_by_role("radio", name="Lines").click()
    view = tab.page.locator(".vf-lines")
    expect(view).to_have_attribute("data-heads", "0")
    for head in (1, 2, 3):  # quicker than the server answers
        tab.page.locator(f".vf-head[data-head='{head}']").click()
        tab.page.wait_for_timeout(170)
    tab.page.locator(".vf-head[data-head='2']").click(modifiers=["Shift"])
    tab.page.get_by_role("button", name="Next layer").click()
    tab.page.locator(".vf-queries button").nth(2).click()
    tab.page.wait_for_function("() => new URLSearchParams(location.search).get('query') === '2'")
    tab.settled()
    expect(view).to_have_attribute("data-heads", "2")
    expect(view).to_have_attribute("data-pinned", "query 2")
    told = tab.page.locator(".vf-lines .vf-readout").inner_text()
    assert link(tab) == {"site": "cross", "picture": "lines", "layer": "1", "head": "2", "query": "2"}
    with tab.runs():
        tab.page.get_by_role("radio", name="Map").click()
    expect(tab.page.locator(".vf-attention .vf-title")).to_have_text("Layer 1, head 2")
    assert tab.page.locator(".vf-attention .vf-readout").inner_text() == told  # the same sentence, the same number
    with tab.runs():
        tab.page.get_by_role("radio", name="Lines").click()
    tab.settled()
    expect(view).to_have_attribute("data-pinned", "query 2")
    with tab.runs():
        tab.page.reload()
    tab.settled()
    expect(view).to_have_attribute("data-heads", "2")
    expect(tab.page.locator(".vf-lines .vf-title")).to_have_text("Layer 1")
    assert tab.page.locator(".vf-lines .vf-readout").inner_text() == told


@pytest.mark.sweep
def test_nothing_is_cut_off_on_a_phone(open_tab):
    tab = open_tab("/attention?site=cross&picture=lines", width=400, locale="zh-CN", theme="dark")
    expect(tab.page.locator(".vf-lines")).to_be_visible()
    assert tab.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    box = tab.page.locator(".vf-lines").bounding_box()
    body = tab.page.locator(".vf-body").bounding_box()
    assert body["x"] + body["width"] <= box["x"] + box["width"] + 1
