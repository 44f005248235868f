"""The value that a component shows: the browser's while someone clicks, Python's when its own value changes.

A click is drawn at once and reported later; by the time the report has made its round trip through the server the
reader may have clicked twice more.  Sending the reported value back would throw the view back to an old click (and
would send megabytes of unchanged heads again).  So every value that Python sends carries a version, the browser obeys a
version only once, and Python makes a new one only when the page asks for something that did not come from the browser.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

State = Any  # a JSON value: what a component has selected


@dataclass
class Echo:
    """The values last exchanged between the page and one mounted component."""

    version: int  # number of the value last sent; the browser ignores a value whose version it has seen
    sent: State  # that value
    argument: State  # what the page passed in the last run
    returned: State  # what `mount` returned in the last run
    seq: int | None = None  # serial number of the last report from the browser; None until there is one

    def bump(self, value: State) -> None:
        """Makes a new version; reports that speak of an older one no longer count."""
        self.version = max(self.version + 1, _now())
        self.sent = value


def open_echo(argument: State) -> Echo:
    """The beginning of the conversation; versions start at the clock so that a restarted server repeats none."""
    return Echo(version=_now(), sent=argument, argument=argument, returned=argument)


def settle(echo: Echo, argument: State, reported: State, seq: int | None) -> State:
    """Decides what is selected now, and makes a new version where the browser has to be told.

    `argument`: the page's own value; None where the page leaves the choice to the component.
    """
    shown, bumped = (echo.sent if reported is None else reported), False
    # a page that still passes its old value beside a new report was cut short before it could keep that report
    behind = argument == echo.argument and seq != echo.seq
    if reported is None and echo.seq is not None:
        # mounted anew, on another visit of the page: the browser starts empty
        shown, bumped = (echo.returned if argument is None else argument), True
    elif argument is not None and argument not in (shown, echo.returned) and not behind:
        shown, bumped = argument, True
    if bumped:
        echo.bump(shown)
    echo.argument, echo.returned, echo.seq = argument, shown, None if bumped else seq
    return shown


def read_report(echo: Echo, state: object) -> tuple[Mapping[str, Any] | None, int | None]:
    """The browser's report and its serial number, or (None, None) without one that speaks of the current version.

    A report without a version counts as current: tests write bare values into session state.
    """
    if not isinstance(state, Mapping) or state.get("version", echo.version) != echo.version:
        return None, None
    seq = state.get("seq", 0)
    return state, seq if isinstance(seq, int) else 0


def _now() -> int:
    return time.time_ns() // 1_000_000
