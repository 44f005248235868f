"""A browser for the components' own files: opened as files, without a server, with every request recorded."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

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


@pytest.fixture
def open_file(browser: Browser, tmp_path: Path) -> Iterator[OpenFile]:
    """Opens the text of a file in a fresh tab; at the end nothing may have failed and nothing been fetched."""
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def open_file(text: str, *, width: int = 1280, height: int = 800, scheme: str = "light") -> Page:
        path = tmp_path / f"view{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()

        def own(address: str) -> bool:  # the file itself, and what its own script made
            return address == path.as_uri() or address.startswith("blob:null/")

        page.add_init_script(RECORDER)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: None if own(request.url) else problems.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert problems == []
