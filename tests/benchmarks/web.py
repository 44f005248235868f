"""How fast the pages answer, from the click to the painted picture, in headless Chromium on this machine.

    python -m tests.benchmarks.web              # the table of README.md, and exit code 1 above a limit
    python -m tests.benchmarks.web --repeats 5
    python -m tests.benchmarks.web --no-lessons          # only the pages Attention and the start

Measured in the browser with its own clock: from the event to the second animation frame after the new content is in the
page.  Bytes are what the server sent over the websocket for the action (medians).  The server is a fresh one, started
the way users start it; the browser has a cold cache at the first visit.
"""

import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import click
from playwright.sync_api import Page, sync_playwright

from tests.benchmarks import lessons as course
from tests.benchmarks.lessons import ARGS
from tests.browser import chromium
from tests.browser.driver import Server, Tab, new_tab

# 63 characters and the end mark: 64 tokens of the bundled model.
LONG = "今天天气很好我们一起去公园看书吃饭喝水" * 3 + "我有一只猫。"
SENTENCES = ("我有一只猫。", "今天天气很好。")

_CLICK_HEAD = """([layer, head]) => new Promise(done => {
  const root = document.querySelector('.vf-attention') ?? [...document.querySelectorAll('*')]
    .map(e => e.shadowRoot?.querySelector('.vf-attention')).find(Boolean);
  const tile = root.querySelector(`.vf-tile[data-layer="${layer}"][data-head="${head}"]`);
  const start = performance.now();
  tile.click();
  const look = () => root.dataset.head == head && root.dataset.layer == layer
    ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)))
    : requestAnimationFrame(look);
  look();
})"""

_WAIT_PLOT = """(old) => new Promise(done => {
  const find = () => [...document.querySelectorAll('*')]
    .map(e => e.shadowRoot?.querySelector('.vf-stage')).find(Boolean);
  const look = () => { const stage = find();
    return stage && stage.dataset.plot && stage.dataset.plot !== old
      ? requestAnimationFrame(() => requestAnimationFrame(() => done(stage.dataset.plot)))
      : requestAnimationFrame(look); };
  look();
})"""


@dataclass
class Row:
    """One action: what it took (ms) and cost (bytes), against its limit."""

    name: str
    limit: float | None
    values: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        size = f"{statistics.median(self.sizes) / 1000:.1f}" if self.sizes else ""
        limit = "" if self.limit is None else f"{self.limit:.0f}"
        return f"| {self.name} | {self.median:.0f} | {max(self.values):.0f} | {limit} | {size} |"


class Bytes:
    """Counts what the server sends over the websocket."""

    def __init__(self, page: Page) -> None:
        self.total = 0
        page.on("websocket", lambda socket: socket.on("framereceived", self._add))

    def _add(self, frame: str | bytes) -> None:
        self.total += len(frame)


def first_visit(browser: object, log: Path) -> tuple[float, float]:
    """A fresh server's first visitor: ms until the title, and until the picture, from the start of the process."""
    start = time.perf_counter()
    with Server(log=log) as server:
        tab = new_tab(browser, server.url)  # type: ignore[arg-type]
        tab.page.goto(f"{server.url}/attention")
        tab.page.get_by_role("heading", name="Attention").first.wait_for()
        frame = time.perf_counter() - start
        tab.page.evaluate(_WAIT_PLOT, "")
        picture = time.perf_counter() - start
        tab.page.context.close()
    return frame * 1000, picture * 1000


def head_switches(tab: Tab, sent: Bytes, row: Row, repeats: int) -> None:
    tab.page.evaluate(_WAIT_PLOT, "")
    tab.settled()
    for index in range(repeats + 1):
        before = sent.total
        taken = tab.page.evaluate(_CLICK_HEAD, [1 + index % 2, 1 + index % 3])
        tab.settled()
        if index:  # the first one warms up
            row.values.append(taken)
            row.sizes.append(sent.total - before)


def sentences(tab: Tab, sent: Bytes, row: Row, repeats: int, text: Callable[[int], str]) -> None:
    box = tab.page.get_by_label("Sentence")
    for index in range(repeats + 1):
        tab.settled()
        before, old = sent.total, tab.page.locator(".vf-stage").first.get_attribute("data-plot")
        box.fill(text(index))
        start = time.perf_counter()
        box.press("Enter")
        tab.page.evaluate(_WAIT_PLOT, old)
        taken = (time.perf_counter() - start) * 1000
        tab.settled()
        if index:
            row.values.append(taken)
            row.sizes.append(sent.total - before)


@click.command()
@click.option("--repeats", default=15, show_default=True)
@click.option("--starts", default=3, show_default=True)
@click.option("--lessons/--no-lessons", default=True)
def main(repeats: int, starts: int, lessons: bool) -> None:
    frame, picture = Row("server start to frame visible", 2500), Row("server start to first picture", 6000)
    heads = Row("head switch, 64 tokens", 80)
    new, known = Row("new sentence to new picture", 400), Row("a sentence seen before", None)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=str(chromium.find()), args=ARGS)
        for index in range(starts):
            for row, value in zip((frame, picture), first_visit(browser, Path(folder, f"{index}.log")), strict=True):
                row.values.append(value)
        with Server(log=Path(folder, "log.txt")) as server:
            tab = new_tab(browser, server.url)
            sent = Bytes(tab.page)
            tab.goto(f"/attention?text={LONG}")
            head_switches(tab, sent, heads, repeats)
            # Alternating lengths, so that every new picture has another layout; numbers make every sentence new.
            sentences(tab, sent, new, repeats, lambda i: f"我有{i}只猫" + "和狗" * (i % 2) + "。")
            sentences(tab, sent, known, repeats, lambda i: SENTENCES[i % 2])
            tab.page.context.close()
        parts = course.run(browser, min(repeats, 7), course.LESSONS) if lessons else []
    rows = [frame, picture, heads, new, known]
    click.echo("| action | median, ms | slowest, ms | limit, ms | sent to the browser, KB |\n|---|---:|---:|---:|---:|")
    for row in rows:
        click.echo(str(row))
    click.echo(f"\n{platform.processor() or platform.machine()}, {repeats} repeats, {starts} starts")
    if parts:
        click.echo(f"\n{course.table(parts)}")
    slow = [row for row in rows if row.limit is not None and row.median > row.limit]
    sys.exit(bool(slow or course.slow(parts)))


if __name__ == "__main__":
    main()
