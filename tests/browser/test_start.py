"""A fresh server, however it was started, shows its first visitor the page that the link asks for."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.driver import ROOT, Server
from vizformer.web.frame.sitemap import DOORS, START

WHOLE = str(START.heading)
LINK = "/qkv?text=hello+world&head=2"
STREAMLIT = (sys.executable, "-m", "streamlit", "run", "app.py")


def shows_the_lesson(tab) -> None:
    page = tab.page
    assert page.get_by_role("heading", level=1).inner_text() == "Query, key, value"
    assert page.locator(".st-key-bar-doors").get_by_role("link").all_inner_texts() == [str(door.door) for door in DOORS]
    expect(page.get_by_role("button", name="简体中文")).to_be_visible()
    assert page.get_by_role("dialog").count() == 0
    assert "not found" not in page.inner_text("body")
    assert page.title() == "Query, key, value · VizFormer"
    assert tab.address == LINK


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("command", "port_option"),
    [((sys.executable, "-m", "vizformer"), "--port"), (STREAMLIT, "--server.port")],
    ids=["vizformer", "streamlit run app.py"],
)
def test_the_first_deep_link_of_a_fresh_server(open_tab, tmp_path, command, port_option):
    with Server(command, port_option=port_option, log=tmp_path / "log.txt") as server:
        for tab in (open_tab(LINK, at=server), open_tab(LINK, at=server)):
            shows_the_lesson(tab)
            tab.close()
        status = server.stop()
    said = server.log.read_text()
    assert f"VizFormer is running at http://localhost:{server.port}\n" in said
    assert "Traceback" not in said
    if port_option == "--port":
        assert status == 0


@pytest.mark.sweep
def test_the_home_pages_own_address_works_too(open_tab):
    tab = open_tab(path=None)
    for path, title in (("/", WHOLE), ("/start", WHOLE), ("/?head=1", "Attention")):
        tab.goto(path)  # each is a session of its own
        tab.settled()
        assert tab.page.get_by_role("heading", level=1).inner_text() == title
        assert tab.page.get_by_role("dialog").count() == 0
    assert tab.address == "/attention?head=1"  # what "/" was before


@pytest.mark.sweep
@pytest.mark.slow
def test_the_wheel_runs_in_an_empty_folder(open_tab, tmp_path):
    wheel = build_wheel(tmp_path / "wheel")
    carried = zipfile.ZipFile(wheel).namelist()
    for file in (
        "app.py",
        ".streamlit/config.toml",
        "pages/learn/qkv.py",
        "assets/locale/zh_CN/LC_MESSAGES/vizformer.po",
    ):
        assert f"vizformer/_app/{file}" in carried
    assert "vizformer/checkpoints/hugging_face/config_defaults.json" in carried
    assert {"vizformer/py.typed", "vizformer/_app/assets/LICENSE-words.md"} <= {*carried}
    assert not [name for name in carried if "__pycache__" in name or name.startswith("tests")]
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    subprocess.run([*pip, "--no-deps", "--no-index", "--target", str(site), str(wheel)], check=True)
    env = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    command = (str(site / "bin" / "vizformer"),)
    with Server(command, cwd=empty, env=env, log=tmp_path / "log.txt") as server:
        tab = open_tab(LINK, at=server)
        shows_the_lesson(tab)
        # The theme comes from the config.toml that travels in the wheel.
        assert tab.page.evaluate("getComputedStyle(document.querySelector('.stApp')).color") == "rgb(11, 17, 24)"
        tab.close()
        first = open_tab("/?text=I+have+a+cat.", at=server)
        expect(first.page.locator(".vf-whole-written")).to_have_text("我有一只猫。")
        expect(first.page.locator(".vf-whole-map")).to_have_count(36)
        first.close()
        assert server.stop() == 0
    assert not list(empty.iterdir())


@pytest.mark.sweep
@pytest.mark.slow
def test_two_builds_are_equal_byte_by_byte_and_as_large_as_is_said(tmp_path):
    one, other = (build_wheel(tmp_path / name) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    said = re.search(r"The wheel has (\d+) MB, (\d+) of them", (ROOT / "docs" / "architecture.md").read_text("utf-8"))
    with zipfile.ZipFile(one) as wheel:
        models = [file.compress_size for file in wheel.infolist() if "/_app/assets/models/" in file.filename]
    assert [int(number) for number in said.groups()] == [round(one.stat().st_size / 1e6), round(sum(models) / 1e6)]


def build_wheel(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


APP_THAT_FAILS = """
import streamlit as st
from vizformer.web.words import errors

def fail():
    raise ZeroDivisionError("a secret of the server")

if __name__ == "__main__":
    st.button("Fail", on_click=fail)
    if st.query_params:
        fail()
else:
    app = st.App(__file__, on_script_error=errors.on_script_error)
"""


@pytest.mark.sweep
def test_no_traceback_reaches_the_browser(open_tab, tmp_path):
    (tmp_path / "app.py").write_text(APP_THAT_FAILS)
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text((ROOT / ".streamlit" / "config.toml").read_text())
    with Server(STREAMLIT, port_option="--server.port", cwd=tmp_path, log=tmp_path / "log.txt") as server:
        at_once = open_tab("/?fail=1", at=server)
        by_callback = open_tab("/", at=server)
        with by_callback.runs():
            by_callback.page.get_by_role("button", name="Fail").click()
        for tab in (at_once, by_callback):
            said = tab.page.inner_text("body")
            assert "our mistake" in said
            assert not re.search(r"Traceback|ZeroDivisionError|secret|\.py", said + tab.page.content())
            tab.close()
    assert "ZeroDivisionError: a secret of the server" in server.log.read_text()
