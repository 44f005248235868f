"""The attention view in Chromium: the numbers that people read are the numbers that were packed."""

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.components.conftest import OpenFile
from vizformer.components.attention import Selection, pack_heads, to_html

pytestmark = pytest.mark.browser

TOKENS = ["<s>", "我", "<b>x</b>", "cat", "🐱", "a very long token indeed, longer than any label"]
FUTURE = np.triu(np.full((6, 6), 2, np.uint8), 1)


def example(queries: int = 6, keys: int = 6, reasons: np.ndarray | None = FUTURE) -> tuple[np.ndarray, np.ndarray]:
    """Weights and scores of 2 layers x 3 heads, different in every cell."""
    scores = np.random.default_rng(7).normal(size=(2, 3, queries, keys)).astype(np.float32) * 2
    bias = np.zeros((queries, keys)) if reasons is None else np.where(reasons != 0, -1e9, 0.0)
    powers = np.exp(scores + bias - (scores + bias).max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32), scores


def view(selected: Selection | None = None, **options) -> str:
    weights, scores = example()
    payload = pack_heads(weights, scores, FUTURE)
    return to_html(payload, query_tokens=TOKENS, key_tokens=TOKENS, selected=selected or Selection(), **options)


def tile(page: Page, layer: int, head: int) -> Locator:
    return page.locator(f'.vf-tile[data-layer="{layer}"][data-head="{head}"]')


def place(page: Page, query: int, key: int) -> tuple[float, float]:
    """The middle of a cell on the page."""
    left, top, width, height = map(float, page.locator(".vf-stage").get_attribute("data-plot").split())
    box = page.locator(".vf-over").bounding_box()
    return box["x"] + left + (key + 0.5) * width, box["y"] + top + (query + 0.5) * height


def label(page: Page, query: int) -> tuple[float, float]:
    """The label of a row on the page."""
    left = float(page.locator(".vf-stage").get_attribute("data-plot").split()[0])
    return page.locator(".vf-over").bounding_box()["x"] + left / 2, place(page, query, 0)[1]


def readout(page: Page) -> str:
    return page.locator(".vf-readout").inner_text()


def pixel(page: Page, query: int, key: int) -> tuple[int, int, int]:
    """The colour of a cell, taken near its corner, where no number is written."""
    left, top, width, height = map(float, page.locator(".vf-stage").get_attribute("data-plot").split())
    return tuple(
        page.evaluate(
            "([x, y]) => [...document.querySelector('.vf-base').getContext('2d').getImageData(x, y, 1, 1).data]",
            [int(left + key * width + 5), int(top + query * height + 5)],
        )[:3]
    )


def test_hover_says_who_attends_to_whom_and_how_much(open_file: OpenFile) -> None:
    page = open_file(view(Selection(1, 2)))
    weights, _ = example()
    page.mouse.move(*place(page, 3, 1))
    assert readout(page) == f"query 3 “cat” attends to key 1 “我” with weight {weights[1, 2, 3, 1]:.4f}"
    page.mouse.move(*place(page, 5, 4))
    assert float(page.locator(".vf-readout").get_attribute("data-value")) == pytest.approx(
        weights[1, 2, 5, 4], abs=1e-9
    )


def test_every_visible_cell_reads_right(open_file: OpenFile) -> None:
    page = open_file(view(Selection(0, 1)))
    weights, _ = example()
    for query in range(6):
        for key in range(query + 1):
            page.mouse.move(*place(page, query, key))
            spot = page.locator(".vf-readout")
            assert (spot.get_attribute("data-query"), spot.get_attribute("data-key")) == (str(query), str(key))
            assert float(spot.get_attribute("data-value")) == pytest.approx(weights[0, 1, query, key], abs=1e-9)


def test_many_weights_travel_as_uint16_and_still_read_right(open_file: OpenFile) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(60), size=(12, 12, 60)).astype(np.float32)
    payload = pack_heads(weights)
    assert payload.columns["weights"].dtype == np.uint16
    tokens = [str(i) for i in range(60)]
    page = open_file(to_html(payload, query_tokens=tokens, key_tokens=tokens, selected=Selection(7, 11)))
    page.mouse.move(*place(page, 31, 17))
    assert float(page.locator(".vf-readout").get_attribute("data-value")) == pytest.approx(
        weights[7, 11, 31, 17], abs=8e-6
    )


def test_masked_cells_say_why_and_look_different(open_file: OpenFile) -> None:
    page = open_file(view())
    page.mouse.move(*place(page, 1, 3))
    assert readout(page) == "query 1 “我” → key 3 “cat” is masked: the future"
    expect(page.locator(".vf-masked")).to_have_text("masked: the future")
    red, green, blue = pixel(page, 1, 3)
    assert max(red, green, blue) - min(red, green, blue) < 20  # grey; no colour of the scale is
    page.locator("[data-view=scores]").last.click()
    red, green, blue = pixel(page, 1, 3)
    assert max(red, green, blue) - min(red, green, blue) < 20


def test_colours_follow_the_scale(open_file: OpenFile) -> None:
    weights = np.zeros((1, 1, 2, 2), np.float32)
    weights[..., 0] = 1.0
    payload = pack_heads(weights, np.array([[[[5.0, -5.0], [0.0, 5.0]]]], np.float32))
    page = open_file(to_html(payload, query_tokens=["a", "b"], key_tokens=["a", "b"]))
    assert pixel(page, 0, 0) == (0xFD, 0xE7, 0x25)  # viridis at 1
    assert pixel(page, 0, 1) == (0x44, 0x01, 0x54)  # and at 0
    page.locator("[data-view=scores]").last.click()
    assert pixel(page, 0, 0) == (0x0B, 0x3C, 0x7D)
    assert pixel(page, 0, 1) == (0x7A, 0x38, 0x03)
    assert pixel(page, 1, 0) == (0xF4, 0xF4, 0xF4)  # zero is neutral


def test_a_click_in_the_grid_changes_the_head(open_file: OpenFile) -> None:
    page = open_file(view())
    weights, _ = example()
    tile(page, 1, 2).click()
    expect(page.locator(".vf-title")).to_have_text("Layer 1, head 2")
    expect(tile(page, 1, 2)).to_have_attribute("aria-selected", "true")
    expect(page.locator(".vf-tile[aria-selected=true]")).to_have_count(1)
    page.mouse.move(*place(page, 4, 0))
    assert f"{weights[1, 2, 4, 0]:.4f}" in readout(page)


def test_the_grid_by_keyboard(open_file: OpenFile) -> None:
    page = open_file(view())
    tile(page, 0, 0).focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowRight"):  # the last one stops at the border
        page.keyboard.press(key)
    expect(page.locator(".vf-title")).to_have_text("Layer 0, head 0")  # moving is not choosing
    page.keyboard.press("Enter")
    expect(page.locator(".vf-title")).to_have_text("Layer 1, head 2")


def test_the_map_by_keyboard(open_file: OpenFile) -> None:
    page = open_file(view(Selection(0, 2, query=3)))
    weights, _ = example()
    page.locator(".vf-over").focus()
    page.keyboard.press("ArrowRight")
    assert readout(page).startswith("query 3 “cat” attends to key 0 “<s>”")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert readout(page) == f"query 4 “🐱” attends to key 1 “我” with weight {weights[0, 2, 4, 1]:.4f}"
    page.keyboard.press("End")
    assert readout(page).endswith("is masked: the future")
    page.keyboard.press("Enter")
    assert page.locator(".vf-attention").get_attribute("data-query") == "4"


def test_scores_are_the_scores(open_file: OpenFile) -> None:
    page = open_file(view(Selection(1, 0)))
    _, scores = example()
    page.get_by_role("radio", name="scores").click()
    page.mouse.move(*place(page, 5, 2))
    shown = f"{scores[1, 0, 5, 2]:.4f}".replace("-", "−")
    assert readout(page) == f"query 5 “{TOKENS[5]}” and key 2 “<b>x</b>” have the score {shown}"
    page.mouse.move(*place(page, 0, 5))
    shown = f"{scores[1, 0, 0, 5]:.4f}".replace("-", "−")
    assert readout(page).endswith(f"is masked: the future (its score before the mask is {shown})")
    reach = np.abs(scores[1, 0][FUTURE == 0]).max()
    assert f"−{reach:.2f} to {reach:.2f}" in page.locator(".vf-legend").inner_text()
    page.get_by_role("radio", name="weights").click()
    expect(page.locator(".vf-attention")).to_have_attribute("data-view", "weights")


def test_without_scores_there_is_no_switch(open_file: OpenFile) -> None:
    payload = pack_heads(example()[0])
    page = open_file(to_html(payload, query_tokens=TOKENS, key_tokens=TOKENS, selected=Selection(view="scores")))
    expect(page.get_by_role("radio")).to_have_count(0)
    expect(page.locator(".vf-attention")).to_have_attribute("data-view", "weights")


def test_a_click_on_a_row_selects_the_query(open_file: OpenFile) -> None:
    page = open_file(view())
    weights, _ = example()
    page.mouse.click(*label(page, 4))
    best = int(weights[0, 0, 4].argmax())
    sentence = f"query 4 “🐱” attends most to key {best} “{TOKENS[best]}”, with weight {weights[0, 0, 4, best]:.4f}"
    page.mouse.move(0, 0)
    assert readout(page) == sentence
    page.mouse.click(*place(page, 4, 0))  # on a cell: it stays read out when the pointer leaves
    page.mouse.move(0, 0)
    assert readout(page).startswith("query 4 “🐱” attends to key 0 “<s>” with weight")


def test_tokens_are_text_and_never_markup(open_file: OpenFile) -> None:
    page = open_file(view())
    page.mouse.move(*place(page, 3, 2))
    assert "“<b>x</b>”" in readout(page)
    assert page.locator(".vf-attention b, .vf-attention s").count() == 0
    written = page.evaluate("window.written")
    assert {"<s>", "我", "<b>x</b>", "🐱"} <= set(written)
    assert any(text.startswith("a very") and text.endswith("…") for text in written)  # long labels are shortened
    assert TOKENS[5] not in written


def test_numbers_stand_in_large_cells(open_file: OpenFile) -> None:
    page = open_file(view(Selection(0, 0)))
    weights, _ = example()
    written = page.evaluate("window.written")
    for query, key in ((0, 0), (3, 1), (5, 5)):
        value = float(weights[0, 0, query, key])
        assert f"{value:.2f}" in written or f"{value:.3f}" in written


def test_zoom_by_wheel_drag_and_double_click(open_file: OpenFile) -> None:
    n = 100
    weights, _ = example(n, n, None)
    tokens = [f"t{i}" for i in range(n)]
    page = open_file(to_html(pack_heads(weights), query_tokens=tokens, key_tokens=tokens))
    spot = place(page, 40, 60)
    page.mouse.move(*spot)
    before = readout(page)
    assert before.startswith("query 40 “t40” attends to key 60 “t60”")
    for _ in range(4):
        page.mouse.wheel(0, -300)
    expect(page.get_by_role("button", name="Show all")).to_be_enabled()
    page.mouse.move(spot[0] + 1, spot[1])
    assert readout(page) == before  # the cell under the pointer stays under it
    page.mouse.move(spot[0] + 40, spot[1])
    assert 60 < int(page.locator(".vf-readout").get_attribute("data-key")) < 64  # 40 px are few cells now
    page.mouse.move(*spot)
    page.mouse.down()
    page.mouse.move(spot[0] + 100, spot[1], steps=5)
    page.mouse.up()
    assert readout(page) == before  # the picture moved with the pointer
    page.mouse.dblclick(*spot)
    expect(page.get_by_role("button", name="Show all")).to_be_disabled()


def test_the_wheel_scrolls_the_page_over_a_small_map(open_file: OpenFile) -> None:
    page = open_file(view(), height=400)
    page.mouse.move(*place(page, 1, 1))
    page.mouse.wheel(0, 200)
    page.wait_for_function("window.scrollY > 50")


@pytest.mark.sample(4)
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 40), (40, 1), (3, 90), (512, 512)])
@pytest.mark.parametrize("width", [1280, 400])
def test_all_sizes_fit_and_read_right(open_file: OpenFile, queries: int, keys: int, width: int) -> None:
    weights, _ = example(queries, keys, None)
    page = open_file(
        to_html(
            pack_heads(weights, chosen=(1, 1)),
            query_tokens=[f"q{i}" for i in range(queries)],
            key_tokens=[f"k{i}" for i in range(keys)],
        ),
        width=width,
    )
    query, key = queries // 2, keys // 2
    page.mouse.move(*place(page, query, key))
    expected = weights[1, 1, query, key]
    assert readout(page) == f"query {query} “q{query}” attends to key {key} “k{key}” with weight {expected:.4f}"
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_a_row_that_sees_nothing_says_so(open_file: OpenFile) -> None:
    weights, scores = example(3, 3, None)
    weights[:, :, 1] = 0
    reasons = np.array([[0, 0, 0], [1, 1, 1], [0, 4, 3]], np.uint8)
    page = open_file(to_html(pack_heads(weights, scores, reasons), query_tokens=list("abc"), key_tokens=list("abc")))
    page.mouse.move(*place(page, 1, 1))
    assert readout(page).endswith("is masked: padding")
    page.mouse.move(*place(page, 2, 1))
    assert readout(page).endswith("is masked: painted by hand")
    page.mouse.click(*label(page, 1))
    page.mouse.move(0, 0)
    assert readout(page) == "query 1 “b” sees no key: all are masked"
    expect(page.locator(".vf-masked")).to_have_text("masked: padding, outside the window, painted by hand")


def test_layers_with_masks_of_their_own(open_file: OpenFile) -> None:
    """Layer 1 sees two keys: beyond them its cells are masked, in layer 0 the same cells are not."""
    weights, scores = example()
    near = np.where(np.tri(6, k=-2, dtype=bool), 3, FUTURE).astype(np.uint8)
    weights[1][:, near > 0] = 0
    payload = pack_heads(weights, scores, np.stack([FUTURE, near]))
    page = open_file(to_html(payload, query_tokens=TOKENS, key_tokens=TOKENS, selected=Selection(0, 0)))
    page.mouse.move(*place(page, 4, 1))
    assert readout(page).endswith(f"with weight {weights[0, 0, 4, 1]:.4f}")
    expect(page.locator(".vf-masked")).to_have_text("masked: the future")
    tile(page, 1, 2).click()
    page.mouse.move(*place(page, 4, 1))
    assert readout(page).endswith("is masked: outside the window")
    page.mouse.move(*place(page, 4, 3))
    assert readout(page).endswith(f"with weight {weights[1, 2, 4, 3]:.4f}")
    expect(page.locator(".vf-masked")).to_have_text("masked: the future, outside the window")


def test_a_head_that_is_not_in_the_file_says_so(open_file: OpenFile) -> None:
    weights, scores = example(40, 40, None)
    tokens = [str(i) for i in range(40)]
    page = open_file(
        to_html(pack_heads(weights, scores, chosen=(1, 1), limit=1), query_tokens=tokens, key_tokens=tokens)
    )
    expect(page.locator(".vf-title")).to_have_text("Layer 1, head 1")
    assert "attends most" in readout(page)
    tile(page, 0, 2).click()
    assert readout(page) == "Only the small map of this head is in this file."


def test_words_are_the_readers(open_file: OpenFile) -> None:
    words = {
        "cell_weight": "查询 {query}“{query_token}”对键 {key}“{key_token}”的权重为 {value}",
        "grid_title": "全部注意力头",
    }
    weights, _ = example()
    page = open_file(view(words=words, layers=[4, "最后"]))
    page.mouse.move(*place(page, 2, 0))
    assert readout(page) == f"查询 2“<b>x</b>”对键 0“<s>”的权重为 {weights[0, 0, 2, 0]:.4f}"
    expect(page.locator(".vf-overview .vf-caption")).to_have_text("全部注意力头")
    assert page.locator(".vf-row-name").all_inner_texts() == ["L4", "最后"]
    assert page.locator(".vf-col-name").all_inner_texts() == ["H0", "H1", "H2"]


def test_a_token_that_looks_like_a_placeholder_stays_as_it_is(open_file: OpenFile) -> None:
    weights, _ = example(2, 2, None)
    page = open_file(to_html(pack_heads(weights), query_tokens=["{key}", "b"], key_tokens=["{value}", "$&"]))
    page.mouse.move(*place(page, 0, 1))
    assert readout(page) == f"query 0 “{{key}}” attends to key 1 “$&” with weight {weights[0, 0, 0, 1]:.4f}"


def test_dark_and_light_differ_and_letters_can_be_read(open_file: OpenFile) -> None:
    def brightness(page: Page, what: str) -> float:
        colour = page.evaluate(f"getComputedStyle(document.querySelector('.vf-attention')).{what}")
        if "rgba(0, 0, 0, 0)" in colour:
            colour = page.evaluate(f"getComputedStyle(document.body).{what}")
        return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3

    light, dark = open_file(view(), scheme="light"), open_file(view(), scheme="dark")
    assert brightness(light, "backgroundColor") - brightness(light, "color") > 150
    assert brightness(dark, "color") - brightness(dark, "backgroundColor") > 150
    dark.emulate_media(color_scheme="light")  # redrawn, not only restyled
    dark.wait_for_function("() => getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)'")
    assert pixel(dark, 1, 3) == pixel(light, 1, 3)


def test_resizing_lays_out_anew(open_file: OpenFile) -> None:
    page = open_file(view(), width=1280)
    assert page.locator(".vf-wide").count() == 1
    page.set_viewport_size({"width": 400, "height": 800})
    expect(page.locator(".vf-wide")).to_have_count(0)
    weights, _ = example()
    page.mouse.move(*place(page, 3, 3))
    assert f"{weights[0, 0, 3, 3]:.4f}" in readout(page)
    overview, detail = page.locator(".vf-overview").bounding_box(), page.locator(".vf-detail").bounding_box()
    assert overview["y"] + overview["height"] <= detail["y"]


def test_the_colours_end_at_1_or_at_the_largest_of_the_map_as_the_reader_says(open_file: OpenFile) -> None:
    weights = np.full((1, 2, 4, 4), 0.02, np.float32)
    weights[0, 0, 2, 1] = 0.25
    page = open_file(to_html(pack_heads(weights), query_tokens=list("abcd"), key_tokens=list("abcd")))
    legend, yellow = page.locator(".vf-legend"), (253, 231, 37)
    expect(legend).to_contain_text("weight")
    assert legend.locator(".vf-ticks span").last.inner_text() == "1"
    assert pixel(page, 2, 1) != yellow
    legend.get_by_role("button", name="Colours up to the largest of this map").click()
    expect(legend).to_contain_text("the colours end at the largest of this map, 0.2500")
    assert legend.locator(".vf-ticks span").last.inner_text() == "0.25"
    assert pixel(page, 2, 1) == yellow
    tile(page, 0, 1).click()  # of each map its own
    expect(legend).to_contain_text("the largest of this map, 0.0200")
    legend.get_by_role("button", name="Colours from 0 to 1").press("Enter")
    assert legend.locator(".vf-ticks span").last.inner_text() == "1"


def test_a_row_of_nan_is_hatched_and_said(open_file: OpenFile) -> None:
    weights = np.full((1, 1, 4, 4), 0.25, np.float32)
    weights[0, 0, 2] = np.nan
    chosen = Selection(0, 0, 2)
    page = open_file(to_html(pack_heads(weights), query_tokens=list("abcd"), key_tokens=list("abcd"), selected=chosen))
    assert readout(page) == "query 2 “c” has NaN weights"
    page.mouse.move(*place(page, 2, 1))
    assert "with weight NaN" in readout(page)
    assert pixel(page, 2, 1) != pixel(page, 1, 1)


def test_a_token_that_turns_the_line_around_does_not(open_file: OpenFile) -> None:
    weights = np.full((1, 1, 2, 2), 0.5, np.float32)
    page = open_file(to_html(pack_heads(weights), query_tokens=["a\u202eb", "\u2066"], key_tokens=["c", "\n"]))
    page.mouse.move(*place(page, 0, 1))
    assert readout(page) == "query 0 “a⟨E2 80 AE⟩b” attends to key 1 “↵” with weight 0.5000"
    page.mouse.move(*place(page, 1, 0))
    assert "“⟨E2 81 A6⟩”" in readout(page)
