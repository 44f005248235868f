"""Makes the pictures of the documents: `make screenshots`.

Each is a page of the app, by its address, in a fresh server and a fresh tab, in English and in light colours.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PICTURES = {
    "attention": "/attention?model=zh-en&text=今天早上你在做什么？&site=cross&layer=2&head=0&query=3",
    "lesson": "/heads?model=zh-en&text=我有一只猫。",
}
"""Name of the file in docs/ -> the address that it shows."""

WIDTH, HEIGHT = 1280, 1010


def main() -> None:
    from playwright.sync_api import sync_playwright

    from tests.browser import chromium
    from tests.browser.driver import Server, new_tab

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.ARGUMENTS)
        with Server(log=Path(folder, "log.txt")) as server:
            for name, address in PICTURES.items():
                tab = new_tab(browser, server.url, width=WIDTH, height=HEIGHT)
                tab.goto(address)
                tab.settled(quiet=1.0)
                tab.page.get_by_test_id("stSkeleton").first.wait_for(state="detached")  # every part has come
                tab.page.screenshot(path=ROOT / "docs" / f"{name}.png", animations="disabled")
                tab.close()
        browser.close()


if __name__ == "__main__":
    main()
