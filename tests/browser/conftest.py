"""One server for all browser tests; a fresh tab, with its own session, for each (the browser: tests/conftest.py)."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.driver import Server, Tab, new_tab

OpenTab = Callable[..., Tab]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app as `make run` starts it."""
    server = Server(log=tmp_path_factory.mktemp("server") / "log.txt")
    yield server
    server.stop()


@pytest.fixture
def open_tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[OpenTab]:
    """`open_tab("/qkv?head=2", locale="zh-CN", theme="dark", width=400)`: a tab with that page on it.

    `at=` is another server than the shared one; `path=None` opens nothing yet. When the test is over, every tab must
    have been free of complaints, and must have asked nobody but the server for anything.
    """
    tabs: list[Tab] = []

    def opened(path: str | None = "/", *, at: Server | None = None, **options: object) -> Tab:
        home = (at or request.getfixturevalue("server")).url
        tabs.append(new_tab(browser, home, **options))  # type: ignore[arg-type]
        if path is not None:
            tabs[-1].goto(path)
        return tabs[-1]

    yield opened
    for tab in tabs:
        if not tab.page.is_closed():
            tab.close()
