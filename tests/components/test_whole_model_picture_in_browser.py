"""The picture of the whole model in a browser: what is pressed is looked at, and read out, without a server."""

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from tests.components.test_whole_model_picture import picture
from vizformer.components import whole_model_picture


def weight(lane: int, place: int, head: int, query: int, key: int) -> str:
    return f"{picture().lanes[lane].maps[place].weights[head, query, key]:.3f}"


def test_it_names_its_parts_as_the_paper_does(open_file):
    page = open_file(whole_model_picture.to_html(picture()))
    said = page.locator(".vf-whole").inner_text()
    for name in (
        *("Embedding", "Positional encoding", "Multi-head self-attention", "Masked multi-head self-attention"),
        *(
            "Multi-head cross-attention",
            "Add & Norm",
            "Feed-forward",
            "Linear + softmax",
            "Decoder: outputs (shifted right)",
        ),
        "K, V",
    ):
        assert name in said
    expect(page.locator(".vf-whole-encoder .vf-whole-map")).to_have_count(4)
    expect(page.locator(".vf-whole-decoder .vf-whole-map")).to_have_count(4)
    expect(page.locator(".vf-whole-decoder .vf-whole-more")).to_have_text("+ 3")  # five tokens, two are drawn


def test_a_head_a_token_and_a_cell_change_the_sentence(open_file):
    page = open_file(whole_model_picture.to_html(picture()))
    glass = page.locator(".vf-whole-glass")
    expect(glass.locator("h3")).to_have_text("Decoder layer 0, cross-attention, head 3")
    expect(glass).to_contain_text(f"“看” attends to “</script>” with weight {weight(1, 1, 1, 1, 2)}")
    page.get_by_role("button", name="Encoder layer 1, self-attention, head 0").click()
    expect(glass.locator("h3")).to_have_text("Encoder layer 1, self-attention, head 0")
    page.locator(".vf-whole-encoder .vf-whole-token").nth(2).click()
    best = int(picture().lanes[0].maps[1].weights[0, 2].argmax())
    expect(glass).to_contain_text(f"with weight {weight(0, 1, 0, 2, best)}")
    glass.locator("canvas").press("ArrowUp")
    expect(glass).to_contain_text(
        f"“see” attends to “{['I', 'see', '</script>'][best]}” with weight {weight(0, 1, 0, 1, best)}"
    )
    score = picture().lanes[0].maps[1].scores[0, 1, best]
    expect(glass).to_contain_text(f"q·k/√64 = {score:.3f}".replace("-", "−"))


def test_what_is_masked_is_said_to_be(open_file):
    page = open_file(whole_model_picture.to_html(picture(look=(2, 0, 0, 1))))
    expect(page.locator(".vf-whole-glass")).to_contain_text("“<s>” may not attend to “看”: it is masked")


def test_a_lane_is_one_stop_of_the_keyboard(open_file):
    page = open_file(whole_model_picture.to_html(picture()))
    for lane in ("encoder", "decoder"):
        expect(page.locator(f".vf-whole-{lane} button[tabindex='0']")).to_have_count(1)
    page.locator(".vf-whole-decoder .vf-whole-map").last.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator(".vf-whole-glass h3")).to_have_text("Decoder layer 0, cross-attention, head 0")


def test_a_box_opens_in_the_glass_and_escape_leads_back(open_file):
    page = open_file(whole_model_picture.to_html(picture()))
    box, glass = page.get_by_role("button", name="Add & Norm").first, page.locator(".vf-whole-glass")
    size = page.locator(".vf-whole").bounding_box()
    box.click()
    expect(glass.locator(".vf-whole-inside h3")).to_have_text("Encoder layer 0: Add & Norm")
    expect(glass.locator(".vf-whole-inside")).to_contain_text("residual connection")
    expect(glass.locator(".vf-whole-inside")).to_contain_text("mean 0 and variance 1")
    expect(glass.locator(".vf-whole-stage")).not_to_be_visible()
    assert page.locator(".vf-whole").bounding_box() == size  # nothing moves for it
    page.keyboard.press("Escape")
    expect(glass.locator(".vf-whole-inside")).to_be_hidden()
    expect(glass.locator(".vf-whole-stage")).to_be_visible()
    expect(box).to_be_focused()
    page.get_by_role("button", name="Feed-forward").nth(2).click()
    page.get_by_role("button", name="Encoder layer 0, self-attention, head 0").click()
    expect(glass.locator(".vf-whole-inside")).to_be_hidden()


def test_steps_light_one_part_after_the_other(open_file):
    page = open_file(whole_model_picture.to_html(picture()))
    expect(page.locator(".vf-whole-now")).to_have_count(0)
    page.get_by_role("button", name="One step on").click()
    expect(page.locator(".vf-whole-now")).to_have_class("vf-whole-tokens vf-whole-now")
    page.get_by_role("button", name="One step on").click()
    expect(page.locator(".vf-whole-strip.vf-whole-now")).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_the_glass_is_a_sheet(open_file, scheme):
    page = open_file(whole_model_picture.to_html(picture()), width=400, scheme=scheme)
    glass = page.locator(".vf-whole-glass")
    expect(glass).to_be_hidden()
    head = page.get_by_role("button", name="Encoder layer 0, self-attention, head 3")
    head.click()
    expect(glass).to_be_visible()
    page.keyboard.press("Escape")
    expect(glass).to_be_hidden()
    expect(head).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_head_that_rests_on_one_token_is_said_to(open_file):
    lanes = [replace(lane, glosses=["", "look", ""]) if lane.stack == "encoder" else lane for lane in picture().lanes]
    first = replace(lanes[0].maps[0], rests=[(1, 0.8), (-1, 0.796)])
    lanes[0] = replace(lanes[0], maps=[first, *lanes[0].maps[1:]])
    page = open_file(whole_model_picture.to_html(picture(lanes=lanes)))
    rest = page.locator(".vf-whole-rest")
    expect(rest).to_have_text("")
    page.get_by_role("button", name="Encoder layer 0, self-attention, head 0").click()
    expect(rest).to_have_text("This head rests: on average “see (look)” gets 80 % of the attention.")
    page.get_by_role("button", name="Encoder layer 0, self-attention, head 3").click()
    expect(rest).to_have_text("This head rests: on average a token gives itself 80 %.")
    expect(page.locator(".vf-whole-encoder .vf-whole-token").nth(1)).to_have_text("see look")


def test_on_paper_its_parts_stand_one_below_the_other(open_file):
    page = open_file(whole_model_picture.to_html(picture()), width=1280)
    lanes, bars = page.locator(".vf-whole-lanes"), page.locator(".vf-whole-next")
    assert bars.bounding_box()["x"] > lanes.bounding_box()["x"] + 500
    page.evaluate("document.body.style.width = '700px'")
    expect(page.locator(".vf-whole")).to_have_class("vf-whole vf-whole-narrow")
    assert bars.bounding_box()["y"] > lanes.bounding_box()["y"] + 100
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
