"""Who decides: clicks are not thrown back by answers that come late, and the page's wishes are obeyed once."""

import json
from typing import Any

import pytest

from vizformer.components._mount import Echo, open_echo, read_report, settle


class Page:
    """A page that keeps what it is given, and the browser's last report."""

    def __init__(self, start: Any) -> None:
        self.kept = start
        self.echo = open_echo(start)
        self.report: dict[str, Any] | None = None
        self.seq = 0

    def click(self, value: Any) -> None:
        self.seq += 1
        self.report = {"at": value, "version": self.echo.version, "seq": self.seq}

    def run(self, *, keep: bool = True) -> Any:
        report, seq = read_report(self.echo, self.report)
        shown = settle(self.echo, self.kept, None if report is None else report["at"], seq)
        if keep:
            self.kept = shown
        return shown


def versions(page: Page, count: int = 1) -> list[int]:
    found = []
    for _ in range(count):
        page.run()
        found.append(page.echo.version)
    return found


def test_nothing_is_said_twice() -> None:
    page = Page("a")
    assert len(set(versions(page, 3))) == 1


def test_a_click_is_returned_and_not_sent_back() -> None:
    page = Page("a")
    page.run()
    before = page.echo.version
    page.click("b")
    assert page.run() == "b"
    assert page.run() == "b"  # the run after it, which passes "b"
    assert page.echo.version == before
    assert page.echo.sent == "a"


def test_a_second_click_before_the_answer_wins() -> None:
    page = Page("a")
    page.run()
    before = page.echo.version
    page.click("b")
    page.run()
    page.click("c")  # while the page now passes "b"
    assert page.run() == "c"
    assert page.echo.version == before


def test_a_run_that_was_cut_short_loses_no_click() -> None:
    page = Page("a")
    page.run()
    before = page.echo.version
    page.click("b")
    page.run(keep=False)  # ended before the page could keep "b"
    page.click("c")
    assert page.run() == "c"
    assert page.echo.version == before


def test_the_page_may_choose() -> None:
    page = Page("a")
    page.run()
    before = page.echo.version
    page.kept = "z"
    assert page.run() == "z"
    assert page.echo.version > before
    assert page.echo.sent == "z"
    assert len(set(versions(page, 3))) == 1  # and says so once


def test_the_page_may_go_back_to_where_it_was_before_a_click() -> None:
    page = Page("a")
    page.run()
    page.click("b")
    page.run()
    page.kept = "a"
    assert page.run() == "a"
    assert page.echo.sent == "a"
    page.click("b")
    assert page.run() == "b"


def test_a_report_about_an_older_version_comes_too_late() -> None:
    page = Page("a")
    page.run()
    page.click("b")
    late = page.report
    page.run()
    page.kept = "z"
    page.run()
    page.report = late
    assert page.run() == "z"


def test_a_component_mounted_anew_is_told_where_it_was() -> None:
    page = Page("a")
    page.run()
    page.click("b")
    page.run()
    before = page.echo.version
    page.report = None  # Streamlit forgets the state of what is not on the page
    assert page.run() == "b"
    assert page.echo.version > before
    assert page.echo.sent == "b"
    assert len(set(versions(page, 3))) == 1


def test_without_a_wish_the_component_keeps_its_own() -> None:
    page = Page(None)
    assert page.run(keep=False) is None
    page.click("b")
    assert page.run(keep=False) == "b"
    assert page.run(keep=False) == "b"
    page.report = None
    assert page.run(keep=False) == "b"


def test_versions_grow_and_are_exact_in_javascript() -> None:
    echo = open_echo(1)
    seen = []
    for _ in range(5):
        echo.bump(2)
        seen.append(echo.version)
    assert seen == sorted(set(seen))
    assert max(seen) < 2**53
    assert json.loads(json.dumps(max(seen))) == max(seen)


@pytest.mark.parametrize("state", [None, 3, "text", [], {"version": -1, "at": 1}])
def test_what_is_no_report_is_none(state: object) -> None:
    assert read_report(Echo(5, None, None, None), state) == (None, None)
