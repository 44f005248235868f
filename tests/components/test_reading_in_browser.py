"""The text as the picture, in Chromium: what is coloured is what the chosen token attends to, and what attends to it."""

import math

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.analysis.test_head_overview import KINDS_OF_MODEL, traced
from tests.components.conftest import OpenFile
from tests.components.test_computed_head_in_browser import packed
from vizformer.analysis import TraceNumbers
from vizformer.components.attention import pack_heads
from vizformer.components.reading import Pin, Reading, to_html

pytestmark = pytest.mark.browser

TOKENS = ["The", " small", " cat", "\nsat", "."]
FUTURE = np.triu(np.full((5, 5), 2, np.uint8), 1)


def example() -> np.ndarray:
    weights = np.random.default_rng(5).random((2, 2, 5, 5)) * (FUTURE == 0)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def view(selected: Reading) -> str:
    return to_html(pack_heads(example(), None, FUTURE), query_tokens=TOKENS, key_tokens=TOKENS, selected=selected)


def colours(page: Page, text: int = 0) -> tuple[list[int], list[int]]:
    """How strong the colour under every token is, and that in its line, in percent."""
    found = (
        page.locator(".vf-text")
        .nth(text)
        .locator(".vf-word")
        .evaluate_all(
            "all => all.map(({ style: s }) => ['--vf-under', '--vf-line'].map((name) => parseInt(s.getPropertyValue(name))))"
        )
    )
    return [under for under, _ in found], [line for _, line in found]


def percent(weights: np.ndarray) -> list[int]:
    return [math.floor(100 * math.sqrt(float(weight)) + 0.5) for weight in weights]


def test_a_click_colours_the_text_by_the_row_and_the_column_of_the_token(open_file: OpenFile) -> None:
    page, weights = open_file(view(Reading(1, 0, Pin("query", 3)))), example()
    assert colours(page) == (percent(weights[1, 0, 3]), percent(weights[1, 0, :, 3]))
    page.locator(".vf-word").nth(2).click()
    assert colours(page) == (percent(weights[1, 0, 2]), percent(weights[1, 0, :, 2]))
    page.locator("select").nth(1).select_option("1")
    assert colours(page) == (percent(weights[1, 1, 2]), percent(weights[1, 1, :, 2]))
    page.locator(".vf-word").nth(4).hover()
    expect(page.locator(".vf-readout")).to_have_text(
        "query 2 “cat” → key 4 “.” is masked: the future; "
        f"query 4 “.” attends to key 2 “cat” with weight {weights[1, 1, 4, 2]:.4f}"
    )
    assert page.locator(".vf-text").first.inner_text() == "The small cat\nsat."


def test_two_texts_colour_each_other(open_file: OpenFile) -> None:
    weights = np.random.default_rng(1).dirichlet(np.ones(3), size=(1, 1, 2)).astype(np.float32)
    page = open_file(
        to_html(pack_heads(weights), query_tokens=["x", "y"], key_tokens=["a", "b", "c"], selected=Reading())
    )
    assert colours(page, 1)[0] == percent(weights[0, 0, 1])
    page.locator(".vf-text").nth(1).locator(".vf-word").nth(2).click()
    assert colours(page, 0)[1] == percent(weights[0, 0, :, 2])
    assert colours(page, 1)[0] == [0, 0, 0]


def test_a_token_is_found_and_jumped_to(open_file: OpenFile) -> None:
    tokens = [*[" one", " two"] * 300, " need", "le", *[" three"] * 300, " need", "le"]
    weights = np.full((1, 1, len(tokens), len(tokens)), 1 / len(tokens), np.float32)
    page = open_file(to_html(pack_heads(weights), query_tokens=tokens, key_tokens=tokens, selected=Reading()))
    box = page.get_by_role("searchbox", name="Find a token")
    box.fill("needle")
    box.press("Enter")
    root = page.locator(".vf-reading")
    expect(root).to_have_attribute("data-pinned", "query 600")
    expect(page.locator(".vf-finder")).to_contain_text("1 of 2")
    expect(page.locator(".vf-word").nth(600)).to_be_in_viewport()
    box.press("Enter")
    expect(root).to_have_attribute("data-pinned", "query 902")
    box.fill("camel")
    box.press("Enter")
    expect(page.locator(".vf-finder")).to_contain_text("not in the text")
    expect(root).to_have_attribute("data-pinned", "query 902")


@pytest.mark.parametrize("name", ["rope, shared keys", "alibi"])
def test_a_long_head_is_computed_from_its_queries_and_keys(open_file: OpenFile, name: str) -> None:
    trace = traced(*KINDS_OF_MODEL[name])
    payload = packed(trace, "decoder", 1)
    tokens = [f" t{index}" for index in range(payload.shape[2])]
    page = open_file(
        to_html(payload, query_tokens=tokens, key_tokens=tokens, selected=Reading(1, 3, Pin("query", 200)))
    )
    expect(page.locator(".vf-reading")).to_have_attribute("data-here", "true")
    whole = TraceNumbers(trace).heads("decoder").pattern(1, 3)
    under, line = colours(page)
    assert np.abs(np.subtract(under, percent(whole[200]))).max() <= 1
    assert np.abs(np.subtract(line, percent(whole[:, 200]))).max() <= 1
