"""A process that works on a job: it looks at the job's folder to know whether it should end.

watched    touched while somebody looks at the job
stop       appears where the job is to end
"""

import errno
import json
import os
import time
from pathlib import Path
from typing import Any

WATCHED, STOP = "watched", "stop"
UNWATCHED = 60.0  # seconds after which a job that nobody looks at ends
LOOK_EVERY = 0.2
FULL = errno.ENOSPC  # the exit status where the disk is full: it may take no word of it


class FullDiskError(OSError):
    """There is no room for what is to be written."""


def is_full(error: Exception) -> bool:
    """Whether something could not be written for want of room."""
    full = (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, FullDiskError) or getattr(error, "errno", None) in full:
        return True
    return any(f"(os error {number})" in str(error) for number in full)  # (as safetensors says it)


def environment(**more: str) -> dict[str, str]:
    """The environment of a process of our own, in which `vizformer` is found, installed or not."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **more}


def take_low_priority() -> None:
    """Lets everything else on this machine go first."""
    if hasattr(os, "nice"):
        os.nice(10)


def read_lines(file: Path) -> tuple[list[dict[str, Any]], str]:
    """What a process has written so far, an object of JSON a line, and how it ended ("" while it goes on)."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    except OSError:
        return [], ""
    found = [json.loads(line) for line in lines if line.endswith("\n")]  # (the last one may be half written)
    ending = next((str(one["ending"]) for one in found if "ending" in one), "")
    return [one for one in found if "ending" not in one], ending


class Watch:
    """Whether the job should end now, looked up a few times a second: it was stopped, nobody looks at it any more, or the
    process that started it is gone; `reason` says which.
    """

    def __init__(self, folder: Path, parent: int | None = None) -> None:
        self.folder, self.parent, self.last, self.reason = folder, parent or os.getppid(), 0.0, ""

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self.reason and now - self.last > LOOK_EVERY:
            self.last = now
            if (self.folder / STOP).exists():
                self.reason = "stopped"
            elif self._unwatched() or os.getppid() != self.parent:
                self.reason = "abandoned"
        return bool(self.reason)

    def ending(self, end: float) -> str:
        """Why the job should end now, "time" where the clock (time.monotonic) is past `end`; empty: it goes on."""
        return self.reason if self() else "time" if time.monotonic() > end else ""

    def _unwatched(self) -> bool:
        try:
            return time.time() - (self.folder / WATCHED).stat().st_mtime > UNWATCHED
        except OSError:  # the folder has been taken away
            return True
