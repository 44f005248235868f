"""The graph of heads that read one another: what is refused, and how it works in Chromium."""

import pytest
from playwright.sync_api import expect

from tests.components.conftest import OpenFile
from vizformer.components.composition import LARGEST, MOST, Edge, to_html

EDGES = [
    Edge(way="K", first=(0, 1), second=(1, 2), excess=53.2),
    Edge(way="V", first=(0, 0), second=(2, 3), excess=5.0),
]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="can be drawn"):
        to_html((LARGEST + 1, 4), [])
    with pytest.raises(ValueError, match="can be followed"):
        to_html((3, 4), [EDGES[0]] * (MOST + 1))
    for first, second in (((1, 0), (1, 1)), ((1, 0), (0, 1)), ((0, 4), (1, 0)), ((0, 0), (3, 0))):
        with pytest.raises(ValueError, match="no edge leads"):
            to_html((3, 4), [Edge(way="Q", first=first, second=second, excess=5.0)])


@pytest.mark.browser
def test_a_head_is_chosen_by_click_or_by_keys_and_its_edges_are_said(open_file: OpenFile) -> None:
    page = open_file(to_html((3, 4), EDGES, selected=(1, 2)))
    graph, heads, note = page.locator(".vf-composition"), page.locator(".vf-composition-head"), page.locator(".vf-note")
    assert heads.count() == 12
    assert page.locator("path.vf-edge").count() == 2
    expect(graph).to_have_attribute("data-selected", "1,2")
    expect(note).to_contain_text("layer 1, head 2 reads layer 0, head 1 by its keys: 53.2 deviations above chance.")
    expect(page.locator("path.vf-near")).to_have_count(1)
    page.get_by_label("layer 0, head 0").click()
    expect(graph).to_have_attribute("data-selected", "0,0")
    page.keyboard.press("ArrowRight")
    expect(note).to_have_text("layer 1, head 0: clearly composed with no other.")
    expect(graph).to_have_attribute("data-selected", "0,0")  # moving is not choosing
    page.keyboard.press("Enter")
    expect(graph).to_have_attribute("data-selected", "1,0")
    assert page.locator(".vf-alone").count() == 8


@pytest.mark.browser
def test_a_deep_model_scrolls_inside_itself(open_file: OpenFile) -> None:
    page = open_file(to_html((LARGEST, 4), EDGES), width=400)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
