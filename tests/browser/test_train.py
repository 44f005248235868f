"""Training in a browser: a real process trains, the slider moves everything, the model opens on another page."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.mark.sweep
@pytest.mark.slow
def test_train_drag_and_open(open_tab):
    tab = open_tab("/train")
    page = tab.page
    page.get_by_text("Train a model of your own", exact=True).click()
    with tab.runs():
        page.get_by_role("radio", name="Copy", exact=True).click()
    for label, choice in (("Layers", "1"), ("Width", "16"), ("Steps", "100")):
        page.get_by_role("combobox", name=label).click()
        page.get_by_role("option", name=choice, exact=True).click()
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_text("Trained: 100 steps")).to_be_visible(timeout=240_000)
    tab.settled(1.0)
    said = page.get_by_text(re.compile(r"^Step \d+: loss"))
    expect(said).to_contain_text("Step 100:")
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    expect(said).to_contain_text("Step 0:")
    tab.settled()
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Step 1:")
    tab.settled()
    box = page.get_by_label("Your own input")
    box.fill("dead")
    box.press("Enter")
    expect(page.get_by_test_id("stPlotlyChart").nth(1)).to_contain_text("</s>")
    tab.settled()
    with tab.runs():
        page.get_by_role("button", name="Attention", exact=True).click()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value("dead")
    expect(page.locator(".vf-attention")).to_be_visible()
    assert "model=train-" in tab.address
    tab.settled()
    other = open_tab("/")  # another session: the model is not in its list
    other.page.get_by_role("combobox", name="Model").click()
    expect(other.page.get_by_role("option", name=re.compile("Copy ·"))).to_have_count(0)
