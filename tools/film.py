"""Makes docs/film.webp, the film of the README, from the app: `make film`.

A sentence is typed, the whole model works on it, a head is pressed, and its number is proved.  Each picture is a screenshot
of a fresh server's page; a ring shows where the next press is.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FILE = ROOT / "docs" / "film.webp"
SENTENCE = "My sister likes red flowers."
HEAD = "Decoder layer 2, cross-attention, head 2"
WIDTH = 960  # px of the film; the page has 1280
RING, AT = "#d55e00", 18  # colour, and radius in px of the page


def main() -> None:
    from playwright.sync_api import Locator, sync_playwright

    from tests.browser import chromium
    from tests.browser.driver import Server, new_tab

    frames: list[Image.Image] = []
    durations: list[int] = []  # ms

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.ARGUMENTS)
        with Server(log=Path(folder, "log.txt")) as server:
            tab = new_tab(browser, server.url, height=800)
            page = tab.page

            def keep(ms: int, ring: Locator | None = None) -> None:
                shot = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
                if ring is not None:
                    box = ring.bounding_box()
                    assert box is not None
                    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
                    ImageDraw.Draw(shot).ellipse((x - AT, y - AT, x + AT, y + AT), outline=RING, width=4)
                frames.append(shot.resize((WIDTH, WIDTH * shot.height // shot.width), Image.Resampling.LANCZOS))
                durations.append(ms)

            tab.goto("/start?model=zh-en&text=I have a cat.")
            tab.settled(quiet=1.0)
            keep(700)
            field = page.get_by_role("textbox", name="Sentence")
            for end in range(0, len(SENTENCE) + 1, 4):
                field.fill(SENTENCE[:end])
                keep(120)
            with tab.runs():
                page.keyboard.press("Enter")
            tab.settled(quiet=1.0)
            keep(2200)
            head, prove = (page.get_by_role("button", name=name) for name in (HEAD, "Prove this number"))
            keep(600, head)
            head.click()
            tab.settled()
            keep(2000)
            keep(600, prove)
            prove.click()
            page.locator(".vf-whole-products").wait_for()
            keep(3600)
            tab.close()
        browser.close()
    how = {"quality": 80, "method": 6, "loop": 0}
    frames[0].save(FILE, save_all=True, append_images=frames[1:], duration=durations, **how)
    sys.stdout.write(f"{FILE.name}: {sum(durations) / 1000:.1f} s, {FILE.stat().st_size / 1e3:.0f} kB\n")


if __name__ == "__main__":
    main()
