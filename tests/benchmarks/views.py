"""How long texts take from Enter to the picture, beside a plain page of Streamlit and Plotly, and beside BertViz and
CircuitsVis where they are installed; what they send and hold.

    .venv/bin/python -m tests.benchmarks.views                       # n = 64, 256, 512, 1024; ours also 2048 and 4096
    .venv/bin/python -m tests.benchmarks.views --lengths 64,256

All run the same random checkpoint in the shape of GPT-2 small, over the same text, one after the other, each with a server
and a browser of its own.  "Painted" is measured in the browser, from the moment at which the text is sent, and includes the
forward; what is stopped at one length is not tried at a longer one.  A switch is measured from the moment at which the mouse
button goes down.  Ours has two: the first one, right after the first head is painted, while the small maps are on their way
("early"), and the median of six when all of them are there.  Ours sends the text from its box; the plain page has it in its
script, keeps all maps of the forward, and draws the chosen head with `px.imshow`.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
import torch
from playwright.sync_api import Browser, Page, TimeoutError, WebSocket, sync_playwright

from tests import tiny
from tests.benchmarks import other_viewers
from tests.benchmarks.measured_tab import STOPPED, Measured, peak_of_tabs, status
from tests.browser import chromium
from tests.browser.driver import Server
from vizformer.checkpoints import Checkpoint, load
from vizformer.checkpoints.export import save
from vizformer.config import ModelConfig
from vizformer.model import Transformer

NAME = "gpt2-shape"
LONGEST = 4096
SWITCHES = ((1, 7), (1, 3), (0, 5), (1, 6), (0, 2), (0, 4), (1, 1))  # (layer, head)
PLAIN = """
import numpy as np, plotly.express as px, streamlit as st, torch
import vizformer as vf

torch.set_num_threads(1)
checkpoint = st.cache_resource(vf.load)({folder!r})

@st.cache_data(max_entries=1)
def maps(n):
    words = {words!r}.split()
    trace = checkpoint.trace(ids=checkpoint_ids(n))
    return np.stack([[trace[site].pattern(h).numpy() for h in range(trace[site].n_heads)] for site in trace.sites])

def checkpoint_ids(n):
    return [token.id for token in checkpoint.encode({words!r})][:n]

n = int(st.query_params.get("n", 16))
layer = st.selectbox("Layer", range(checkpoint.model.config.n_decoder_layers))
head = st.selectbox("Head", range(checkpoint.model.config.n_heads))
st.plotly_chart(px.imshow(maps(n)[layer, head], title=f"n {{n}} layer {{layer}} head {{head}}"))
"""
DEEP = """const found = window.foundBefore ??= {};
const at = (name) => found[name]?.isConnected ? found[name] : (found[name] = deep(name));
const deep = (name, room = document) => room.querySelector(name)
  ?? [...room.querySelectorAll("*")].map((one) => one.shadowRoot && deep(name, one.shadowRoot)).find(Boolean);"""
TOLD = """(n) => {
  %s
  const told = at(".vf-attention .vf-readout")?.dataset;
  return told && told.value && Number(told.query) > n - 4;
}"""
SHOWN = """([layer, head]) => {
  %s
  const view = at(".vf-attention");
  const here = view.dataset.layer == layer && view.dataset.head == head && view.querySelector(".vf-readout").dataset.value;
  return here && performance.now() - window.pressed;
}"""
ALL_PAINTED = """() => {
  %s
  const tiles = [...at(".vf-attention .vf-grid").querySelectorAll(".vf-tile")];
  return tiles.length > 0 && tiles.every((tile) => tile.firstChild);
}"""
PRESSED = "() => addEventListener('pointerdown', () => { window.pressed = performance.now(); }, true)"
FRAMES = """() => new Promise((done) => {
  %s
  const map = at(".vf-attention .vf-over");
  const box = map.getBoundingClientRect();
  const start = performance.now();
  let frames = 0;
  const next = () => {
    const [x, y] = [(frames * 7) %% (box.width - 120), (frames * 5) %% (box.height - 140)];
    const at = { clientX: box.left + 100 + x, clientY: box.top + 120 + y };
    map.dispatchEvent(new PointerEvent("pointermove", { ...at, bubbles: true, pointerType: "mouse" }));
    frames++;
    if (performance.now() - start < 1000) requestAnimationFrame(next);
    else done(frames * 1000 / (performance.now() - start));
  };
  requestAnimationFrame(next);
})"""
DRAWN = """(title) => document.querySelector(".heatmaplayer image")
  && [...document.querySelectorAll(".gtitle")].some((one) => one.textContent === title)
  && performance.now() - (window.pressed ?? -1)"""


def make(folder: Path, config: ModelConfig, name: str = NAME, dtype: torch.dtype = torch.float32) -> Checkpoint:
    """A random checkpoint of this shape in `folder`, as users would put one there."""
    torch.manual_seed(0)
    save(Checkpoint(name, Transformer(config), tiny.tokenizer()), folder / name, dtype)
    os.sync()  # or the system writes 340 MB to its disk while the first forward is measured
    return load(folder / name)


def text_of(checkpoint: Checkpoint, n: int) -> str:
    """A text of exactly n tokens."""
    words = ["cats", "and", "dogs", "have", "the", "two", "here"]
    parts: list[str] = []
    while not parts or len(checkpoint.tokenizer.encode(" ".join(parts))) < n:
        parts.extend(words[(len(parts) + at) % 7] for at in range(max(1, (n - len(parts)) // 8)))
    text = " ".join(parts)
    while len(checkpoint.tokenizer.encode(text)) > n:  # (which the model need not be able to read)
        text = text[:-1]
    return text


@contextmanager
def tab(browser: Browser) -> Iterator[tuple[Page, list[int]]]:
    """A tab, and how many bytes each frame of its connection to the server brought."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page, received = context.new_page(), list[int]()

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: received.append(len(frame)))

    page.on("websocket", listen)
    page.set_default_timeout(STOPPED * 1000)
    try:
        yield page, received
    finally:
        context.close()


def until(page: Page, condition: str, argument: object = None) -> float:
    """Waits until a condition holds; returns what it gives, in seconds where that is milliseconds since a press."""
    found = page.wait_for_function(condition, arg=argument, polling="raf").json_value()
    return float(found) / 1000 if isinstance(found, int | float) else 0.0


def ours(browser: Browser, folder: Path, checkpoint: Checkpoint, n: int) -> Measured:
    """The app: the text goes into its box; painted when the sentence below the map tells of the new text."""
    found = Measured("VizFormer", n)
    env = {**os.environ, "VIZFORMER_MODELS": str(folder), "VIZFORMER_CACHE_BYTES": str(2**31)}
    with Server(env=env, log=folder / "log") as server, tab(browser) as (page, received):
        page.goto(f"{server.url}/attention?model=models/{NAME}&site=decoder&text=A+cat.")
        until(page, TOLD % DEEP, 0)
        page.get_by_role("button", name="⤢").first.click()
        box = page.get_by_role("dialog").locator("textarea")
        box.fill(text_of(checkpoint, n))
        box.press("Control+Enter")
        button = page.get_by_role("button", name="Read this text")
        until(page, "(n) => document.body.innerText.includes(n + ' tokens; this model')", f"{n:,}")
        received.clear()
        began = time.perf_counter()
        button.click()
        try:
            until(page, TOLD % DEEP, n)
        except TimeoutError:
            return found
        found.painted, found.sent = time.perf_counter() - began, sum(received)
        page.evaluate(PRESSED)
        switches = list[float]()
        for layer, head in SWITCHES:
            if switches and found.all_painted is None:
                until(page, ALL_PAINTED % DEEP)
                found.all_painted = time.perf_counter() - began
            tile = page.locator(f'.vf-tile[data-layer="{layer}"][data-head="{head}"]')
            tile.scroll_into_view_if_needed()
            tile.click()
            switches.append(until(page, SHOWN % DEEP, [layer, head]))
        found.early, found.switched = switches[0], statistics.median(switches[1:])
        found.frames = page.evaluate(FRAMES % DEEP)
        found.server = status(server.process.pid, "VmHWM")
        found.browser = peak_of_tabs()
    return found


def plain(browser: Browser, folder: Path, checkpoint: Checkpoint, n: int) -> Measured:
    """A page of Streamlit as one writes it in a minute."""
    found = Measured("px.imshow", n)
    script = folder / "plain.py"
    script.write_text(PLAIN.format(folder=str(folder / NAME), words=text_of(checkpoint, n)), encoding="utf-8")
    command = (sys.executable, "-m", "streamlit", "run", str(script), "--server.headless=true")
    with Server(command, port_option="--server.port", log=folder / "log") as server, tab(browser) as (page, received):
        page.goto(f"{server.url}/?n=8")
        until(page, DRAWN, "n 8 layer 0 head 0")
        received.clear()
        began = time.perf_counter()
        page.goto(f"{server.url}/?n={n}")
        try:
            until(page, DRAWN, f"n {n} layer 0 head 0")
        except TimeoutError:
            return found
        found.painted, found.sent = time.perf_counter() - began, sum(received)
        page.get_by_role("combobox", name="Head").click()
        page.evaluate(PRESSED)
        page.get_by_role("option", name="1", exact=True).click()
        found.switched = until(page, DRAWN, f"n {n} layer 0 head 1")
        found.server = status(server.process.pid, "VmHWM")
        found.browser = peak_of_tabs()
    return found


@click.command()
@click.option(
    "--lengths", default="64,256,512,1024,2048,4096", show_default=True, help="Tokens; above 1024 ours alone."
)
@click.option("--layers", default=12, show_default=True, help="Of the shape; fewer for a quick look.")
@click.option(
    "--scripts", type=click.Path(path_type=Path), help="Of BertViz's page, without the web: see other_viewers."
)
def main(lengths: str, layers: int, scripts: Path | None) -> None:
    """Measures ours, a plain page, and the other viewers that are installed."""
    shape = ModelConfig.preset("gpt2-small")
    config = ModelConfig(
        **{
            **shape.to_dict(),
            "n_decoder_layers": layers,
            "vocab_size": tiny.tokenizer().vocab_size,
            "max_positions": LONGEST,
            "bos_id": None,
            "eos_id": None,
        }
    )
    measure(config, [int(n) for n in lengths.split(",")], scripts)


def measure(config: ModelConfig, lengths: Sequence[int], scripts: Path | None = None) -> None:
    viewers = other_viewers.installed()
    for name in sorted({one.package for one in other_viewers.VIEWERS} - {one.package for one in viewers}):
        click.echo(f"{name}: not installed, not measured")
    columns = ["tokens", "painted, s", "all painted, s", "sent, MiB", "early switch, ms", "switch, ms"]
    click.echo("| | " + " | ".join([*columns, "hover, frames/s", "server, MiB", "tab, MiB"]) + " |")
    click.echo("| --- |" + " ---: |" * 9)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        checkpoint = make(folder, config)
        executable = chromium.find()
        sides: list[Callable[[Browser, Path, Checkpoint, int], Measured]] = [ours, plain]
        sides += [partial(other_viewers.measure, viewer=viewer, scripts=scripts) for viewer in viewers]
        for n in lengths:
            for side in list(sides) if n <= 1024 else [ours]:
                browser = playwright.chromium.launch(executable_path=executable, args=chromium.ARGUMENTS)
                try:
                    found = side(browser, folder, checkpoint, n)
                finally:
                    browser.close()
                click.echo(found.row())
                if found.painted is None and side is not ours:
                    sides.remove(side)  # a longer text would be stopped too


if __name__ == "__main__":
    main()
