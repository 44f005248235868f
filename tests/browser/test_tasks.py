"""What a newcomer wants of the first page, and in how many presses it is there."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

OWN = "The old lantern flickered because the wind was strong"


@pytest.fixture
def home(open_tab):
    tab = open_tab("/")
    tab.settled()
    return tab


def test_an_own_sentence_is_in_a_heat_map_after_one_press(home):
    home.page.get_by_label("Sentence", exact=True).fill(OWN)
    home.page.locator(".st-key-page-body").get_by_role("link", name="Attention →", exact=True).click()
    expect(home.page.locator(".vf-attention .vf-readout")).to_contain_text("attends most")
    expect(home.page.get_by_label("Sentence", exact=True)).to_have_value(OWN)
    assert parse_qs(urlsplit(home.page.url).query)["text"] == [OWN]


def test_a_link_pressed_while_the_box_is_still_busy_leads_to_its_page(home):
    """Beside others a browser takes longer from leaving the box to the click."""
    busy = "const end = performance.now() + 200; while (performance.now() < end);"
    home.page.evaluate(f"() => addEventListener('focusout', () => {{ {busy} }}, {{ capture: true, once: true }})")
    home.page.get_by_label("Sentence", exact=True).fill(OWN)
    home.page.locator(".st-key-page-body").get_by_role("link", name="Attention →", exact=True).click()
    expect(home.page.locator(".vf-attention .vf-readout")).to_contain_text("attends most")
    expect(home.page.get_by_label("Sentence", exact=True)).to_have_value(OWN)


def test_the_causal_mask_is_there_after_one_press(home):
    home.page.locator(".st-key-bar-search input").fill("causal mask")
    home.page.get_by_role("option", name="(Masks)").click()
    expect(home.page.locator(".vf-mask .vf-cell.vf-blocked").first).to_be_visible()


def test_the_opener_of_an_own_checkpoint_is_there_after_one_press(home):
    home.page.locator(".st-key-bar-own a").click()
    expect(home.page.get_by_role("button", name="Upload and open")).to_be_visible()


def test_a_picture_is_an_svg_file_after_two_presses(home):
    with home.runs():
        home.page.get_by_role("button", name="Download").first.click()
    with home.page.expect_download() as download:
        home.page.get_by_role("button", name="SVG", exact=True).click()
    assert download.value.suggested_filename.endswith(".svg")


def test_the_link_is_there_after_one_press(home):
    home.page.get_by_role("button", name=re.compile("^Share$")).click()
    expect(home.page.get_by_test_id("stPopoverBody").get_by_test_id("stCode")).to_contain_text(
        urlsplit(home.home).netloc
    )
