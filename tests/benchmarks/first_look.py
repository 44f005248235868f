"""What somebody sees of every page and every part of a lesson, and when, in headless Chromium on this machine.

    python -m tests.benchmarks.first_look                                  # the table of README.md; exit code 1 above a bar
    python -m tests.benchmarks.first_look --page masks --width 400 --language zh-CN --json look.json

Measured by the browser's own clock, from the beginning of the navigation:

    picture    the first picture of the page's body is painted: a canvas, a drawing, a plot, an image, a table, tokens;
               it is the one that stands highest once nothing moves any more, though another be painted before it, or
               the image that stands in for it
    live       it is the app's own (not one that stands in for it), and the run of the page has finished
    shift      what moved by itself ("cumulative layout shift": the worst five seconds)
    top        where the first picture begins, in px from the top of the page, once nothing moves any more
    before it  controls and questions of the page's body that stand higher

`first` are the visitors that find a server that has just come up; each of them gets a fresh one.  `later` come in browsers
that have never seen the server either.  `next` comes from another page, in the same tab.
"""

import json
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import click
from playwright.sync_api import Browser, Page, sync_playwright

from tests.benchmarks.lessons import ARGS
from tests.browser import chromium
from tests.browser.driver import Server
from vizformer.web.frame import sitemap
from vizformer.web.link.beginnings import ENGLISH
from vizformer.web.widgets import slides

HEIGHT = 800
TOPS = {1280: 320, 400: 480}  # px that a first picture may begin at, by the width of the screen
LANGUAGES = ("en-US", "zh-CN")
SHIFT = 0.1
SECONDS = {"first": (1.0, 2.0), "later": (1.0, 1.5), "next": (0.6, None)}  # until the picture, and until it is live
FRESH = ("/", "/attention")  # whose first visitors get a server of their own
PATIENCE = 60_000  # ms
QUIET = 700  # ms in which nothing has moved: then the page lies still

Visit = Literal["first", "later", "next"]

WATCH = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
STILL = "(quiet) => window.look?.still(quiet)"
GO = """(path) => {
  window.look.leave(path);
  const link = [...document.querySelectorAll("a[href]")].find((one) => new URL(one.href).pathname === path);
  if (link) return link.click();
  history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate", { state: null }));
}"""


@dataclass
class Look:
    """What one visitor saw of one page.

    Attributes:
        path: of the page, with the part of a lesson.
        visit: whose visit it was.
        width: of the screen, in px.
        language: of the browser.
        picture, live: seconds; None where there was none for a minute.
        shift: cumulative layout shift.
        top: of the first picture, in px; None without one.
        by: what the first picture is.
        controls: how many stand above it in the body of the page.
        asks: whether a question does.
    """

    path: str
    visit: Visit
    width: int
    language: str
    picture: float | None
    live: float | None
    shift: float
    top: int | None
    by: str
    controls: int
    asks: bool

    @property
    def missed(self) -> list[str]:
        """The columns that miss their bar."""
        return [*self.missed_places, *self.missed_times]

    @property
    def missed_places(self) -> list[str]:
        missed = []
        if self.visit != "next" and self.shift >= SHIFT:  # on the way to another page things have to move
            missed.append("shift")
        if self.top is None or self.top > TOPS[self.width]:
            missed.append("top")
        if self.asks:
            missed.append("before it")
        return missed

    @property
    def missed_times(self) -> list[str]:
        bars = zip(("picture", "live"), (self.picture, self.live), SECONDS[self.visit], strict=True)
        return [name for name, taken, bar in bars if bar is not None and (taken is None or taken > bar)]


def with_own_sentence(path: str, language: str) -> str:
    """The path with the sentence that readers of this language begin with: without one a link opens on a Chinese one."""
    begins_with_another = language.startswith("en") and "?" in path
    return path + (f"&text={quote(ENGLISH.text)}" if begins_with_another else "")


def places(only: Sequence[str] = ()) -> list[str]:
    """The paths of all pages, and of all parts of lessons, or of those of some pages."""
    entries = {entry.url: entry for entry in vars(sitemap).values() if isinstance(entry, sitemap.Entry)}
    lessons = [entry.url for entry in sitemap.COURSE]
    found = []
    for url, entry in entries.items():
        if only and url not in only and not (entry is sitemap.HOME and "/" in only):
            continue
        parts = slides.lesson_prose(url, "en") if url in lessons else []
        path = "/" if entry is sitemap.HOME else f"/{url}"
        found += [f"{path}?part={part}" for part in parts] or [path]
    return found


@contextmanager
def tab(browser: Browser, width: int, language: str, theme: Literal["light", "dark"] = "light") -> Iterator[Page]:
    """A tab of a browser that has never been here."""
    context = browser.new_context(locale=language, viewport={"width": width, "height": HEIGHT}, color_scheme=theme)
    try:
        page = context.new_page()
        page.add_init_script(WATCH)
        page.set_default_timeout(PATIENCE)
        yield page
    finally:
        context.close()


def seen(page: Page, path: str, visit: Visit, width: int, language: str) -> Look:
    """Waits until the page lies still, and tells what was seen of it."""
    page.wait_for_function(STILL, arg=QUIET)
    told: dict[str, Any] = page.evaluate("() => window.look.told()")
    for name in ("picture", "live"):
        told[name] = None if told[name] is None else round(told[name] / 1000, 2)
    told["shift"] = round(told["shift"], 3)
    rest = {name: told[name] for name in ("picture", "live", "shift", "top", "by", "controls", "asks")}
    return Look(path, visit, width, language, **rest)


def opened(page: Page, home: str, path: str, visit: Visit, width: int, language: str) -> Look:
    """What is seen by somebody who comes by a link."""
    page.goto(home + path, wait_until="commit")
    return seen(page, path, visit, width, language)


def gone_to(page: Page, path: str, width: int, language: str) -> Look:
    """What is seen by somebody who comes from another page of the app."""
    page.evaluate(GO, path.partition("?")[0])
    return seen(page, path, "next", width, language)


def measure(
    browser: Browser, paths: Sequence[str], widths: Sequence[int], languages: Sequence[str], fresh: Sequence[str]
) -> Iterator[Look]:
    """All visits, one after the other."""
    screens = [(width, language) for language in languages for width in widths]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.txt")
        for path in fresh:
            for screen in screens:
                with Server(log=log) as server, tab(browser, *screen) as page:
                    yield opened(page, server.url, path, "first", *screen)
        with Server(log=log) as server:
            with tab(browser, *screens[0]) as page:
                opened(page, server.url, "/", "first", *screens[0])  # after whom all others are later ones
            for screen in screens:
                for path in paths:
                    with tab(browser, *screen) as page:
                        yield opened(page, server.url, with_own_sentence(path, screen[1]), "later", *screen)
                with tab(browser, *screen) as page:
                    opened(page, server.url, "/", "later", *screen)
                    for path in dict.fromkeys(path.partition("?")[0] for path in paths if path != "/"):
                        yield gone_to(page, path, *screen)


def row(look: Look) -> str:
    """A line of the table; what misses its bar is in bold."""
    before = f"{look.controls}{' and a question' if look.asks else ''}"
    cells = {
        "picture": look.picture,
        "live": look.live,
        "shift": f"{look.shift:.2f}",
        "top": look.top,
        "before it": before,
    }
    said = {name: "none" if cell is None else str(cell) for name, cell in cells.items()}
    said |= {name: f"**{said[name]}**" for name in look.missed}
    return f"| {look.path} | {look.visit} | {look.width} | {look.language} | {' | '.join(said.values())} | {look.by} |"


HEAD = """| page | visit | width | language | picture, s | live, s | shift | top, px | before it | what |
|---|---|---:|---|---:|---:|---:|---:|---:|---|"""


def summary(looks: Iterable[Look]) -> str:
    looks = list(looks)
    counts = {
        name: sum(name in look.missed for look in looks) for name in ("picture", "live", "shift", "top", "before it")
    }
    said = ", ".join(f"{name}: {count}" for name, count in counts.items())
    return f"{len(looks)} visits; of them above the bar: {said}"


@click.command()
@click.option("--page", "only", multiple=True, help='The address of a page, as "masks"; "/" for the first one.')
@click.option("--width", "widths", type=click.Choice([str(width) for width in TOPS]), multiple=True)
@click.option("--language", "languages", type=click.Choice(LANGUAGES), multiple=True)
@click.option("--fresh/--no-fresh", default=True, help="Whether first visitors come too.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Writes what was seen there.")
def main(
    only: tuple[str, ...], widths: tuple[str, ...], languages: tuple[str, ...], fresh: bool, file: Path | None
) -> None:
    looks = []
    paths = places([name.strip("/") or "/" for name in only])
    firsts = [path for path in FRESH if fresh and path in paths]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium.find()), args=ARGS)
        click.echo(HEAD)
        for look in measure(browser, paths, [int(w) for w in widths] or list(TOPS), languages or LANGUAGES, firsts):
            looks.append(look)
            click.echo(row(look))
        browser.close()
    click.echo(f"\n{summary(looks)}\n{platform.processor() or platform.machine()}")
    if file is not None:
        file.write_text(json.dumps([asdict(look) for look in looks], indent=1, ensure_ascii=False), encoding="utf-8")
    sys.exit(any(look.missed for look in looks))


if __name__ == "__main__":
    main()
