"""Opening models in a browser: files and zips that are put up, and a name on a hub that stands on loopback."""

import os
import re
import shutil
import zipfile
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.driver import Server
from tests.checkpoints import folders as made
from tests.checkpoints.hub_stand_in import serve
from vizformer.analysis import head_maps
from vizformer.checkpoints import load

TEXT = "I have two dogs"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return made.gpt2(tmp_path_factory.mktemp("made") / "tiny-gpt2")


def heads_are_shown(tab, folder):
    """The twelve heads of the made model for the typed sentence, with the weights that the library computes."""
    maps = head_maps(load(folder).trace(TEXT), "decoder")
    page = tab.page
    box = page.get_by_label("Sentence", exact=True)
    box.fill(TEXT)
    box.press("Enter")
    tab.settled()
    expect(page.locator(".vf-attention")).to_be_visible()
    expect(page.get_by_text("What comes next?")).to_be_visible()
    expect(page.locator(".vf-tile")).to_have_count(12)
    page.locator('.vf-tile[data-layer="2"][data-head="3"]').click()
    readout = page.locator(".vf-readout").first
    expect(readout).to_have_attribute("data-query", "0")
    expect(readout).to_contain_text(f"{maps.weights[2, 3, 0, 0]:.4f}")


@pytest.mark.parametrize("packed", [False, True], ids=["files", "zip"])
def test_an_upload_shows_its_heads_and_belongs_to_one_session(open_tab, written, tmp_path, packed):
    tab = open_tab("/report")
    page = tab.page
    page.get_by_text("Open another model").click()
    if packed:
        files = shutil.make_archive(str(tmp_path / "mine"), "zip", written.parent, written.name)
    else:
        files = sorted(written.iterdir())
    page.locator("input[type=file]").set_input_files(files)
    page.get_by_role("button", name="Upload and open").click()
    expect(page.get_by_text("GPT2LMHeadModel")).to_be_visible()
    assert "model=upload" in tab.address
    address = tab.address
    tab.settled()
    with tab.runs():
        page.get_by_role("link", name="Attention", exact=True).click()
    heads_are_shown(tab, written)
    tab.settled()
    other = open_tab(address)
    expect(other.page.get_by_text("only in the session that made it")).to_be_visible()
    expect(other.page.get_by_text("GPT2LMHeadModel")).to_have_count(0)
    other.settled()


def test_a_hostile_zip_is_refused_in_words(open_tab, tmp_path):
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../config.json", "{}")
    tab = open_tab("/report", locale="zh-CN")
    page = tab.page
    page.get_by_text("打开其他模型").click()
    page.locator("input[type=file]").set_input_files(tmp_path / "evil.zip")
    page.get_by_role("button", name="上传并打开").click()
    expect(page.get_by_text("指向 zip 以外的位置")).to_be_visible()
    expect(page.get_by_text("各部分参数量", exact=True)).to_be_visible()  # the chosen model is still there
    tab.settled()


def test_a_model_of_a_hub_is_fetched_by_its_name(open_tab, written, tmp_path):
    with serve(written, "somebody/tiny-gpt2") as hub:
        environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf")}
        with Server(env=environment, log=tmp_path / "log.txt") as server:
            tab = open_tab("/report", at=server)
            page = tab.page
            page.get_by_text("Open another model").click()
            tab.settled()
            assert hub.asked == []  # until the button is pressed
            page.get_by_label("Name on the hub").fill("somebody/tiny-gpt2")
            page.get_by_role("button", name="Fetch and open").click()
            expect(page.get_by_text("GPT2LMHeadModel")).to_be_visible()
            expect(page).to_have_url(re.compile(re.escape(quote("hub/somebody/tiny-gpt2", safe=""))))
            tab.settled()
            with tab.runs():
                page.get_by_role("link", name="Attention", exact=True).click()
            heads_are_shown(tab, written)
            asked = list(hub.asked)
            assert not any("pytorch_model" in path for path in asked)
            tab.settled()
            other = open_tab(f"/attention?model=hub/somebody/tiny-gpt2&text={quote(TEXT)}", at=server)
            expect(other.page.locator(".vf-attention")).to_be_visible()  # it is there for everyone, from the cache
            other.settled()
            assert hub.asked == asked
            missing = open_tab("/attention?model=hub/somebody/else", at=server)
            expect(missing.page.get_by_text("has not been fetched")).to_be_visible()
            with missing.runs():
                missing.page.get_by_role("link", name="More on the page Model report").click()
            missing.page.get_by_role("button", name="Fetch somebody/else").click()
            expect(missing.page.get_by_text("There is no model somebody/else on the hub")).to_be_visible()
            missing.settled()
            for each in (tab, other, missing):
                each.close()
