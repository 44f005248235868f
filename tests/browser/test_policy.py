"""The policy of the pages in a browser: what is not the server's own does not run, and nobody frames the app.

That the pages themselves work under it is held by all other tests here: what a browser forbids is a complaint of its
console, with which a test fails (`driver.Tab`).
"""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The address of another server on this machine, whose pages show the app in a frame."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(b"<p>elsewhere</p><iframe></iframe>")

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


FOREIGN = """async (elsewhere) => {
  const forbidden = [];
  addEventListener("securitypolicyviolation", (event) => forbidden.push(event.effectiveDirective));
  const script = document.createElement("script");
  script.textContent = "window.ranForeign = true";
  document.body.append(script);
  const loaded = document.createElement("script");
  loaded.src = elsewhere;
  document.body.append(loaded);
  document.body.insertAdjacentHTML("beforeend", `<img src="${elsewhere}/x.png" onerror="window.ranForeign = true">`);
  await fetch(elsewhere).catch(() => {});
  setTimeout("window.ranForeign = true");
  // (The handler of the image is looked at when its error is told, which a browser does in its own time.)
  for (let turn = 0; turn < 200 && !forbidden.includes("script-src-attr"); turn++) {
    await new Promise((done) => setTimeout(done, 10));
  }
  return [window.ranForeign ?? false, [...new Set(forbidden)].sort()];
}"""


@pytest.mark.sweep
def test_what_is_not_the_servers_own_does_not_run(open_tab, elsewhere) -> None:
    tab = open_tab("/qkv?text=hello")
    ran, forbidden = tab.page.evaluate(FOREIGN, elsewhere)
    assert not ran
    assert forbidden == ["connect-src", "img-src", "script-src", "script-src-attr", "script-src-elem"]
    assert tab.problems, "the browser complains of it, so that every test would notice"
    tab.problems.clear()
    tab.foreign.clear()  # asked for, and refused by the browser


def test_no_page_of_another_server_frames_the_app(open_tab, server, elsewhere) -> None:
    tab = open_tab(None)
    tab.page.goto(elsewhere)
    tab.page.evaluate("(address) => { document.querySelector('iframe').src = address; }", server.url)
    tab.page.wait_for_function("() => document.querySelector('iframe').contentDocument === null")
    expect(tab.page.frame_locator("iframe").get_by_text("VizFormer")).to_have_count(0)
    assert any("frame-ancestors" in problem for problem in tab.problems)
    tab.problems.clear()
    tab.foreign.clear()
