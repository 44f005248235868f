"""A browser for the components' own files: opened as files, without a server, with every request recorded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import WAY_OUT, find

# What is written on canvases can only be known by listening in.
RECORDER = """
window.written = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.written.push(text);
  return write.call(this, text, ...rest);
};
"""

OpenFile = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with start_browser() as browser:
        yield browser


@contextmanager
def start_browser() -> Iterator[Browser]:
    """A Chromium to test with; the test is skipped without one."""
    path = find()
    if path is None:
        pytest.skip(WAY_OUT)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(path), args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_file(chromium: Browser, tmp_path: Path) -> Iterator[OpenFile]:
    """Opens the text of a file in a fresh tab; at the end nothing may have failed and nothing been fetched."""
    contexts, problems = [], []

    def open_file(text: str, *, width: int = 1280, height: int = 800, scheme: str = "light") -> Page:
        path = tmp_path / f"view{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(RECORDER)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert problems == []
