"""The overview of all heads, where there are more layers than fit."""

from dataclasses import asdict

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.components.conftest import OpenFile
from vizformer.components import attention
from vizformer.components.attention import Selection, pack_heads, to_html

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("layer", [0, 57])
def test_the_chosen_layer_of_sixty_is_in_sight(open_file: OpenFile, layer: int) -> None:
    weights = np.full((60, 2, 3, 3), 1 / 3, np.float32)
    page = open_file(
        to_html(
            pack_heads(weights, weights, None),
            query_tokens=["a", "b", "c"],
            key_tokens=["a", "b", "c"],
            selected=Selection(layer, 1),
        )
    )
    tile = page.locator(f'.vf-tile[data-layer="{layer}"][data-head="1"]')
    inner, outer = tile.bounding_box(), page.locator(".vf-scroll").bounding_box()
    assert inner
    assert outer
    assert outer["y"] <= inner["y"]
    assert inner["y"] + inner["height"] <= outer["y"] + outer["height"]
    assert page.evaluate("document.scrollingElement.scrollTop") == 0


def of_six(order: str = "layer") -> str:
    """2 layers x 3 heads whose entropy rises backwards, and whose first key has the same weight in all."""
    weights = np.full((2, 3, 4, 4), 0.25, np.float32)
    entropy = np.array([[0.1, 0.6, 0.3], [1.25, 0.2, 0.3]])
    payload = pack_heads(weights).measured(entropy=entropy, distance=None, first=np.full((2, 3), 0.25))
    return to_html(payload, query_tokens=list("abcd"), key_tokens=list("abcd"), selected=Selection(1, 1, order=order))


def heads_in_order(page: Page) -> list[list[int]]:
    return page.evaluate(
        "() => [...document.querySelectorAll('.vf-tile')].map(({dataset: d}) => [Number(d.layer), Number(d.head)])"
    )


def test_the_heads_are_sorted_by_what_was_measured(open_file: OpenFile) -> None:
    page = open_file(of_six())
    by_layer = [[layer, head] for layer in range(2) for head in range(3)]
    assert heads_in_order(page) == by_layer
    box = page.locator(".vf-order select")
    assert box.locator("option").evaluate_all("all => all.map((one) => one.value)") == ["layer", "entropy", "first"]
    box.select_option("entropy")
    assert heads_in_order(page) == [[1, 0], [0, 1], [0, 2], [1, 2], [1, 1], [0, 0]]  # those alike by layer
    assert page.locator(".vf-row-name").all_inner_texts() == ["1.25", "0.30"]
    expect(page.locator(".vf-tile").first).to_have_attribute(
        "aria-label", "Layer 1, head 0: entropy 1.25 nats, the mean over its queries"
    )
    expect(page.locator(".vf-tile[aria-selected=true]")).to_have_attribute("data-layer", "1")
    page.locator(".vf-tile").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".vf-title")).to_have_text("Layer 1, head 1")
    box.select_option("layer")
    assert heads_in_order(page) == by_layer
    assert heads_in_order(open_file(of_six("first"))) == by_layer
    assert heads_in_order(open_file(of_six("distance"))) == by_layer  # it was not measured


def test_the_heads_are_grouped_by_what_they_do(open_file: OpenFile) -> None:
    """Of 2 layers x 3 heads: two that look at the token before, one at itself, two that rest, one without a habit."""
    shares = {
        "previous": [[0.6, 0.1, 0.0], [0.9, 0.3, 0.0]],
        "own": [[0.1, 0.7, 0.0], [0.0, 0.3, 0.1]],
        "next": [[0.0, 0.0, 0.0], [0.0, 0.2, 0.0]],
        "first": [[0.1, 0.1, 0.3], [0.0, 0.1, 0.8]],
        "last": [[0.1, 0.1, 0.4], [0.0, 0.1, 0.1]],
    }
    payload = pack_heads(np.full((2, 3, 4, 4), 0.25, np.float32)).measured(
        **{name: np.array(values) for name, values in shares.items()}
    )
    selected = Selection(1, 1, order="habit")
    page = open_file(to_html(payload, query_tokens=list("abcd"), key_tokens=list("abcd"), selected=selected))
    assert heads_in_order(page) == [[1, 0], [0, 0], [0, 1], [1, 1], [1, 2], [0, 2]]
    assert page.locator(".vf-habit").all_inner_texts() == [
        "The token before (2)",
        "The token itself (1)",
        "No such pattern (1)",
        "Rest on the first or the last token (2)",
    ]
    assert page.locator(".vf-row-name").all_inner_texts() == ["0.90", "0.70", "0.30", "0.90"]
    expect(page.locator(".vf-tile").nth(5)).to_have_attribute(
        "aria-label", "Layer 0, head 2: the first and the last token get 0.70 together, the mean over its queries"
    )
    page.locator(".vf-tile").nth(1).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "Enter"):  # rows are of unequal length
        page.keyboard.press(key)
    expect(page.locator(".vf-title")).to_have_text("Layer 0, head 2")


@pytest.mark.sweep
def test_what_is_in_sight_is_painted_before_the_rest(open_file: OpenFile) -> None:
    weights = np.full((60, 4, 40, 40), 1 / 40, np.float32)
    tokens = [str(index) for index in range(40)]
    text = to_html(pack_heads(weights, limit=10**9), query_tokens=tokens, key_tokens=tokens, selected=Selection(0, 0))
    slowly = """<script>
      const now = performance.now.bind(performance);
      performance.now = () => now() * 1000;  // every turn is over after one tile
      window.painted = [];
      new MutationObserver((changes) => {
        for (const { target, addedNodes } of changes) if (addedNodes[0]?.tagName === "CANVAS" && target.dataset.layer) {
          window.painted.push(Number(target.dataset.layer));
        }
      }).observe(document, { subtree: true, childList: true });
    </script>"""
    page = open_file(text.replace("<head>", "<head>" + slowly))
    page.wait_for_function("window.painted.length === 240")
    order = page.evaluate("window.painted")
    in_sight = page.evaluate(
        """() => { const room = document.querySelector(".vf-scroll").getBoundingClientRect();
        return [...document.querySelectorAll(".vf-tile")].filter((tile) => {
          const box = tile.getBoundingClientRect();
          return box.bottom > 0 && box.top < Math.min(innerHeight, room.bottom);
        }).length; }"""
    )
    assert 8 <= in_sight < 120
    assert max(order[:in_sight]) < min(order[in_sight:]) + 1
    assert order == sorted(order)


def test_the_strongest_head_of_each_kind_stands_above_the_others(open_file: OpenFile) -> None:
    """Before it was measured over texts, the first of each group; of those that rest only the number is said."""
    shares = {
        "previous": [[0.6, 0.1, 0.0], [0.9, 0.3, 0.0]],
        "own": [[0.1, 0.7, 0.0], [0.0, 0.3, 0.1]],
        "next": [[0.0, 0.0, 0.0], [0.0, 0.2, 0.0]],
        "first": [[0.1, 0.1, 0.8], [0.0, 0.1, 0.8]],
        "last": np.zeros((2, 3)),
    }
    payload = pack_heads(np.full((2, 3, 4, 4), 0.25, np.float32)).measured(
        **{name: np.array(values) for name, values in shares.items()}
    )

    def opened(strip: dict[str, object] | None, order: str = "habit") -> Page:
        data = attention.VIEW._data(payload, list("abcd"), list("abcd"), None)
        selected = asdict(Selection(1, 1, order=order))
        more = {} if strip is None else {"strip": strip}
        page = attention.VIEW.component.page(data=data | more, columns=payload.columns, selected=selected, title="")
        return open_file(page)

    page = opened({"texts": 0, "resting": 0, "heads": []})
    assert page.locator(".vf-pick-name").all_inner_texts() == ["token before", "itself"]
    page.locator(".vf-pick").first.click()
    expect(page.locator(".vf-title")).to_have_text("Layer 1, head 0")
    assert page.locator(".vf-pick").evaluate_all("all => all.map((one) => one.ariaPressed)") == ["true", "false"]
    expect(page.locator(".vf-tile[aria-selected=true]")).to_have_attribute("data-head", "0")

    induction = {"layer": 0, "head": 2, "target": "induction", "mean": 0.456, "low": 0.3, "high": 0.7}
    page = opened({"texts": 8, "resting": 3, "heads": [induction]})
    expect(page.locator(".vf-strongest")).to_contain_text("The strongest of each kind, over 8 texts")
    expect(page.locator(".vf-strongest")).to_contain_text("Heads that rest on the first or the last token: 3")
    expect(page.locator(".vf-pick")).to_have_attribute(
        "aria-label", "Layer 0, head 2, induction: 0.46 of its attention (0.30 to 0.70 over 8 texts)"
    )
    assert page.locator(".vf-pick canvas").count() == 1
    page.locator(".vf-pick").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".vf-title")).to_have_text("Layer 0, head 2")
    page.locator(".vf-order select").select_option("layer")
    expect(page.locator(".vf-strongest")).to_be_hidden()
    expect(opened(None).locator(".vf-strongest")).to_be_hidden()
    expect(opened({"texts": 8, "resting": 0, "heads": []}).locator(".vf-strongest")).to_be_hidden()


@pytest.mark.parametrize("order", ["layer", "habit"])
def test_a_head_that_its_layer_has_not_is_not_shown(open_file: OpenFile, order: str) -> None:
    weights = np.full((2, 3, 4, 4), 0.25, np.float32)
    weights[0, 2] = 0
    own = np.array([[0.1, 0.2, np.nan], [0.3, 0.4, 0.5]])
    names = ("own", "previous", "next", "first", "last")
    payload = pack_heads(weights).measured(**dict.fromkeys(names, own))
    tokens = list("abcd")
    page = open_file(to_html(payload, query_tokens=tokens, key_tokens=tokens, selected=Selection(1, 1, order=order)))
    there = [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]
    assert sorted(heads_in_order(page)) == there
    if order == "layer":
        assert heads_in_order(page) == there
        rows = page.locator(".vf-row[role=row]")
        assert [rows.nth(i).locator(".vf-tile").count() for i in range(2)] == [2, 3]
