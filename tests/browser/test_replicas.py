"""Two servers with nginx before them, as deploy/nginx.conf has it: one is killed, and its reader is with the other."""

import os
import re
import secrets
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests import nginx, programs
from tests.browser.driver import TIMEOUT, Server, Tab, new_tab

NGINX = programs.find(programs.NGINX)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(NGINX is None, reason=programs.way_out(programs.NGINX)),
]


class Replicas:
    def __init__(self, url: str, servers: list[Server]) -> None:
        self.url, self.servers = url, servers

    def of(self, tab: Tab) -> Server:
        """The server that a browser is with: the only one that has connections."""
        (cookie,) = [one["value"] for one in tab.page.context.cookies() if one["name"] == "vizformer"]
        assert cookie
        holding = [one for one in self.servers if connections(one.port)]
        assert len(holding) == 1, "one browser is with one server"
        return holding[0]


def connections(port: int) -> int:
    """How many TCP connections are open to a port of this machine."""
    wanted = f":{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(wanted) and row[3] == "01" for row in rows)


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    env = {**os.environ, "STREAMLIT_SERVER_COOKIE_SECRET": secrets.token_hex(16)}
    command = (sys.executable, "-m", "vizformer", "--no-upload", "--no-hub", "--no-path")
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(command, env=env, log=tmp_path / f"{number}.txt")) for number in (1, 2)]
        url, _ = stack.enter_context(nginx.before(tmp_path, servers))
        yield Replicas(url, servers)


@pytest.mark.sweep
def test_a_reader_whose_server_is_killed_is_with_the_other_one_at_the_same_view(
    replicas: Replicas, browser: Browser
) -> None:
    tab = new_tab(browser, replicas.url)
    tab.goto("/attention?model=stories&text=A+cat+sat.&layer=1&head=3")
    tab.settled()
    title = tab.page.get_by_text(re.compile("Layer 1, head 3")).first
    expect(title).to_be_visible()
    address, killed = tab.address, replicas.of(tab)
    (other,) = [one for one in replicas.servers if one is not killed]
    assert not tab.problems, "the content security policy lets the app run"
    killed.process.kill()
    killed.process.wait()
    connected = tab.page.locator('[data-testid="stApp"][data-test-connection-state="CONNECTED"]')
    end = time.monotonic() + TIMEOUT
    while not connections(other.port):
        assert time.monotonic() < end, "the browser does not come to the other server"
        tab.page.wait_for_timeout(50)
    expect(connected).to_be_visible(timeout=TIMEOUT * 1000)
    expect(title).to_be_visible()
    assert tab.address == address
    tab.problems.clear()  # (the browser says that a connection was lost)
    with tab.runs():  # and the other server answers, from the address alone
        tab.page.reload()
    expect(title).to_be_visible()
    tab.page.context.close()


@pytest.mark.sweep
def test_pages_run_under_the_headers_of_the_configuration(replicas: Replicas, browser: Browser) -> None:
    tab = new_tab(browser, replicas.url)
    for path in ("/", "/attention", "/positions", "/training", "/cross", "/report"):
        tab.goto(path)
        tab.settled()
        policy = tab.page.evaluate(
            "() => fetch(location.href).then(found => found.headers.get('content-security-policy'))"
        )
        assert "script-src" in policy
        assert "'unsafe-eval'" not in policy
    tab.close()
    # Scripts are compressed, and the server's own numbers are nobody's.
    page = urllib.request.urlopen(f"{replicas.url}/", timeout=10).read().decode()
    script = re.search(r'src="\./(static/js/[^"]+\.js)"', page) or re.search(r'src="/?(static/js/[^"]+\.js)"', page)
    assert script
    asked = urllib.request.Request(f"{replicas.url}/{script[1]}", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{replicas.url}/_stcore/metrics", timeout=10)
