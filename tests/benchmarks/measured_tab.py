"""One row of the table of views, and what a tab takes."""

import os
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.memory import MIB

STOPPED = 120.0  # seconds
MOST_BYTES = 8 * 2**30  # of a tab


@dataclass
class Measured:
    """One row of the table; None: not measured.

    Attributes:
        painted: seconds until the first head is painted.
        all_painted: seconds until every small map is painted.
        sent: bytes of the connection until the first head is painted.
        early: seconds of a switch right after the first head is painted, while the small maps are under way.
        switched: seconds of a switch when everything is painted.
        stopped: why nothing was painted, where it was not the time.
    """

    who: str
    n: int
    painted: float | None = None
    all_painted: float | None = None
    sent: int = 0
    early: float | None = None
    switched: float | None = None
    frames: float | None = None
    server: int = 0
    browser: int = 0
    stopped: str = ""

    def row(self) -> str:
        def number(value: float | None, digits: int) -> str:
            return "-" if value is None else f"{value:.{digits}f}"

        cells = [
            self.who,
            f"{self.n}",
            number(self.painted, 2) if self.painted is not None else self.stopped or f"over {STOPPED:.0f}",
            number(self.all_painted, 2),
            f"{self.sent / MIB:.1f}",
            number(None if self.early is None else 1000 * self.early, 0),
            number(None if self.switched is None else 1000 * self.switched, 0),
            number(self.frames, 0),
            f"{self.server / MIB:.0f}",
            f"{self.browser / MIB:.0f}",
        ]
        return "| " + " | ".join(cells) + " |"


def status(process: int, name: str) -> int:
    """A number of /proc/PID/status, in bytes; 0 where the process has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0)


def renderers() -> list[int]:
    """The processes of tabs of the browsers that this process has started."""
    found, parents = [], {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    for process in parents:
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if above == os.getpid() and b"--type=renderer" in command:
            found.append(process)
    return found


def peak_of_tabs() -> int:
    """The most bytes that one of these processes has held."""
    return max((status(process, "VmHWM") for process in renderers()), default=0)
