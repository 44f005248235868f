"""How fast every part of every lesson answers a change of its main control, in headless Chromium on this machine.

    python -m tests.benchmarks.lessons                # the table of README.md, and exit code 1 above the limit
    python -m tests.benchmarks.lessons --lesson masks --repeats 5

(`tests.benchmarks.web` runs them too, after the other pages.)

The main control is the first slider of a part; without one the first row of buttons, else the first
list, else the sentence.  Every change
asks for something new.  Measured in the browser with its own clock: from the event to the second animation frame after
the last change of the page that follows from it.  32 tokens or fewer; the sentence is zh-en's own.
"""

import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
from playwright.sync_api import Browser, Locator, TimeoutError, sync_playwright

from tests.browser import chromium
from tests.browser.driver import Server, Tab, new_tab
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.widgets import slides

LESSONS = [entry.url for entry in COURSE]
LIMIT = 300.0  # ms, median of a lesson's changes
QUIET = 1200  # ms without a change of the page: then the last one has been seen
TEXT = "我昨天在公园里看见一只很小的猫。"

ARGS = chromium.ARGUMENTS
BUTTONS = {"map/rnn"}  # parts whose first slider changes a number, and whose buttons change the picture

_WATCH = """() => {
  const seen = window.__seen = { start: 0, last: 0 };
  const begin = (event) => { if (!seen.start) seen.start = seen.last = event.timeStamp; };
  for (const kind of ["keydown", "pointerdown"]) addEventListener(kind, begin, { capture: true });
  const what = { subtree: true, childList: true, characterData: true,
    attributes: true, attributeFilter: ["d", "transform", "data-plot", "style", "src", "aria-valuenow"] };
  const changed = new MutationObserver((records) => {
    records.forEach((record) => record.addedNodes.forEach((node) => { if (node instanceof Element) within(node); }));
    requestAnimationFrame(() => requestAnimationFrame((now) => { seen.last = now; }));
  });
  const within = (root) => {  // our own components have a tree of their own, of which no observer of the page hears
    for (const one of [root, ...root.querySelectorAll("*")]) if (one.shadowRoot) changed.observe(one.shadowRoot, what);
  };
  const main = document.querySelector("[data-testid=stMain]");
  changed.observe(main, what);
  within(main);
}"""
_RESET = "() => { window.__seen.start = 0; }"
_TAKEN = """(quiet) => new Promise(done => {
  const look = () => performance.now() - window.__seen.last > quiet && window.__seen.start
    ? done(window.__seen.last - window.__seen.start) : setTimeout(look, 20);
  look();
})"""


@dataclass
class Row:
    """One part of one lesson."""

    lesson: str
    part: str
    control: str = ""
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)


def ready(tab: Tab) -> None:
    """Waits until the laboratory of the part is there: the first one loads torch."""
    tab.page.get_by_text("Terms of this lesson").wait_for()  # the end of the page
    tab.settled(2.5)  # a cold browser still fetches the code of sliders and charts


def change(tab: Tab, buttons: bool) -> tuple[str, "list[Locator]"]:
    """The main control of the part that is shown: its kind and what to press, in turn."""
    main = tab.page.get_by_test_id("stMain")
    sliders = main.locator("[data-testid=stSlider] input[type=range]")
    if sliders.count() and not buttons:
        return "slider", [sliders.first]
    groups = main.get_by_test_id("stButtonGroup")
    for index in range(groups.count()):
        options = groups.nth(index).get_by_role("radio")
        if "1 · " not in options.first.inner_text() and options.count() > 1:
            return "buttons", [options.nth(i) for i in range(options.count())]
    # (the boxes of a question that is answered by a cell change nothing else)
    boxes = main.locator("[data-testid=stSelectbox]:not([class*=st-key-ask-] *) input")
    if boxes.count() > 1:  # the first one is the model
        return "list", [boxes.nth(1)]
    return "sentence", [main.get_by_role("textbox", name="Sentence", exact=True)]


def opened(tab: Tab, box: Locator) -> Locator:
    """The options of a list: pressed again where a scroll of the page has closed it at once."""
    options = tab.page.get_by_role("option")
    for _ in range(3):
        box.click()
        try:
            options.first.wait_for(timeout=2000)
            break
        except TimeoutError:
            continue
    return options


def measure(tab: Tab, row: Row, repeats: int) -> None:
    row.control, targets = change(tab, f"{row.lesson}/{row.part}" in BUTTONS)
    for index in range(repeats + 1):
        tab.settled()
        tab.page.evaluate(_RESET)
        target = targets[(index + 1) % len(targets)]
        if row.control == "slider":
            end = target.input_value() == target.get_attribute("max")
            target.press("ArrowLeft" if end else "ArrowRight")
        elif row.control == "buttons":
            target.click()
        elif row.control == "sentence":
            target.fill(TEXT[index:])
            tab.page.evaluate(_RESET)
            target.press("Enter")
        else:
            options = opened(tab, target)
            tab.page.evaluate(_RESET)
            options.nth((index + 1) % options.count()).click()
        taken = tab.page.evaluate(_TAKEN, QUIET)
        if index:  # the first one warms up
            row.values.append(taken)


def run(browser: Browser, repeats: int, lessons: Sequence[str]) -> list[Row]:
    """Every part of these lessons, each in a tab of its own, on one fresh server."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, Server(log=Path(folder, "log.txt")) as server:
        for lesson in lessons:
            for part in slides.lesson_prose(lesson, "en"):
                tab = new_tab(browser, server.url)
                tab.goto(f"/{lesson}?part={part}&text={TEXT}")
                ready(tab)
                tab.page.evaluate(_WATCH)
                row = Row(lesson, part)
                measure(tab, row, repeats)
                rows.append(row)
                click.echo(f"{lesson}/{part}: {row.control}, {row.median:.0f} ms", err=True)
                tab.page.context.close()
    return rows


def table(rows: Sequence[Row]) -> str:
    lines = [f"| {r.lesson} | {r.part} | {r.control} | {r.median:.0f} | {max(r.values):.0f} |" for r in rows]
    return "\n".join(["| lesson | part | control | median, ms | slowest, ms |", "|---|---|---|---:|---:|", *lines])


def slow(rows: Sequence[Row]) -> list[str]:
    """The lessons whose changes take longer than the limit (median over all of its parts)."""
    taken: dict[str, list[float]] = {}
    for row in rows:
        taken.setdefault(row.lesson, []).extend(row.values)
    return [lesson for lesson, values in taken.items() if statistics.median(values) > LIMIT]


@click.command()
@click.option("--repeats", default=7, show_default=True)
@click.option("--lesson", "only", type=click.Choice(LESSONS), multiple=True)
def main(repeats: int, only: tuple[str, ...]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium.find()), args=ARGS)
        rows = run(browser, repeats, only or LESSONS)
    click.echo(f"{table(rows)}\n\n{platform.machine()}, {repeats} repeats, limit {LIMIT:.0f} ms")
    sys.exit(bool(slow(rows)))


if __name__ == "__main__":
    main()
