"""The main job in a browser: type a sentence, see every head, check every number, send the link to someone else."""

import re
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

from vizformer.analysis import head_maps, next_tokens
from vizformer.checkpoints import load
from vizformer.explain import attention_steps
from vizformer.web.link.view import usual_query

SENTENCE = "他喜欢喝水。"
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def checkpoint():
    return load("zh-en")


def link(tab) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(tab.page.url).query, True).items()}


def type_sentence(tab, text: str, label: str = "Sentence") -> None:
    tab.settled()  # a box that is drawn anew while it is filled keeps what stood in it
    box = tab.page.get_by_label(label, exact=True)
    box.fill(text)
    with tab.runs():
        box.press("Enter")
    tab.settled()


def test_a_chinese_sentence_and_its_heads(open_tab, checkpoint):
    trace = checkpoint.trace(SENTENCE)
    maps, query = head_maps(trace, "encoder"), usual_query(trace.tokens["encoder"])
    tab = open_tab("/attention")
    type_sentence(tab, SENTENCE)
    expect(tab.page.get_by_text(checkpoint.generate(SENTENCE).text, exact=True).first).to_be_visible()
    for layer, head in ((0, 0), (1, 2), (2, 3)):
        tab.page.locator(f'.vf-tile[data-layer="{layer}"][data-head="{head}"]').click()
        root = tab.page.locator(".vf-attention")
        expect(root).to_have_attribute("data-layer", str(layer))
        expect(root).to_have_attribute("data-head", str(head))
        readout = tab.page.locator(".vf-readout").first
        expect(readout).to_have_attribute("data-query", str(query))
        key = int(maps.weights[layer, head, query].argmax())
        expect(readout).to_contain_text(f"{maps.weights[layer, head, query, key]:.4f}")
        tab.settled()
    assert (link(tab)["layer"], link(tab)["head"]) == ("2", "3")


def test_the_same_view_in_another_browser_in_its_own_language(open_tab):
    first = open_tab(f"/attention?text={SENTENCE}&site=cross&layer=2&head=1&query=2")
    expect(first.page.locator(".vf-attention")).to_have_attribute("data-query", "2")
    other = open_tab(first.address, locale="zh-CN", theme="dark", width=400)
    root = other.page.locator(".vf-attention")
    for name, value in (("layer", "2"), ("head", "1"), ("query", "2")):
        expect(root).to_have_attribute(f"data-{name}", value)
    box = other.page.get_by_label("句子", exact=True)
    expect(box).to_be_hidden()  # one line says what it is, and unfolds it
    other.page.locator("label").filter(has_text=f"菜单 · {SENTENCE}").click()
    expect(box).to_have_value(SENTENCE)
    expect(other.page.get_by_role("radio", name="交叉注意力")).to_have_attribute("aria-checked", "true")
    width = other.page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
    assert width[0] <= width[1], "the page scrolls sideways"


def test_next_tokens_of_a_position(open_tab, checkpoint):
    best = next_tokens(checkpoint, checkpoint.trace(SENTENCE), 1)[0]
    tab = open_tab(f"/attention?text={SENTENCE}")
    with tab.runs():
        tab.page.locator(".vf-tokens .vf-chip").nth(1).click()
    tab.settled()
    assert link(tab)["position"] == "1"
    bars = tab.page.get_by_test_id("stPlotlyChart")
    expect(bars).to_contain_text(f"{best.probability:.1%}")
    expect(bars).to_contain_text(best.token.text)


@pytest.mark.sweep
def test_stepping_with_the_arrow_keys(open_tab, checkpoint):
    steps = attention_steps(checkpoint, checkpoint.trace(SENTENCE), "encoder.1.self", 2, 1)
    tab = open_tab(f"/qkv?text={SENTENCE}&layer=1&head=2&query=1")
    expect(tab.page.get_by_role("button", name="Next Shortcut")).to_be_enabled()
    tab.settled()
    for index in range(1, 5):
        with tab.runs():
            tab.page.keyboard.press("ArrowRight")
        expect(tab.page.get_by_role("combobox", name="Step")).to_have_value(f"{index} · {steps[index].title}")
    scores = steps[4].result
    shown = tab.page.locator(".vf-matrix").last.locator("td").all_inner_texts()
    assert [float(cell.replace("−", "-")) for cell in shown] == pytest.approx(np.round(scores, 4), abs=1e-9)
    expect(tab.page.get_by_text(re.compile("Checked: differs from the model"))).to_be_visible()
    with tab.runs():
        tab.page.keyboard.press("ArrowLeft")
    tab.settled()
    assert link(tab)["step"] == "3"
    tab.goto(tab.address)
    expect(tab.page.get_by_role("combobox", name="Step")).to_have_value(re.compile("^3 ·"))


def test_switching_the_language_keeps_the_view(open_tab):
    tab = open_tab(f"/qkv?text={SENTENCE}&site=cross&layer=1&head=3&query=2&step=10")
    before = link(tab)
    with tab.runs():
        tab.page.get_by_role("button", name="简体中文").click()
    expect(tab.page.get_by_role("combobox", name="步骤")).to_have_value(re.compile("^10 · Softmax 第 4 步"))
    assert link(tab) == {**before, "lang": "zh_CN"}


@pytest.mark.sweep
def test_text_is_shown_as_text(open_tab):
    tab = open_tab("/attention")
    for text in ("<img src=x onerror=alert(1)>", "**粗** $x^2$ :red[猫]", "😀👩‍👩‍👧", "שלום עולם"):
        type_sentence(tab, text)
        expect(tab.page.get_by_label("Sentence", exact=True)).to_have_value(text)
        assert link(tab)["text"] == text
        assert tab.page.locator("img[src=x]").count() == 0
        expect(tab.page.locator(".vf-attention")).to_be_visible()
        assert "Traceback" not in tab.page.inner_text("body")


def test_a_number_set_by_hand(open_tab):
    tab = open_tab(f"/qkv?text={SENTENCE}&step=5&layer=0&head=0")
    tab.page.get_by_text("Change a number", exact=True).click()
    with tab.runs():
        # (by the keyboard: while the box unfolds, what is below moves away between the two halves of a click)
        tab.page.get_by_test_id("stCheckbox").filter(has_text="Divide by √d_head").locator("input").press("Space")
    tab.settled()
    assert link(tab)["edits"] == "encoder.0.self!unscaled"
    expect(tab.page.get_by_text("Edited: numbers of this step were set by hand.")).to_be_visible()
    with tab.runs():
        tab.page.get_by_role("button", name="Reset all").click()
    tab.settled()
    assert "edits" not in link(tab)
    expect(tab.page.get_by_text("Edited: numbers of this step were set by hand.")).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.sample(1)
def test_the_next_step_is_in_sight(open_tab, width):
    tab = open_tab("/qkv?part=arithmetic", width=width, height=800)
    for number in range(3):
        step = tab.page.get_by_role("combobox", name="Step")
        expect(step).to_have_value(re.compile(f"^{number} · "))
        expect(step).to_be_in_viewport()
        expect(tab.page.locator("#page-body table, .st-key-page-body table").first).to_be_in_viewport()
        with tab.runs():
            tab.page.locator(".st-key-steps-forward button").click()
