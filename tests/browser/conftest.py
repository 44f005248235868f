"""One server for all browser tests; an empty tab, with its own session, for each (the browser: tests/conftest.py)."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.driver import Server, Tab, Tabs, new_tab

OpenTab = Callable[..., Tab]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app as `make run` starts it."""
    server = Server(log=tmp_path_factory.mktemp("server") / "log.txt")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def tabs(browser: Browser, server: Server) -> Tabs:
    return Tabs(browser, server.url)


@pytest.fixture
def open_tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[OpenTab]:
    """`open_tab("/qkv?head=2", locale="zh-CN", theme="dark", width=400)`: a tab with that page on it.

    `at=` is another server than the shared one; `path=None` opens nothing yet, in a tab that no other test gets: routes,
    clocks and scripts that are set up before a page stay with a tab. When the test is over, every tab must have been free
    of complaints, and must have asked nobody but the server for anything.
    """
    leave: list[Callable[[], None]] = []

    def opened(path: str | None = "/", *, at: Server | None = None, **options: object) -> Tab:
        if at is None and path is not None:
            tab, hand_back = request.getfixturevalue("tabs").take(**options)
            leave.append(hand_back)
        else:
            home = (at or request.getfixturevalue("server")).url
            tab = new_tab(browser, home, **options)  # type: ignore[arg-type]
            leave.append(lambda: None if tab.page.is_closed() else tab.close())
        if path is not None:
            tab.goto(path)
        return tab

    yield opened
    for each in leave:
        each()
