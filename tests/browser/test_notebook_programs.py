"""The widget in the notebooks themselves, started as their users start them: pressed, read, set and drawn again.

JupyterLab and marimo are 180 MB together and no part of the extra `test`: a job of the workflow `test` installs today's.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from tests.browser.driver import free_port

pytestmark = pytest.mark.sweep

BEGIN = 'import vizformer as vf\nshown = vf.view(vf.load("zh-en").trace("我有一只猫。"), kind="cross")'
READ, SET = "print('chosen', shown.layer, shown.head)", "shown.layer, shown.head = 0, 3"
MARIMO = f"""import marimo
app = marimo.App()

@app.cell
def _():
    {BEGIN.replace(chr(10), chr(10) + "    ")}
    shown
    return (shown,)

@app.cell
def _(shown):
    import marimo as mo
    mo.ui.button(label="set", on_click=lambda _: [setattr(shown, *one) for one in (("layer", 0), ("head", 3))])
    return (mo,)

@app.cell
def _(mo, shown):
    choice = mo.ui.anywidget(shown.widget)
    return (choice,)

@app.cell
def _(choice, mo):
    choice.value
    mo.md(f"chosen {{choice.layer}} {{choice.head}}")
    return
"""


@pytest.fixture
def notebook(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """`notebook("jupyterlab", "lab/tree/a.ipynb", "--option=1")`: its server there, in a tab that asks nobody else."""
    asked: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.on("request", lambda one: asked.append(one.url))

    def opened(program: str, place: str, *options: str) -> Page:
        if not find_spec(program):
            pytest.skip(f"pip install {program}")
        port = free_port()
        homes = (
            "HOME",
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_RUNTIME_DIR",
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
        )
        environment = os.environ | {name: str(tmp_path / "home") for name in homes}
        command = [sys.executable, "-m", program, *options, f"--port={port}"]
        with (tmp_path / "log.txt").open("w") as log:
            process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
        request.addfinalizer(lambda: (process.terminate(), process.wait(30)))
        for _ in range(240):
            try:
                page.goto(f"http://127.0.0.1:{port}/{place}")
                break
            except Error:  # it does not listen yet
                page.wait_for_timeout(250)
        return page

    yield opened
    page.close()
    foreign = {urlsplit(one).netloc for one in asked if one.startswith(("http", "ws"))}
    assert {one.partition(":")[0] for one in foreign} <= {"127.0.0.1"}


def press(page: Page) -> None:
    page.locator('.vf-tile[data-layer="1"][data-head="2"]').first.click()


def test_jupyterlab(notebook: Callable[..., Page], tmp_path: Path) -> None:
    def cell(source: str) -> dict[str, object]:
        return {"cell_type": "code", "metadata": {}, "source": source, "execution_count": None, "outputs": []}

    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [cell(text) for text in (f"{BEGIN}\nshown", READ, SET)]
    content = {"cells": cells, "metadata": {"kernelspec": python}, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "a.ipynb").write_text(json.dumps(content), encoding="utf-8")
    page = notebook("jupyterlab", "lab/tree/a.ipynb?reset", "--no-browser", "--allow-root", "--IdentityProvider.token=")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)  # before that it asks for a kernel
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".vf-attention")).to_be_visible(timeout=120_000)
    press(page)
    expect(page.locator(".vf-attention")).to_have_attribute("data-head", "2")
    page.locator(".vf-over").focus()
    page.keyboard.type("dd")  # deletes a cell where JupyterLab hears it
    expect(page.locator(".jp-CodeCell")).to_have_count(3)
    said = page.locator(".jp-OutputArea-output pre", has_text="chosen")
    for _ in range(20):  # the choice is told soon, not at once
        page.locator(".jp-CodeCell .cm-content").nth(1).click()
        page.keyboard.press("Shift+Enter")
        said.wait_for()
        if said.inner_text().strip() == "chosen 1 2":
            break
    assert said.inner_text().strip() == "chosen 1 2"
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".vf-attention")).to_have_attribute("data-head", "3")


def test_marimo(notebook: Callable[..., Page], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(MARIMO, encoding="utf-8")
    page = notebook("marimo", "", "-y", "run", "a.py", "--headless", "--no-token", "--host=127.0.0.1")
    expect(page.locator(".vf-attention").first).to_be_visible(timeout=120_000)
    press(page)
    page.get_by_text("chosen 1 2").wait_for()
    page.get_by_text("set", exact=True).click()
    expect(page.locator(".vf-attention").first).to_have_attribute("data-head", "3")
