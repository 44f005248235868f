"""Opening models in a browser: by path, files and zips that are put up, a name on a hub that stands on loopback."""

import os
import re
import shutil
import socket
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.driver import Server, free_port
from tests.checkpoints import folders as made
from tests.checkpoints.hub_stand_in import serve
from vizformer.analysis import head_maps
from vizformer.assets import asset
from vizformer.checkpoints import load
from vizformer.web.pages.model_report.report_words import parts_table

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
    rows = "|".join(
        map(str, range(maps.weights.shape[2]))
    )  # until then it is of the sentence of before, which is longer
    expect(readout).to_have_attribute("data-query", re.compile(f"^({rows})$"))
    query = int(readout.get_attribute("data-query"))
    expect(readout).to_contain_text(f"{maps.weights[2, 3, query].max():.4f}")


@pytest.mark.sample(1)
@pytest.mark.parametrize("packed", [False, True], ids=["files", "zip"])
def test_an_upload_shows_its_heads_and_belongs_to_one_session(open_tab, written, tmp_path, packed):
    tab = open_tab("/report")
    page = tab.page
    page.get_by_text("Open another model").click()
    if packed:
        files = shutil.make_archive(str(tmp_path / "mine"), "zip", written.parent, written.name)
    else:
        files = sorted(written.iterdir())
    tab.choose(files)
    page.get_by_role("button", name="Upload and open").click()
    expect(page.get_by_text("GPT2LMHeadModel")).to_be_visible()
    assert "model=upload" in tab.address
    address = tab.address
    tab.settled()
    tab.visit("Attention")
    heads_are_shown(tab, written)
    tab.settled()
    other = open_tab(address)
    expect(other.page.get_by_text("only in the session that made it")).to_be_visible()
    expect(other.page.get_by_text("GPT2LMHeadModel")).to_have_count(0)
    other.settled()


@pytest.mark.sweep
def test_a_hostile_zip_is_refused_in_words(open_tab, tmp_path):
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../config.json", "{}")
    tab = open_tab("/report", locale="zh-CN")
    page = tab.page
    page.get_by_text("打开其他模型").click()
    tab.choose(tmp_path / "evil.zip")
    page.get_by_role("button", name="上传并打开").click()
    expect(page.get_by_text("指向 zip 以外的位置")).to_be_visible()
    expect(page.get_by_text("各部分参数量", exact=True)).to_be_visible()  # the chosen model is still there
    tab.settled()


@pytest.mark.sweep
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
            tab.visit("Attention")
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


@contextmanager
def proxy(server: Server) -> Iterator[SimpleNamespace]:
    """Another address of the server's; every connection through it says, as proxies do, from whom it comes."""
    listening = socket.create_server(("127.0.0.1", free_port()))
    address = SimpleNamespace(url=f"http://127.0.0.1:{listening.getsockname()[1]}", says=b"")

    def pass_on(source: socket.socket, sink: socket.socket, says: bytes = b"") -> None:
        with suppress(OSError):
            while part := source.recv(65536):
                if says:  # of the first request, which for a web socket is the one that counts
                    line, __, rest = part.partition(b"\r\n")
                    part, says = line + b"\r\n" + says + b"\r\n" + rest, b""
                sink.sendall(part)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                browser, __ = listening.accept()
                app = socket.create_connection(("127.0.0.1", server.port))
                for ends in ((browser, app, address.says), (app, browser)):
                    threading.Thread(target=pass_on, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield address
    finally:
        listening.close()


@pytest.mark.sweep
def test_a_path_opens_on_this_computer_and_nowhere_else(open_tab, written, tmp_path):
    environment = {**os.environ, "VIZFORMER_STATE": str(tmp_path / "state")}
    with Server(env=environment, log=tmp_path / "log.txt") as server, proxy(server) as through:
        tab = open_tab("/report", at=server)
        page = tab.page
        page.get_by_text("Open another model").click()
        box = page.get_by_label("Path on this computer")
        box.fill(f"{written}/nothing")
        page.get_by_role("button", name="Open this path").click()
        expect(page.get_by_text("There is nothing at this path")).to_be_visible()
        expect(box).to_be_visible()  # and what was typed can be put right
        expect(box).to_have_value(f"{written}/nothing")
        box.fill(str(written))
        box.press("Enter")
        expect(page.get_by_text("GPT2LMHeadModel")).to_be_visible()
        expect(page).to_have_url(re.compile("model=path%2F[0-9a-f]{12}$"))
        address = tab.address
        tab.settled()
        tab.visit("Attention")
        heads_are_shown(tab, written)
        tab.settled()
        same = open_tab(address, at=through)  # another port, but this computer still
        expect(same.page.get_by_text("GPT2LMHeadModel")).to_be_visible()
        same.settled()
        through.says = b"X-Forwarded-For: 203.0.113.7"
        other = open_tab(address, at=through, locale="zh-CN")
        expect(other.page.get_by_text("只能在运行 VizFormer 的那台电脑的浏览器里打开")).to_be_visible()
        other.page.get_by_text("打开其他模型").click()
        expect(other.page.get_by_text("获取并打开")).to_be_visible()
        expect(other.page.get_by_label("本机上的路径")).to_have_count(0)
        assert "tiny-gpt2" not in other.page.content()
        other.settled()
        for each in (tab, same, other):
            each.close()
    with Server(env=environment, log=tmp_path / "log.txt") as server:  # another day
        tab = open_tab("/report", at=server)
        tab.page.get_by_text("Open another model").click()
        tab.page.get_by_role("button", name="tiny-gpt2").click()
        expect(tab.page.get_by_text("GPT2LMHeadModel")).to_be_visible()
        assert tab.address == address
        tab.settled()
        tab.close()


@pytest.mark.sweep
def test_files_dropped_beside_a_model_show_what_moved(open_tab, written, tmp_path):
    tuned = shutil.copytree(written, tmp_path / "tuned")
    weights = made.tensors(tuned)
    weights["transformer.h.1.attn.c_attn.weight"][:, 32:] *= 3.0  # the values of layer 1
    made.save_tensors(tuned, weights)
    tab = open_tab("/report")
    page = tab.page
    page.get_by_text("Open another model").click()
    tab.choose(sorted(written.iterdir()))
    page.get_by_role("button", name="Upload and open").click()
    expect(page.get_by_text("GPT2LMHeadModel")).to_be_visible()
    tab.settled()
    tab.visit("Side by side")
    expect(page.get_by_text("Open a second model beside")).to_be_visible()
    first = re.search("model=(upload%2F[0-9a-f]{16})", tab.address)[1]
    tab.choose(sorted(tuned.iterdir()))
    page.get_by_role("button", name="Upload and open").click()
    expect(page.get_by_text("Moved most: layer 1, W_V")).to_be_visible()
    expect(page.locator(".vf-cells-grid")).to_have_count(2)
    assert f"model={first}" in tab.address
    assert "other=upload%2F" in tab.address
    expect(page.get_by_text("Open a second model beside")).to_have_count(0)
    tab.settled()


def test_the_parts_of_a_model_with_long_names_fit_a_phone(browser: Browser) -> None:
    rows = [("model.decoder.transformer_layers.0.self_attention_with_positions", 123_456_789, 0.5), ("lm_head", 1, 0.5)]
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.set_content(
        f"<style>{asset('app.css').read_text()}</style><div style='width: 368px'>{parts_table(rows)}</div>"
    )
    assert page.locator("table").evaluate("table => table.offsetWidth") <= 368
    assert page.locator("th").nth(1).inner_text() == "lm_head"
    page.close()
