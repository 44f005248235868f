"""What is measured of a page's first picture: on a page made for it, whose picture and whose shift are known."""

from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.benchmarks import first_look
from tests.benchmarks.first_look import Look
from vizformer.web.frame.sitemap import COURSE

APP = """<div data-testid="stApp" data-test-connection-state="CONNECTED" data-test-script-state="running">
  <div data-testid="stMain" style="position: absolute; inset: 0; overflow: auto"><div class="st-key-page-body">
    <p>words</p><select></select><div class="st-key-ask-1">a question</div>
    <canvas width="300" height="100" style="display: block"></canvas>
  </div></div></div>"""
DRAW = "document.querySelector('canvas').getContext('2d').fillRect(0, 0, 20, 20)"
DRAW_MORE = """const begun = performance.now(); while (performance.now() - begun < 1000);
document.querySelector('canvas').getContext('2d').fillRect(0, 0, 200, 50)"""
TABLE = """document.querySelector(".st-key-page-body").insertAdjacentHTML(
  "beforeend", "<table style='width: 300px; height: 90px'><tr><td>1</td></tr></table>")"""
AWAIT = """document.querySelector(".st-key-page-body").insertAdjacentHTML(
  "beforeend", "<div data-testid='stSkeleton' style='height: 50px'></div>")"""
PAINTED = """(name) => new Promise((done) => {
  const look = () => {
    const at = window.look.painted(document.querySelector(name));
    at == null ? requestAnimationFrame(look) : done(at);
  };
  look();
})"""  # when the picture was
FINISH = "document.querySelector('[data-testid=stApp]').dataset.testScriptState = 'notRunning'"


def look(**changed: Any) -> Look:
    usual: dict[str, Any] = {
        "path": "/",
        "visit": "later",
        "width": 1280,
        "language": "en-US",
        "picture": 0.5,
        "live": 1.2,
    }
    return Look(**{**usual, "shift": 0.0, "top": 200, "by": "canvas", "controls": 0, "asks": False, **changed})


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        ({}, []),
        ({"picture": 1.1}, ["picture"]),
        ({"live": 1.6}, ["live"]),
        ({"live": 1.6, "visit": "first"}, []),
        ({"live": None}, ["live"]),
        ({"picture": 0.7, "live": 9.0, "shift": 0.5, "visit": "next"}, ["picture"]),
        ({"shift": 0.1}, ["shift"]),
        ({"top": 321}, ["top"]),
        ({"top": 321, "width": 400}, []),
        ({"top": None}, ["top"]),
        ({"asks": True}, ["before it"]),
    ],
)
def test_what_is_above_its_bar_is_named_and_printed_in_bold(changed: dict[str, Any], missed: list[str]) -> None:
    one = look(**changed)
    assert sorted(one.missed) == sorted(missed)
    assert first_look.row(one).count("**") == 2 * len(missed)


def test_every_part_of_every_lesson_is_looked_at_once() -> None:
    paths = first_look.places()
    assert len(set(paths)) == len(paths)
    assert paths[0] == "/"
    assert {path.partition("?")[0] for path in paths} >= {f"/{entry.url}" for entry in COURSE}
    assert first_look.places(["masks"])[0] == "/masks?part=kinds"


@pytest.mark.browser
def test_an_empty_canvas_is_no_picture_and_a_moved_one_is_a_shift(browser: Browser) -> None:
    with first_look.tab(browser, 1280, "en-US") as page:
        page.route("**/*", lambda route: route.fulfill(body=APP, content_type="text/html"))
        page.goto("http://localhost/")
        page.evaluate(FINISH)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.evaluate("() => window.look.told().top") is None
        page.evaluate(DRAW)
        seen = first_look.seen(page, "/", "later", 1280, "en-US")
        assert seen.shift == 0
        assert seen.controls == 1
        assert seen.asks
        assert seen.by == "canvas"
        assert seen.picture is not None
        assert seen.top is not None
        page.evaluate("() => document.querySelector('p').style.paddingBottom = '200px'")
        page.wait_for_function("() => window.look.shift > 0")
        assert first_look.seen(page, "/", "later", 1280, "en-US").top == seen.top + 200


@pytest.mark.browser
@pytest.mark.parametrize("visit", ["later", "next"])
def test_the_time_is_that_of_the_picture_that_stands_highest(browser: Browser, visit: str) -> None:
    with first_look.tab(browser, 1280, "en-US") as page:
        page.route("**/*", lambda route: route.fulfill(body=APP, content_type="text/html"))
        page.goto("http://localhost/")
        page.evaluate(FINISH)
        if visit == "next":
            page.evaluate(DRAW)  # the picture of the page before
            page.evaluate(PAINTED, "canvas")
            page.evaluate("() => window.look.leave('/')")
        page.evaluate(TABLE)
        table = page.evaluate(PAINTED, "table")
        assert page.evaluate("() => window.look.told().by") == ("canvas" if visit == "next" else "table")
        page.evaluate(f"() => setTimeout(() => {{ {DRAW_MORE} }})")
        page.wait_for_function(first_look.STILL, arg=first_look.QUIET)
        canvas = page.evaluate(PAINTED, "canvas")
        told = page.evaluate("() => window.look.told()")
    assert told["by"] == "canvas"  # though a long task drew it
    assert table < told["picture"] == canvas <= told["live"]


@pytest.mark.browser
def test_a_page_is_looked_at_only_once_nothing_is_awaited_any_more(browser: Browser) -> None:
    with first_look.tab(browser, 1280, "en-US") as page:
        page.route("**/*", lambda route: route.fulfill(body=APP, content_type="text/html"))
        page.goto("http://localhost/")
        page.evaluate(FINISH)
        page.evaluate(TABLE)
        page.evaluate(PAINTED, "table")
        page.wait_for_function(first_look.STILL, arg=1)
        page.evaluate(AWAIT)
        assert not page.evaluate(first_look.STILL, -1)
        page.evaluate("() => document.querySelector('[data-testid=stSkeleton]').remove()")
        page.wait_for_function(first_look.STILL, arg=1)
