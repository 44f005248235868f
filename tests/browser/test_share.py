"""Share, Back and Download in a browser: what is opened again is what was there."""

import re
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect


def share(tab):
    with tab.runs():
        tab.page.get_by_role("button", name=re.compile("^(Share|分享)$")).click()
    box = tab.page.get_by_test_id("stPopoverBody")
    expect(box.locator("img")).to_be_visible()
    return box


def linked(box) -> str:
    found = urlsplit(box.get_by_test_id("stCode").locator("code").inner_text())
    return f"{found.path}?{found.query}"


def said(address: str) -> tuple[str, dict[str, list[str]]]:
    found = urlsplit(address)
    return found.path, parse_qs(found.query)


@pytest.mark.sweep
@pytest.mark.parametrize("page", ["/attention?picture=lines&lines=0,2@0.2@k3&layer=1", "/tokens?part=context&second=x"])
def test_the_shared_link_is_complete_and_opens_the_same(open_tab, page):
    tab = open_tab(page)
    tab.settled()
    where = linked(share(tab))
    assert said(where) == said(tab.page.evaluate("location.pathname + location.search"))
    other = open_tab(where)
    assert said(other.address) == said(page)


@pytest.mark.sweep
def test_scores_and_a_cell_are_in_the_link(open_tab):
    tab = open_tab("/attention?layer=1&head=2")
    with tab.runs():
        tab.page.locator(".vf-attention .vf-switch button[data-view=scores]").click()
    tab.settled()
    where = linked(share(tab))
    assert "numbers=scores" in where
    other = open_tab(where)
    expect(other.page.locator(".vf-attention .vf-switch button[data-view=scores]")).to_have_attribute(
        "aria-checked", "true"
    )


@pytest.mark.sweep
def test_the_code_of_the_link_is_black_on_white_and_square(open_tab):
    tab = open_tab("/qkv", locale="zh-CN", theme="dark", width=400)
    tab.page.locator(".st-key-bar-fold label").click()
    code = share(tab).locator("img")
    box = code.bounding_box()
    assert box["width"] == pytest.approx(box["height"], abs=1)
    assert box["width"] > 150


@pytest.mark.sweep
def test_back_and_forward_take_one_press(open_tab):
    tab = open_tab("/explore?text=hello&head=2")
    tab.visit("Attention")
    with tab.runs():
        tab.page.locator(".vf-attention .vf-switch button[data-view=scores]").click()
    tab.settled()
    assert tab.address == "/attention?text=hello&head=2&numbers=scores"
    for there in ("/attention?text=hello&head=2", "/explore?text=hello&head=2"):
        with tab.runs():
            tab.page.go_back()
        tab.settled()
        assert tab.address == there
    for there in ("/attention?text=hello&head=2", "/attention?text=hello&head=2&numbers=scores"):
        with tab.runs():
            tab.page.go_forward()
        tab.settled()
        assert tab.address == there


@pytest.mark.sweep
def test_a_head_is_taken_away_and_opened_without_a_network(open_tab, browser, tmp_path):
    tab = open_tab("/attention?layer=1&head=3&text=" + quote("猫 & <b> 😀"))
    with tab.runs():
        tab.page.get_by_role("button", name="Download").first.click()
    files = {}
    for kind in ("SVG", "NPZ", "HTML", "trace"):
        button = tab.page.get_by_role("button", name=kind, exact=True).first
        with tab.page.expect_download() as download:
            button.dispatch_event("click")  # wherever the page scrolls to meanwhile
        files[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[kind])
    with np.load(files["NPZ"]) as read:
        weights, keys = read["weights"], read["key_tokens"].tolist()
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(files["SVG"].as_uri())
    drawn = page.locator("g.cells rect")
    expect(drawn).to_have_count(weights.size)
    texts = page.locator("text").all_text_contents()
    assert [key for key in keys if texts.count(key) < 2] == []
    page.goto(files["HTML"].as_uri())
    expect(page.locator(".vf-attention .vf-title")).to_have_text("Layer 1, head 3")
    assert all(url.startswith("file:") for url in asked)
    context.close()
    assert files["trace"].stat().st_size > 100_000
