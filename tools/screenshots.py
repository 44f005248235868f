"""Makes the pictures of the documents: `make screenshots`.

    python tools/screenshots.py             # makes them anew
    python tools/screenshots.py --check     # makes them elsewhere; exit code 1 where one in docs/ shows something else

Each is a page of the app or a part of it, by its address, in a fresh server and a fresh tab.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


@dataclass(frozen=True)
class Shot:
    """What a picture shows: an address, or the first thing on its page that a CSS selector finds."""

    address: str
    selector: str = ""
    width: int = 1280
    height: int = 1060
    locale: str = "en-US"
    theme: str = "light"


PICTURES = {
    "home": Shot("/start?model=zh-en&text=I have a cat.", height=800),
    "attention": Shot("/attention?model=zh-en&text=今天早上你在做什么？&site=cross&layer=2&head=3&query=3"),
    "lesson": Shot("/heads?model=zh-en&text=我有一只猫。"),
    "path": Shot("/path?model=zh-en&text=I have a cat.&part=softmax", height=800),
    "answer": Shot("/lens?model=stories&text=The dog was tired, so it went to", height=800),
    "design-page": Shot("/masks?model=stories&text=The dog was tired, so it went to", height=800),
    "design-phone": Shot(
        "/attention?model=zh-en&text=我有一只猫。", width=400, height=800, locale="zh-CN", theme="dark"
    ),
    "design-tokens": Shot("/blanks?model=cloze&text=The dog was tired, so it went to bed", ".vf-tokens"),
    "design-tiles": Shot("/explore", ".st-key-tiles"),
}
"""Name of the file in docs/ -> what it shows."""

SEEN, MOST = 48, 0.01
"""Levels (of 256) from which a pixel is another one, and the share of such pixels up to which a picture is the same.

Fonts are drawn a little differently from machine to machine; a button or a line of text more is above it.
"""


COLOURS = 256  # of a picture, which then has a third of the bytes


def apart(one: Path, other: Path) -> float:
    """The share of pixels in which two pictures differ; 1 where one is missing or of another size."""
    import numpy as np
    from PIL import Image

    if not (one.exists() and other.exists()):
        return 1.0
    first, second = (np.asarray(Image.open(path).convert("RGB")).astype(int) for path in (one, other))
    if first.shape != second.shape:
        return 1.0
    return float((np.abs(first - second).max(axis=-1) >= SEEN).mean())


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes the pictures of the documents.")
    parser.add_argument("--check", action="store_true", help="only say which of them show something else by now")
    if not parser.parse_args().check:
        take(ROOT / "docs")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        take(Path(folder))
        shares = {name: apart(ROOT / "docs" / f"{name}.png", Path(folder, f"{name}.png")) for name in PICTURES}
    for name, share in shares.items():
        said = "is current" if share <= MOST else "shows something else: make screenshots"
        sys.stdout.write(f"docs/{name}.png {said} ({share:.2%} of its pixels differ)\n")
    return int(max(shares.values()) > MOST)


def take(into: Path) -> None:
    """Makes all pictures in a folder."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    from tests.browser import chromium
    from tests.browser.driver import Server, new_tab

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.ARGUMENTS)
        with Server(log=Path(folder, "log.txt")) as server:
            for name, shot in PICTURES.items():
                how = {"width": shot.width, "height": shot.height, "locale": shot.locale, "theme": shot.theme}
                tab = new_tab(browser, server.url, **how)  # type: ignore[arg-type]
                tab.goto(shot.address)
                tab.settled(quiet=1.0)
                tab.page.get_by_test_id("stSkeleton").first.wait_for(state="detached")  # every part has come
                shown = tab.page.locator(shot.selector).first if shot.selector else tab.page
                path = into / f"{name}.png"
                shown.screenshot(path=path, animations="disabled")
                small = Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
                small.save(path, optimize=True)
                tab.close()
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
