"""The first page by its reader's hands: a head, a number proved, the next token, the way on."""

import re

import pytest
from playwright.sync_api import expect

from tests.bundled import load


def test_one_press_to_a_head_and_two_to_a_proved_product(open_tab):
    tab = open_tab("/?text=I+have+a+cat.")
    page = tab.page
    trace = load("zh-en").trace("I have a cat.")
    page.get_by_role("button", name="Encoder layer 1, self-attention, head 2").click()
    page.locator(".vf-whole-encoder .vf-whole-token").nth(4).click()
    record = trace["encoder.1.self"]
    key = int(record.pattern(2)[4].argmax())
    glass = page.locator(".vf-whole-glass")
    expect(glass).to_contain_text(f"with weight {float(record.pattern(2)[4, key]):.3f}")
    glass.get_by_role("button", name="Prove this number").click()
    expect(glass).to_contain_text("64 products")
    product = glass.locator(".vf-whole-product").inner_text().replace("−", "-")
    at, q, k, both = re.fullmatch(
        r"q\[(\d+)\] × k\[\1\] = \(?([-\d.]+)\)? × \(?([-\d.]+)\)? = ([-\d.]+)", product
    ).groups()
    own = float(record.q[2, 4, int(at)]), float(record.k[record.kv_head(2), key, int(at)])
    assert (float(q), float(k)) == (round(own[0], 4), round(own[1], 4))
    assert abs(float(both) - own[0] * own[1]) < 1e-4
    expect(glass).to_contain_text("the same.")
    page.keyboard.press("Escape")
    expect(glass.locator("canvas")).to_be_visible()


def test_a_press_on_a_bar_writes_that_token_and_an_example_begins_anew(open_tab):
    tab = open_tab("/?text=I+have+a+cat.")
    page = tab.page
    page.locator(".vf-whole-decoder .vf-whole-token").nth(1).click()
    bar = page.locator(".vf-whole-candidate").nth(1)
    token = bar.locator("b").inner_text()
    with tab.runs():
        bar.click()
    tokens = page.locator(".vf-whole-decoder .vf-whole-token")
    expect(tokens.last).to_have_text(token)
    expect(tokens.last).to_have_class(re.compile("vf-whole-query"))  # the next press goes on from there
    assert "target=" in tab.address
    with tab.runs():
        page.get_by_role("textbox", name="Sentence").fill("I have a dog.")
        page.keyboard.press("Enter")
    assert "target=" not in tab.address
    with tab.runs():
        page.get_by_role("button", name="The cat sat on the mat.").click()
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value("The cat sat on the mat.")
    assert "target=" not in tab.address
    expect(page.locator(".vf-whole-written")).to_have_text("猫坐在地毯上。")


@pytest.mark.parametrize(
    ("path", "notices", "corrected"),
    [
        ("/", 0, 0),
        ("/?text=def+f(x):+return+x**2&model=stories", 1, 0),
        ("/?text=1234+99", 1, 0),
        ("/?model=masked", 0, 1),
        ("/?text=1234+99&model=masked", 1, 1),
    ],
)
def test_nothing_scrolls_at_1280_by_800_and_the_way_leads_to_the_path(open_tab, path, notices, corrected):
    tab = open_tab(path)
    page = tab.page
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.locator(".st-key-other-language")).to_have_count(notices)
    expect(page.locator(".st-key-notices").get_by_test_id("stAlert")).to_have_count(corrected)
    assert (
        page.evaluate(
            "(() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollHeight - m.clientHeight; })()"
        )
        <= 0
    )
    with tab.runs():
        page.get_by_role("link", name="Learn it step by step").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The path")


def test_a_box_shows_the_numbers_of_the_token_that_is_followed(open_tab):
    page = open_tab("/?text=I+have+a+cat.").page
    trace = load("zh-en").trace("I have a cat.")
    page.locator(".vf-whole-decoder .vf-whole-token").nth(3).click()
    inside = page.locator(".vf-whole-inside")
    for token in (3, 2):  # another token of the stack, and the box is about that one
        if token == 3:
            page.locator(".vf-whole-decoder").get_by_role("button", name="Add & Norm").first.click()
        else:
            page.locator(".vf-whole-decoder .vf-whole-token").nth(token).click()
        expect(inside).to_contain_text(f"The row of “{trace.tokens['decoder'][token].text}”: 256 numbers")
        expect(inside).to_contain_text("The model computed the same row")
        inside.locator("input").fill("5")
        after = float(trace.residual("decoder.0.mid_self")[token, 5])
        expect(inside).to_contain_text(f"= {after:.4f}".replace("-", "−"))


def test_layers_and_heads_that_are_left_out_can_be_drawn(open_tab):
    tab = open_tab("/?model=stories&text=The+cat+sat+on+the+mat")
    page = tab.page
    layers = page.locator(".vf-whole-number")
    expect(layers).to_have_text(["Layer 0", "Layer 2", "Layer 4"])
    with tab.runs():
        page.get_by_label("Layers that are not drawn").last.select_option("3")
    expect(layers).to_have_text(["Layer 0", "Layer 3", "Layer 4"])
    title = page.locator(".vf-whole-glass > h3")
    expect(title).to_contain_text("Decoder layer 3")
    said = title.inner_text()
    with tab.runs():
        page.get_by_role("button", name="show all 8 heads").click()
    expect(page.locator(".vf-whole-map")).to_have_count(4 + 8 + 4)
    expect(title).to_have_text(said)
    expect(page.get_by_role("button", name="all 8 heads →")).to_be_visible()  # the page that shows all of all layers
