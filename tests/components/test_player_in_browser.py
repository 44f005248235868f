"""The generation player and the beam's tree in Chromium: what is on the screen is what came."""

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.components.conftest import OpenFile
from tests.components.test_player import node, written
from vizformer.components import player, tree
from vizformer.components.packing import pack_heads
from vizformer.components.player import PlayerSelection

pytestmark = pytest.mark.browser


def visible_text(page) -> list[str]:
    return page.locator(".vf-written-token:visible").all_inner_texts()


def test_a_step_is_what_came(open_file: OpenFile) -> None:
    page = open_file(player.to_html(written()))
    assert visible_text(page) == ["<s>", "A", "cat"]
    rows = page.locator(".vf-candidate")
    assert rows.locator(".vf-piece").all_inner_texts() == ["cat", "<b>", "</s>"]
    assert rows.locator(".vf-number-before").all_inner_texts() == ["50.0%", "30.0%", "10.0%"]
    assert rows.locator(".vf-number-after").all_inner_texts() == ["62.5%", "37.5%", "–"]
    expect(rows.nth(0)).to_have_attribute("aria-pressed", "true")
    expect(rows.nth(2)).to_have_class("vf-candidate vf-cut")
    expect(page.locator(".vf-choice .vf-readout")).to_have_text(
        "“cat”: the model says 50.0%; 62.5% of what is drawn from; chosen"
    )
    rows.nth(2).hover()
    expect(page.locator(".vf-choice .vf-readout")).to_contain_text("10.0%; cut by top-p")
    assert "17 other tokens together: 10.0%" in page.locator(".vf-choice").inner_text()
    widths = rows.nth(0).locator(".vf-bars > span").evaluate_all("bars => bars.map(b => b.offsetWidth)")
    assert widths[1] / widths[0] == pytest.approx(0.625 / 0.5, rel=0.03)


def test_stepping_grows_text_and_map(open_file: OpenFile) -> None:
    given = written()
    page = open_file(player.to_html(given))
    weights = given.kinds["cross"].columns["weights"].reshape(2, 3, 4, 4)
    for step in range(3):
        row = step + 1
        assert len(visible_text(page)) == row + 2
        best = int(weights[0, 0, row].argmax())
        told = page.locator(".vf-detail .vf-readout").inner_text()
        assert f"to key {best} “{given.source[best]}”, with weight {weights[0, 0, row, best]:.4f}" in told
        assert f"gives “{given.tokens[row + 1]['text']}”" in told
        assert page.locator(".vf-ending").inner_text() == ("" if step < 2 else player.ENGLISH["end_eos"])
        if step < 2:
            page.get_by_role("button", name="Next token").click()
    expect(page.get_by_role("button", name="Next token")).to_be_disabled()
    page.locator(".vf-written-token").nth(2).click()
    expect(page.locator(".vf-player")).to_have_attribute("data-step", "0")
    page.locator("input[type=range]").focus()
    page.keyboard.press("End")
    expect(page.locator(".vf-player")).to_have_attribute("data-step", "2")


def test_rows_that_are_not_written_yet_are_blank(open_file: OpenFile) -> None:
    page = open_file(player.to_html(written()))
    ink = """() => {
      const [left, top, width, height] = document.querySelector(".vf-player .vf-stage").dataset.plot.split(" ").map(Number);
      const canvas = document.querySelector(".vf-player .vf-base");
      const scale = canvas.width / canvas.clientWidth;
      const seen = canvas.getContext("2d");
      const at = (q) => [...seen.getImageData((left + 0.12 * width) * scale, (top + (q + 0.12) * height) * scale, 1, 1).data];
      return [0, 1, 2, 3].map((q) => at(q).slice(0, 3).join());
    }"""  # noqa: E501
    before = page.evaluate(ink)
    assert before[2] == before[3] == "255,255,255"
    assert "255,255,255" not in before[:2]
    page.get_by_role("button", name="Last token").click()
    after = page.evaluate(ink)
    assert after[:2] == before[:2]
    assert "255,255,255" not in after


def test_what_is_masked_in_the_layer_that_is_shown(open_file: OpenFile) -> None:
    """Layer 1 sees two keys, layer 0 all before; rows that are not written yet stay so in both."""
    future = np.triu(np.full((4, 4), 2, np.uint8), 1)
    near = np.where(np.tri(4, k=-2, dtype=bool), 3, future).astype(np.uint8)
    weights = np.stack([np.tile(seen / seen.sum(-1, keepdims=True), (3, 1, 1)) for seen in (future == 0, near == 0)])
    kinds = {"decoder": pack_heads(weights, None, np.stack([future, near]))}
    for layer, row, said in (
        (0, 2, "attends to key 0 “<s>” with weight 0.3333"),
        (1, 2, "→ key 0 “<s>” is masked: outside the window"),
        (1, 3, "This row does not exist yet."),
    ):
        selected = PlayerSelection(1, "decoder", layer, 0)
        page = open_file(player.to_html(written(kinds=kinds), selected=selected))
        left, top, width, height = map(float, page.locator(".vf-player .vf-stage").get_attribute("data-plot").split())
        box = page.locator(".vf-player .vf-over").bounding_box()
        page.mouse.move(box["x"] + left + 0.5 * width, box["y"] + top + (row + 0.5) * height)
        expect(page.locator(".vf-detail .vf-readout")).to_contain_text(said)
        page.mouse.move(box["x"] + left + 3.5 * width, box["y"] + top + 2.5 * height)
        expect(page.locator(".vf-detail .vf-readout")).to_contain_text("cannot see key 3: it comes later")


def test_playing_ends_by_itself(open_file: OpenFile) -> None:
    page = open_file(player.to_html(written()))
    page.get_by_label("Pace").select_option(label="slow")
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator(".vf-player")).to_have_attribute("data-step", "2")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_sites_heads_and_what_was_taken(open_file: OpenFile) -> None:
    given = written()
    page = open_file(player.to_html(given, selected=PlayerSelection(2, "decoder", 1, 2)))
    weights = given.kinds["decoder"].columns["weights"].reshape(2, 3, 4, 4)[1, 2, 3]
    expect(page.locator(".vf-detail .vf-readout")).to_contain_text(f"with weight {weights.max():.4f}")
    page.get_by_label("Head", exact=True).select_option("0")
    expect(page.locator(".vf-player")).to_have_attribute("data-head", "0")
    page.get_by_label("Attention", exact=True).select_option(label="Cross-attention")
    expect(page.locator(".vf-player")).to_have_attribute("data-kind", "cross")
    assert "Taken by hand: “<b>” as token 1." in page.locator(".vf-branches").inner_text()
    assert page.locator(".vf-player b").count() == 0


def test_nothing_is_wider_than_a_phone(open_file: OpenFile) -> None:
    page = open_file(player.to_html(written()), width=400, scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_the_tree(open_file: OpenFile) -> None:
    nodes = [
        node(text="The", best=True),
        node(text="<b>", fate="dropped", total=-3.0),
        node(step=1, parent=0, text="end", fate="finished", best=True, total=-1.25, score=-0.75),
    ]
    page = open_file(tree.to_html(nodes))
    assert page.locator(".vf-board .vf-piece").all_inner_texts() == ["The", "<b>", "end"]
    told = page.locator(".vf-readout")
    assert told.inner_text().startswith("token 1: “end”; all tokens up to it: log p = −1.250, score −0.750; ended here")
    assert told.inner_text().endswith("The text up to it: The·end")
    assert page.locator(".vf-board button.vf-way").all_inner_texts() == ["The", "end\n■"]
    page.locator(".vf-node[data-index='2']").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".vf-tree")).to_have_attribute("data-node", "0")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".vf-tree")).to_have_attribute("data-node", "1")
    expect(told).to_contain_text("dropped")
    page.keyboard.press("ArrowRight")  # nothing continues it
    expect(page.locator(".vf-tree")).to_have_attribute("data-node", "1")
    assert page.locator(".vf-edge").count() == 1
