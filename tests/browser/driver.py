"""A server started the way users start it, and a browser that looks at it.

tab = open_tab("/qkv?head=2", locale="zh-CN", theme="dark", width=400)
with tab.runs():                      # waits until the server has finished answering
    tab.page.get_by_role("button", name="Next").click()
"""

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, ViewportSize, WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from vizformer.web.frame import sitemap

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 60.0  # seconds; generous, the machine may be busy
LOOKS = 30  # milliseconds between two looks at what has come: each takes nearly two of processor time
QUIET = 0.2  # seconds that components have for asking for a run once they are painted


class Server:
    """`command` listening on a free port, until `stop()`."""

    def __init__(
        self,
        command: Sequence[str] = (sys.executable, "-m", "vizformer"),
        *,
        port_option: str = "--port",
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
        log: Path,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        with log.open("w") as out:
            self.process = subprocess.Popen(
                [*command, port_option, str(self.port)], cwd=cwd, env=env, stdout=out, stderr=subprocess.STDOUT
            )
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"the server did not start:\n{self.log.read_text()}")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> int:
        """Ends the server as Ctrl+C does; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(2)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Tab:
    """A browser tab, what it complained about, and which runs of the app it has seen finish."""

    page: Page
    home: str
    finished: int = 0
    busy: bool = False  # a run has been asked for, or goes on
    problems: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("websocket", self._on_websocket)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"uncaught in the browser: {error}"))
        self.page.on("request", self._on_request)

    def goto(self, path: str = "/") -> None:
        """Opens an address of the app and waits until the page is there.

        An address that says nothing names the usual model: in English it would begin with another one.
        """
        with self.runs():
            self.page.goto(self.home + (path if "?" in path else f"{path}?model=zh-en"))

    @contextmanager
    def runs(self, count: int = 1) -> Iterator[None]:
        """Waits, after what happens inside, until `count` more runs of the app have finished and are painted.

        Looking at the page's "running" state instead is a race: just after a click it still says "not running".
        """
        goal = self.finished + count
        yield
        end = time.monotonic() + TIMEOUT
        while self.finished < goal:
            if time.monotonic() > end:
                raise TimeoutError(f"the app did not finish run {goal} (it finished {self.finished})")
            self.page.wait_for_timeout(LOOKS)
        self.painted()

    def visit(self, title: str) -> None:
        """Goes to a page by the bar, the line below it or a tile; through its door where it is behind another one.

        Args:
            title: of the page, in English.
        """
        self.page.locator(".st-key-bar-doors a").last.wait_for(
            state="attached"
        )  # links are drawn by a script of their own
        entry = next(e for e in sitemap.PAGES.values() if str(e.title) == title)
        if entry is sitemap.HOME:
            place = self.page.locator(".st-key-bar-home")
        elif entry in sitemap.HELP:
            self.page.locator(".st-key-help button").first.click()
            place = self.page.get_by_test_id("stPopoverBody")
        else:
            place = self.page.locator(":is(.st-key-bar, .st-key-page-head, .st-key-tiles)")
        link = place.locator(f"a[href$='{entry.url}']") if entry is not sitemap.HOME else place.get_by_role("link")
        door = sitemap.door_of(entry)
        if not link.count() and door is not None:
            self.visit(str(door.title))
        with self.runs():
            link.first.click()
        self.settled()

    def choose(self, files: object) -> None:
        """Gives files to the page's first box for files, and waits until the box lists one.

        Streamlit bars the form's button only from then on until the files are there: a press before sends no file.
        """
        self.page.locator("input[type=file]").first.set_input_files(files)  # type: ignore[arg-type]
        self.page.get_by_test_id("stFileChip").first.wait_for()

    def settled(self, quiet: float = QUIET) -> None:
        """Waits until no run goes on and none is asked for, for `quiet` seconds after what has come is painted.

        For places where the number of runs is not the point.
        """
        self.painted()
        end = since = time.monotonic()
        end += TIMEOUT
        seen = self.finished
        while self.busy or time.monotonic() - since < quiet:
            if time.monotonic() > end:
                raise TimeoutError("the app does not come to rest")
            self.page.wait_for_timeout(LOOKS)
            if self.busy or self.finished != seen:
                seen, since = self.finished, time.monotonic()
        self.painted()

    def painted(self) -> None:
        """Waits for two frames, and before them for the app to be seen: until its first page is there it is covered."""
        self.page.wait_for_function("() => !document.getElementById('first-picture')", timeout=TIMEOUT * 1000)
        self.page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    @property
    def address(self) -> str:
        """The path and parameters in the address bar."""
        parts = urlsplit(self.page.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def close(self) -> None:
        """Closes the tab (do it before its server stops) and fails if the browser has complained."""
        self.page.context.close()
        self.check()

    def empty(self) -> None:
        """Leaves the page and forgets what it stored: the tab is as a new one (but for the browser's cache)."""
        if urlsplit(self.page.url).scheme == "http":
            self.page.evaluate("() => sessionStorage.clear()")
        self.page.goto("about:blank")
        self.page.unroute_all(behavior="ignoreErrors")
        browser = self.page.context.new_cdp_session(self.page)
        stored = "cookies,local_storage,indexeddb,cache_storage,service_workers"
        browser.send("Storage.clearDataForOrigin", {"origin": self.home, "storageTypes": stored})
        browser.detach()
        self.page.mouse.move(0, 0)
        self.finished, self.busy, self.problems, self.foreign = 0, False, [], []

    def check(self) -> None:
        """Fails if the browser complained or anything was asked of another host than our server."""
        assert not self.foreign, f"requests that leave the server: {self.foreign}"
        assert not self.problems, f"the browser complains: {self.problems}"

    def _on_websocket(self, socket: WebSocket) -> None:
        if urlsplit(socket.url).netloc != urlsplit(self.home).netloc:
            self.foreign.append(socket.url)
        self.busy = False  # whatever went on in another page of this tab
        socket.on("framereceived", self._on_frame)
        socket.on("framesent", self._on_frame_sent)

    def _on_frame_sent(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes) and BackMsg.FromString(frame).WhichOneof("type") == "rerun_script":
            self.busy = True

    def _on_frame(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes):
            message = ForwardMsg.FromString(frame)
            if message.WhichOneof("type") == "new_session":
                self.busy = True
            if message.WhichOneof("type") == "script_finished":
                self.busy = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
                # A run cut short by the next one is not an answer. One that failed is: waiting on would hang.
                self.finished += message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.problems.append(message.text)

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https") and parts.netloc != urlsplit(self.home).netloc:
            self.foreign.append(request.url)


class Tabs:
    """A server's tabs, which are used again: an emptied one opens a page in half of the processor time of a new one.

    Streamlit's scripts are fetched and compiled once for each tab, and not once for each test.  Two tabs never share
    anything, and whoever takes a tab finds nothing in it of the one before: no page, no storage, no cookie.
    """

    def __init__(self, browser: Browser, home: str) -> None:
        self.browser, self.home = browser, home
        self._empty: dict[str, list[Tab]] = {}  # by locale, which a tab keeps for ever

    def take(
        self, *, locale: str = "en-US", theme: str = "light", width: int = 1280, height: int = 900
    ) -> tuple[Tab, Callable[[], None]]:
        """A tab as `new_tab` makes them, and what hands it back: that fails as `Tab.close` does."""
        empty = self._empty.setdefault(locale, [])
        if empty:
            tab = empty.pop()
            tab.page.set_viewport_size(ViewportSize(width=width, height=height))
            scheme: Literal["dark", "light"] = "dark" if theme == "dark" else "light"
            tab.page.emulate_media(media="null", color_scheme=scheme, reduced_motion="reduce")  # (one test prints)
        else:
            tab = new_tab(self.browser, self.home, locale=locale, theme=theme, width=width, height=height)

        def hand_back() -> None:
            if tab.page.is_closed():
                return
            if tab.foreign or tab.problems:
                tab.close()  # which fails; nobody uses this tab again
            tab.empty()
            empty.append(tab)

        return tab, hand_back


def new_tab(
    browser: Browser,
    home: str,
    *,
    locale: str = "en-US",
    theme: str = "light",
    width: int = 1280,
    height: int = 900,
) -> Tab:
    """A tab of its own (own storage, own session) that shows nothing yet."""
    context = browser.new_context(
        locale=locale,
        color_scheme="dark" if theme == "dark" else "light",
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
    )
    return Tab(context.new_page(), home)
