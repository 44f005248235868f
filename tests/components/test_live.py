"""Browser and server together: quick clicks survive slow answers, and the page's own wishes arrive."""

import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

SCRIPT = """
import time
import numpy as np
import streamlit as st
from vizformer.components import attention, tokens

n = 40 if "large" in st.query_params else 6
weights = np.random.default_rng(0).dirichlet(np.ones(n), size=(4, 6, n)).astype(np.float32)
names = [f"t{i}" for i in range(n)]
if st.button("move"):
    st.session_state.wanted = attention.Selection(2, 3, 1)
hidden = st.checkbox("hide")


@st.fragment
def heads():
    wanted = st.session_state.get("wanted", attention.Selection())
    seen = attention.peek(key="heads", selected=wanted)
    limit = 1 if n > 6 else 10**7
    payload = attention.pack_heads(weights, chosen=(seen.layer, seen.head), limit=limit)
    st.session_state.wanted = attention.mount(
        payload, query_tokens=names, key_tokens=names, selected=wanted, key="heads"
    )
    time.sleep(0.15)
    got = st.session_state.wanted
    st.text(f"python: {got.layer} {got.head} {got.query} {got.key} {got.view}")


if not hidden:
    heads()
st.session_state.token = tokens.mount(
    [{"text": name} for name in names], selected=st.session_state.get("token"), key="strip"
)
st.text(f"token: {st.session_state.token}")
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("live")
    (folder / "page.py").write_text(SCRIPT, encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "streamlit", "run", str(folder / "page.py"), "--server.port", str(port)]
    options = ["--server.address", "127.0.0.1", "--server.headless", "true", "--browser.gatherUsageStats", "false"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([*command, *options], cwd=root, env={"PYTHONPATH": str(root)}, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 30
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1)
                    break
                except OSError:
                    assert time.monotonic() < deadline, (folder / "log").read_text()
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(10)


@pytest.fixture
def live(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def click(page: Page, layer: int, head: int) -> None:
    page.locator(f'.vf-tile[data-layer="{layer}"][data-head="{head}"]').click()


def says(page: Page, text: str) -> None:
    expect(page.get_by_text(text, exact=True)).to_be_visible()


def shows(page: Page, layer: int, head: int) -> None:
    expect(page.locator(".vf-title")).to_have_text(f"Layer {layer}, head {head}")


def test_clicks_reach_python_and_are_not_thrown_back(live: Page, address: str) -> None:
    live.goto(address)
    says(live, "python: 0 0 0 None weights")
    click(live, 1, 2)
    says(live, "python: 1 2 0 None weights")
    for step in range(10):  # slower than reports are gathered, quicker than the server answers
        click(live, step % 4, step % 6)
        live.wait_for_timeout(180)
        shows(live, step % 4, step % 6)
    says(live, "python: 1 3 0 None weights")
    live.wait_for_timeout(500)
    shows(live, 1, 3)


def test_the_pages_wish_arrives_twice_in_a_row(live: Page, address: str) -> None:
    live.goto(address)
    says(live, "python: 0 0 0 None weights")
    for _ in range(2):
        live.get_by_role("button", name="move").click()
        shows(live, 2, 3)
        says(live, "python: 2 3 1 None weights")
        click(live, 0, 5)
        says(live, "python: 0 5 1 None weights")
        shows(live, 0, 5)


def test_a_view_that_was_away_comes_back_as_it_was(live: Page, address: str) -> None:
    live.goto(address)
    says(live, "python: 0 0 0 None weights")
    click(live, 3, 4)
    says(live, "python: 3 4 0 None weights")
    live.get_by_text("hide").click()
    expect(live.locator(".vf-attention")).to_have_count(0)
    live.get_by_text("hide").click()
    shows(live, 3, 4)
    says(live, "python: 3 4 0 None weights")


@pytest.mark.sweep
def test_heads_that_do_not_fit_are_fetched(live: Page, address: str) -> None:
    live.goto(f"{address}/?large=1")
    says(live, "python: 0 0 0 None weights")
    before = live.locator(".vf-readout").inner_text()
    click(live, 2, 5)
    says(live, "python: 2 5 0 None weights")
    expect(live.locator(".vf-readout")).to_have_text(re.compile("attends most"))
    assert live.locator(".vf-readout").inner_text() != before
    for step in range(6):
        click(live, step % 4, step % 6)
        live.wait_for_timeout(60)
    says(live, "python: 1 5 0 None weights")
    shows(live, 1, 5)
    expect(live.locator(".vf-readout")).to_have_text(re.compile("attends most"))


def test_the_strip_reports(live: Page, address: str) -> None:
    live.goto(address)
    says(live, "token: None")
    live.locator(".vf-chip").nth(4).click()
    says(live, "token: 4")
    expect(live.locator(".vf-tokens")).to_have_attribute("data-selected", "4")
