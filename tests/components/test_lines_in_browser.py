"""The line view in Chromium: the numbers, the lines and the choices that people see are those of the data."""

import re

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.components.conftest import OpenFile
from tests.components.test_attention_in_browser import FUTURE, TOKENS, example
from vizformer.components.lines import LineSelection, Pin, pack_heads, pack_layer, to_html

pytestmark = pytest.mark.browser


def view(selected: LineSelection | None = None, **options) -> str:
    """2 layers x 3 heads over 6 tokens, the future masked."""
    payload = pack_heads(example()[0], None, FUTURE)
    return to_html(payload, query_tokens=TOKENS, key_tokens=TOKENS, selected=selected or LineSelection(), **options)


def token(page: Page, side: str, index: int) -> Locator:
    return page.locator({"query": ".vf-queries", "key": ".vf-keys"}[side]).locator("button").nth(index)


def chip(page: Page, head: int) -> Locator:
    return page.locator(f".vf-head[data-head='{head}']")


def readout(page: Page) -> str:
    return page.locator(".vf-readout").inner_text()


def shown(page: Page) -> str:
    return page.locator(".vf-lines").get_attribute("data-heads")


def pinned(page: Page) -> str:
    return page.locator(".vf-lines").get_attribute("data-pinned")


def numbers(page: Page, act) -> list[str]:
    """What is written on the canvas while something is done."""
    page.evaluate("window.written = []")
    act()
    return page.evaluate("window.written")


def ink(page: Page, canvas: str) -> int:
    """Pixels of a canvas that are not empty."""
    return page.evaluate(
        """(name) => {
            const canvas = document.querySelector(name);
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return data.filter((value, at) => at % 4 === 3 && value > 0).length;
        }""",
        canvas,
    )


def test_every_query_says_where_it_looks(open_file: OpenFile) -> None:
    page = open_file(view(LineSelection(1, (2,))))
    weights = example()[0][1, 2]
    for query in range(6):
        written = numbers(page, token(page, "query", query).hover)
        assert written == [f"{weights[query, key]:.3f}" if key <= query else "the future" for key in range(6)]
        best = int(weights[query].argmax())
        sentence = f"query {query} “{TOKENS[query]}” attends most to key {best} “{TOKENS[best]}”, with weight "
        assert readout(page).startswith(sentence + f"{weights[query, best]:.4f}")
        assert float(page.locator(".vf-readout").get_attribute("data-value")) == pytest.approx(weights[query, best])


def test_every_key_says_who_looks_at_it(open_file: OpenFile) -> None:
    page = open_file(view(LineSelection(0, (1,))))
    weights = example()[0][0, 1]
    for key in range(6):
        written = numbers(page, token(page, "key", key).hover)
        assert written == [f"{weights[query, key]:.3f}" if key <= query else "the future" for query in range(6)]
        best = int(weights[:, key].argmax())
        sentence = f"key {key} “{TOKENS[key]}” is attended to most by query {best} “{TOKENS[best]}”, with weight "
        assert readout(page).startswith(sentence + f"{weights[best, key]:.4f}")


def test_several_heads_are_written_side_by_side(open_file: OpenFile) -> None:
    page = open_file(view(LineSelection(1, (0, 2))))
    weights = example()[0][1, [0, 2]]
    written = numbers(page, token(page, "query", 5).hover)
    assert written == [f"{weights[slot, 5, key]:.3f}" for key in range(6) for slot in range(2)]
    slot, best = np.unravel_index(weights[:, 5].argmax(), (2, 6))
    assert readout(page).endswith(f"with weight {weights[slot, 5, best]:.4f} in head {[0, 2][slot]}")


def test_where_there_is_no_room_the_largest_stands_for_all(open_file: OpenFile) -> None:
    page = open_file(view(LineSelection(1)), width=400)
    weights = example()[0][1]
    written = numbers(page, token(page, "query", 5).hover)
    best = weights[:, 5].argmax(0)
    assert written == [text for key in range(6) for text in (f"{weights[best[key], 5, key]:.3f}", f"H{best[key]}")]


def test_masked_pairs_have_no_line_and_say_why(open_file: OpenFile) -> None:
    page = open_file(view(LineSelection(0, (0,), threshold=0)))
    token(page, "query", 1).hover()
    assert readout(page).endswith("; masked keys: 2–5 (the future)")
    token(page, "key", 3).hover()
    assert readout(page).endswith("; masked queries: 0–2 (the future)")
    token(page, "query", 1).click()
    token(page, "key", 3).hover()
    assert readout(page) == "query 1 “我” → key 3 “cat” is masked: the future"
    weights = np.zeros((1, 1, 2, 2), np.float32)
    reasons = np.array([[1, 4], [1, 4]], np.uint8)
    page = open_file(to_html(pack_heads(weights, None, reasons), query_tokens=list("ab"), key_tokens=list("cd")))
    assert ink(page, ".vf-base") == 0
    expect(page.locator(".vf-count")).to_have_text("0 of 0 lines are drawn.")
    token(page, "query", 1).hover()
    assert readout(page) == (
        "query 1 “b” sees no key: all are masked; masked keys: 0 (padding); masked keys: 1 (painted by hand)"
    )
    token(page, "key", 0).hover()
    assert readout(page).startswith("key 0 “c” is seen by no query: all are masked; masked queries: 0–1 (padding)")


def test_the_mask_of_the_layer_that_is_shown(open_file: OpenFile) -> None:
    weights = example()[0]
    near = np.where(np.tri(6, k=-2, dtype=bool), 3, FUTURE).astype(np.uint8)
    payload = pack_heads(weights, None, np.stack([FUTURE, near]))
    for layer, said in (
        (0, "; masked keys: 5 (the future)"),
        (1, "; masked keys: 0–2 (outside the window); masked keys: 5 (the future)"),
    ):
        page = open_file(
            to_html(payload, query_tokens=TOKENS, key_tokens=TOKENS, selected=LineSelection(layer, (0,), threshold=0))
        )
        token(page, "query", 4).hover()
        assert readout(page).endswith(said)
        expect(page.locator(".vf-count")).to_contain_text(f"of {[21, 11][layer]} lines")


def test_a_click_keeps_and_lets_go(open_file: OpenFile) -> None:
    page = open_file(view(LineSelection(1, (0, 1))))
    weights = example()[0][1]
    token(page, "query", 4).click()
    page.mouse.move(0, 0)
    assert pinned(page) == "query 4"
    expect(token(page, "query", 4)).to_have_attribute("aria-selected", "true")
    assert readout(page).startswith("query 4 “🐱” attends most to")
    token(page, "key", 2).hover()  # on the other side: this pair
    values = "; ".join(f"H{head} {weights[head, 4, 2]:.4f}" for head in (0, 1))
    assert readout(page) == f"query 4 “🐱” attends to key 2 “<b>x</b>”: {values}"
    token(page, "query", 0).hover()  # on the same side: that one, for now
    assert readout(page).startswith("query 0")
    page.mouse.move(0, 0)
    assert readout(page).startswith("query 4")
    token(page, "query", 4).click()
    assert pinned(page) == ""
    token(page, "key", 1).click()
    assert pinned(page) == "key 1"
    page.keyboard.press("Escape")
    assert pinned(page) == ""
    expect(page.get_by_role("button", name="let go (Esc)")).to_be_hidden()
    page.mouse.move(0, 0)
    assert readout(page) == "Point at a token to read its weights; a click keeps them."


def test_the_threshold_says_how_many_lines_there_are(open_file: OpenFile) -> None:
    page = open_file(view(LineSelection(0, (0, 2))))
    weights = example()[0][0, [0, 2]].astype(np.float64)
    visible = weights[:, FUTURE == 0]
    seen = []
    for position in (0, 20, 50, 90, 100):
        page.locator("input[type=range]").fill(str(position))
        threshold = position**2 / 10000
        expect(page.locator(".vf-threshold .vf-number")).to_have_text(f"{threshold:g}")
        count = int(((visible >= threshold) & (visible > 0)).sum())
        expect(page.locator(".vf-count")).to_have_text(f"{count} of {visible.size} lines are drawn.")
        seen.append((count, ink(page, ".vf-base")))
    assert seen == sorted(seen, reverse=True)
    assert len({count for count, _ in seen}) > 3
    page.locator("input[type=range]").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("input[type=range]")).to_have_attribute("aria-valuetext", "0.9801")


def test_a_threshold_above_all_weights_says_how_large_they_are(open_file: OpenFile) -> None:
    weights, _ = example(40, 40, None)
    names = [str(i) for i in range(40)]
    selected = LineSelection(1, (2,), threshold=0.9801)
    page = open_file(to_html(pack_heads(weights), query_tokens=names, key_tokens=names, selected=selected))
    largest = weights[1, 2].max()
    assert largest < 0.9801
    expect(page.locator(".vf-count")).to_have_text(f"None of 1600 lines is drawn: the largest weight is {largest:.4f}.")
    assert ink(page, ".vf-base") == 0


def test_of_very_many_lines_the_strongest_are_drawn(open_file: OpenFile) -> None:
    weights = np.random.default_rng(0).dirichlet(np.full(128, 0.3), size=(1, 12, 128)).astype(np.float32)
    names = [str(i) for i in range(128)]
    payload = pack_heads(weights)
    page = open_file(to_html(payload, query_tokens=names, key_tokens=names, selected=LineSelection(threshold=0)))
    ends = np.sort(weights.ravel())[-30_000]
    text = page.locator(".vf-count").inner_text()
    assert text.startswith("The 30000 strongest of 196608 lines are drawn, weights from ")
    assert float(re.findall(r"0\.\d+", text)[0]) == pytest.approx(ends, abs=1e-4)


def test_heads_are_toggled(open_file: OpenFile) -> None:
    page = open_file(view())
    weights = example()[0][0]
    assert shown(page) == "0 1 2"
    chip(page, 1).click()
    assert shown(page) == "0 2"
    expect(chip(page, 1)).to_have_attribute("aria-pressed", "false")
    count = int((weights[[0, 2]][:, FUTURE == 0] >= 0.04).sum())
    expect(page.locator(".vf-count")).to_have_text(f"{count} of 42 lines are drawn.")
    chip(page, 1).dblclick()
    assert shown(page) == "1"
    chip(page, 1).click()  # one stays
    assert shown(page) == "1"
    chip(page, 1).dblclick()  # alone already: all again
    assert shown(page) == "0 1 2"
    chip(page, 2).click(modifiers=["Shift"])
    assert shown(page) == "2"
    page.get_by_role("button", name="show all heads").click()
    assert shown(page) == "0 1 2"


def test_heads_by_keyboard(open_file: OpenFile) -> None:
    page = open_file(view())
    page.keyboard.press("Tab")
    expect(chip(page, 0)).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert shown(page) == "0 2"
    page.keyboard.press("Shift+Enter")
    assert shown(page) == "1"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    assert shown(page) == "0 1"


def test_tokens_and_layers_by_keyboard(open_file: OpenFile) -> None:
    page = open_file(view(LineSelection(0, (0,))))
    weights = example()[0]
    token(page, "query", 0).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert readout(page).startswith("query 3 “cat”")
    page.keyboard.press("Enter")
    assert pinned(page) == "query 3"
    page.keyboard.press("ArrowRight")
    expect(token(page, "key", 3)).to_be_focused()
    page.keyboard.press("Home")
    assert readout(page) == f"query 3 “cat” attends to key 0 “<s>” with weight {weights[0, 0, 3, 0]:.4f}"
    page.keyboard.press("PageDown")
    expect(page.locator(".vf-title")).to_have_text("Layer 1")
    assert readout(page) == f"query 3 “cat” attends to key 0 “<s>” with weight {weights[1, 0, 3, 0]:.4f}"
    page.keyboard.press("End")
    assert (
        readout(page) == "query 3 “cat” → key 5 “a very long token indeed, longer than any label” is masked: the future"
    )
    page.keyboard.press("Escape")
    assert pinned(page) == ""
    expect(page.get_by_role("button", name="Next layer")).to_be_disabled()
    page.get_by_role("button", name="Previous layer").click()
    expect(page.locator(".vf-title")).to_have_text("Layer 0")
    page.keyboard.press("Escape")


def test_tokens_are_text_and_never_markup(open_file: OpenFile) -> None:
    odd = ["<s>", "<b>x</b>", "我", "🐱", "مرحبا", "{value}", " ", "$&"]
    weights = np.random.default_rng(1).dirichlet(np.ones(8), size=(1, 1, 8)).astype(np.float32)
    page = open_file(to_html(pack_heads(weights), query_tokens=odd, key_tokens=odd))
    pieces = [text if text.strip() else "␣" for text in odd]
    assert page.locator(".vf-queries .vf-piece").all_text_contents() == pieces
    assert page.locator(".vf-keys .vf-piece").all_text_contents() == pieces
    assert page.locator(".vf-lines b, .vf-lines s").count() == 0
    token(page, "query", 5).click()
    token(page, "key", 7).hover()
    assert readout(page) == f"query 5 “{{value}}” attends to key 7 “$&” with weight {weights[0, 0, 5, 7]:.4f}"


@pytest.mark.sample(4)
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 40), (40, 1), (3, 90), (128, 128), (400, 400)])
@pytest.mark.parametrize("width", [1280, 400])
def test_all_sizes_fit_and_read_right(open_file: OpenFile, queries: int, keys: int, width: int) -> None:
    weights, _ = example(queries, keys, None)
    names = {"query": [f"q{i}" for i in range(queries)], "key": [f"k{i}" for i in range(keys)]}
    payload = pack_heads(weights, limit=10**8)
    selected = LineSelection(1, (1,))
    page = open_file(
        to_html(payload, query_tokens=names["query"], key_tokens=names["key"], selected=selected), width=width
    )
    query, key = queries // 2, keys // 2
    token(page, "query", query).click()
    token(page, "key", key).hover()  # scrolls there
    expected = weights[1, 1, query, key]
    assert readout(page) == f"query {query} “q{query}” attends to key {key} “k{key}” with weight {expected:.4f}"
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.locator(".vf-scroller").bounding_box()["height"] <= 760
    assert ink(page, ".vf-over") > 0


def test_the_shorter_side_stays_in_sight(open_file: OpenFile) -> None:
    weights, _ = example(90, 3, None)
    names = [str(i) for i in range(90)]
    page = open_file(
        to_html(pack_heads(weights), query_tokens=names, key_tokens=list("abc"), selected=LineSelection(0, (0,)))
    )
    key, query = token(page, "key", 1).bounding_box(), token(page, "query", 0).bounding_box()
    page.locator(".vf-scroller").evaluate("scroller => { scroller.scrollTop = 500; }")
    assert token(page, "key", 1).bounding_box() == key
    assert token(page, "query", 0).bounding_box()["y"] == query["y"] - 500
    first = int(500 // query["height"])
    assert numbers(page, token(page, "key", 1).hover)[0] == f"{weights[0, 0, first, 1]:.3f}"


def test_a_finer_screen_gets_finer_lines(open_file: OpenFile, browser: Browser) -> None:
    coarse = open_file(view())
    context = browser.new_context(viewport={"width": 1280, "height": 800}, device_scale_factor=2)
    fine = context.new_page()
    fine.goto(coarse.url)
    widths = [page.locator(".vf-base").evaluate("canvas => canvas.width") for page in (coarse, fine)]
    assert widths[1] == 2 * widths[0]
    assert ink(fine, ".vf-base") > 2 * ink(coarse, ".vf-base")
    context.close()


def test_a_file_with_one_layer_says_so(open_file: OpenFile) -> None:
    weights, _ = example()
    payload = pack_layer(weights[1], FUTURE, layer=1, layers=2)
    page = open_file(to_html(payload, query_tokens=TOKENS, key_tokens=TOKENS))
    expect(page.locator(".vf-title")).to_have_text("Layer 1")
    token(page, "query", 3).hover()
    assert f"{weights[1, :, 3].max():.4f}" in readout(page)
    page.get_by_role("button", name="Previous layer").click()
    assert readout(page) == "This file holds only one layer: Layer 1."
    assert ink(page, ".vf-base") == 0


def test_words_are_the_readers(open_file: OpenFile) -> None:
    words = {"row_strongest": "查询 {query}“{query_token}”最关注键 {key}，权重 {value}", "queries": "查询"}
    weights, _ = example()
    page = open_file(view(LineSelection(1, (0,), Pin("query", 0)), words=words, layers=[4, "最后"]))
    assert readout(page).startswith(f"查询 0“<s>”最关注键 0，权重 {weights[1, 0, 0, 0]:.4f}")
    expect(page.locator(".vf-title")).to_have_text("最后")
    expect(page.locator(".vf-names span").first).to_have_text("查询")


def test_heads_have_colours_patterns_and_numbers(open_file: OpenFile) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(1, 12, 4)).astype(np.float32)
    page = open_file(to_html(pack_heads(weights), query_tokens=list("abcd"), key_tokens=list("abcd")))
    samples = page.locator(".vf-head line").evaluate_all(
        "lines => lines.map((line) => `${line.getAttribute('stroke')} ${line.getAttribute('stroke-dasharray')}`)"
    )
    assert len(set(samples)) == 12
    assert page.locator(".vf-head").all_inner_texts() == [f"H{head}" for head in range(12)]


def test_pointing_redraws_at_once(open_file: OpenFile) -> None:
    weights, _ = example(64, 64, None)
    names = [f"t{i}" for i in range(64)]
    page = open_file(to_html(pack_heads(weights), query_tokens=names, key_tokens=names))
    times = page.evaluate(
        """async () => {
            const times = [];
            for (const token of document.querySelectorAll(".vf-queries button")) {
                const start = performance.now();
                token.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
                times.push(performance.now() - start);
                await new Promise(requestAnimationFrame);
            }
            return times;
        }"""
    )
    assert np.median(times) < 5  # milliseconds; about 1 on a machine that is busy


def test_dark_and_light_and_a_change_of_width(open_file: OpenFile) -> None:
    page = open_file(view(), scheme="dark", width=1280)
    dark = chip(page, 0).locator("line").get_attribute("stroke")
    page.emulate_media(color_scheme="light")
    expect(chip(page, 0).locator("line")).not_to_have_attribute("stroke", dark)
    assert page.locator(".vf-wide").count() == 1
    page.set_viewport_size({"width": 400, "height": 800})
    expect(page.locator(".vf-wide")).to_have_count(0)
    canvas, gap = page.locator(".vf-base"), page.locator(".vf-between").bounding_box()
    assert canvas.evaluate("canvas => canvas.width") == round(gap["width"])
    assert ink(page, ".vf-base") > 0


def test_a_part_of_a_text_has_the_numbers_that_its_tokens_have_in_the_text(open_file: OpenFile) -> None:
    payload = pack_layer(example()[0][0], FUTURE, layer=0, layers=2, first=(200, 100))
    selected = LineSelection(heads=(1,), pinned=Pin("query", 3))
    page = open_file(to_html(payload, query_tokens=TOKENS, key_tokens=TOKENS, selected=selected))
    assert token(page, "query", 0).inner_text().split()[0] == "200"
    assert token(page, "key", 5).inner_text().split()[0] == "105"
    assert token(page, "key", 5).get_attribute("aria-label") == f"105: {TOKENS[5]}"
    assert readout(page).startswith(f"query 203 “{TOKENS[3]}” attends most to key 10")
    assert readout(page).endswith("masked keys: 104–105 (the future)")
    token(page, "key", 1).hover()
    assert readout(page).startswith(f"query 203 “{TOKENS[3]}” attends to key 101 “{TOKENS[1]}” with weight")
