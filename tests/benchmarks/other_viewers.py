"""What other viewers of attention take for the same heads: BertViz (Vig 2019) and CircuitsVis, where they are installed.

Each writes a page into which it puts its numbers; painted is measured from before the forward, as for ours, until its
elements are in the page and a frame has passed.  CircuitsVis shows the heads of one layer, as it is used; BertViz all of
them.  BertViz's page takes its libraries from the web; `scripts` is a folder with the same ones for a machine without:

    npm install --prefix FOLDER d3@5 jquery@2 requirejs@2
"""

import re
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from playwright.sync_api import Browser, Error, Route, TimeoutError

from tests.benchmarks.measured_tab import MOST_BYTES, STOPPED, Measured, peak_of_tabs
from vizformer.checkpoints import Checkpoint

SCRIPTS = {
    "d3.min.js": "d3/dist/d3.min.js",
    "jquery.min.js": "jquery/dist/jquery.min.js",
    "require.min.js": "requirejs/require.js",
}
LINES = "() => document.querySelectorAll('svg line').length > 0"
MAPS = "() => document.querySelectorAll('svg line, svg path').length > 0"
IMAGES = "() => [...document.querySelectorAll('canvas, img')].filter((one) => one.clientWidth > 0).length > 0"
Page = Callable[[Checkpoint, list[int], list[str]], str]


def head_view(checkpoint: Checkpoint, ids: list[int], tokens: list[str]) -> str:
    """Lines between the tokens, of all heads of a layer; the numbers of all layers are in the page."""
    from bertviz import head_view  # type: ignore[import-not-found]

    return str(head_view(_maps(checkpoint, ids), tokens, html_action="return").data)


def model_view(checkpoint: Checkpoint, ids: list[int], tokens: list[str]) -> str:
    """Lines between the tokens, of every head of every layer."""
    from bertviz import model_view

    return str(model_view(_maps(checkpoint, ids), tokens, html_action="return").data)


def attention_heads(checkpoint: Checkpoint, ids: list[int], tokens: list[str]) -> str:
    """The maps of the first layer's heads."""
    from circuitsvis.attention import attention_heads  # type: ignore[import-not-found]

    return str(attention_heads(_maps(checkpoint, ids)[0][0], tokens).local_src)


class Viewer(NamedTuple):
    """A viewer: its package, how its page is made, and what is in the page when it is painted."""

    name: str
    package: str
    page: Page
    painted: str


VIEWERS = (
    Viewer("BertViz head_view", "bertviz", head_view, LINES),
    Viewer("BertViz model_view", "bertviz", model_view, MAPS),
    Viewer("CircuitsVis, one layer", "circuitsvis", attention_heads, IMAGES),
)


def installed() -> list[Viewer]:
    """The viewers whose packages are here."""
    return [viewer for viewer in VIEWERS if find_spec(viewer.package)]


def measure(
    browser: Browser,
    folder: Path,
    checkpoint: Checkpoint,
    n: int,
    viewer: Viewer,
    scripts: Path | None,
) -> Measured:
    """One viewer; it is stopped after `STOPPED` seconds, and where a tab takes more than `MOST_BYTES`."""
    ids = [index % checkpoint.model.config.vocab_size for index in range(n)]
    found = Measured(viewer.name, n)
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    if scripts:

        def answer(route: Route) -> None:
            local = SCRIPTS.get(route.request.url.rpartition("/")[2])
            route.fulfill(path=scripts / "node_modules" / local) if local else route.abort()

        context.route(re.compile("^https?:"), answer)
    began = time.perf_counter()
    text = viewer.page(checkpoint, ids, [f"t{index}" for index in range(n)])
    file = folder / "viewer.html"
    file.write_text(f"<!DOCTYPE html><meta charset='utf-8'><body>{text}", encoding="utf-8")
    found.sent = file.stat().st_size
    if time.perf_counter() - began > STOPPED:
        found.stopped = f"over {STOPPED:.0f}, without a browser"
        return found
    try:
        page.goto(file.as_uri(), wait_until="commit", timeout=STOPPED * 1000)
        while found.painted is None and time.perf_counter() - began < STOPPED and peak_of_tabs() < MOST_BYTES:
            try:
                page.wait_for_function(viewer.painted, polling="raf", timeout=1000)
                found.painted = time.perf_counter() - began
            except TimeoutError:
                continue
    except Error as error:
        found.stopped = str(error).partition("\n")[0]
    found.browser = peak_of_tabs()
    return found


def _maps(checkpoint: Checkpoint, ids: list[int]) -> list[torch.Tensor]:
    """The maps of each layer [1, heads, n, n]."""
    trace = checkpoint.trace(ids=ids)
    sites = [trace[f"decoder.{layer}.self"] for layer in range(checkpoint.model.config.n_decoder_layers)]
    return [torch.stack([site.pattern(head) for head in range(site.n_heads)])[None] for site in sites]
