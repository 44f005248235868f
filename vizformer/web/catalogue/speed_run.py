"""The measurements of attention on this machine: one process at a time for all readers of a worker; results are kept."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vizformer.analysis.costs.attention_speed import COMPARISONS, SETTINGS, Kind, Measured, read
from vizformer.jobs.queue import Job, JobQueue
from vizformer.web.catalogue import session_folders

GRACE = 30.0  # seconds that a process may take beyond its time


@dataclass(frozen=True)
class SpeedState:
    """How the measurement stands.

    Attributes:
        found: so far, or by the last one that ended.
        running: whether a process measures.
        ending: "done", "time", "stopped", "abandoned" or "failed"; empty while it goes on, or if there was none.
    """

    found: tuple[Measured, ...]
    running: bool
    ending: str


class SpeedRun(JobQueue[None]):
    """Starts, looks at and stops the processes: a queue with one job for each comparison.

    Args:
        lengths, seconds: what is measured and for how long; those of the comparison if not given.
    """

    module = "vizformer.analysis.costs.attention_speed"
    good = ()
    room = 0

    def __init__(self, root: Path, lengths: Sequence[int] | None = None, seconds: float | None = None) -> None:
        super().__init__(root)
        self._lengths, self._seconds = lengths, seconds
        self.longest = GRACE + max(seconds or one.seconds for one in COMPARISONS.values())

    def start(self, kind: Kind = "heads") -> None:
        """Begins to measure, unless it is measured already."""
        usual = COMPARISONS[kind]
        seconds = usual.seconds if self._seconds is None else self._seconds
        settings = {"kind": kind, "lengths": list(self._lengths or usual.lengths), "seconds": seconds}

        def write(folder: Path) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")

        self.add(kind, write, "")

    def look(self, kind: Kind = "heads") -> SpeedState:
        """How it stands.  Who stops asking counts as gone: after a minute it ends."""
        if (now := self.standing(kind, "")) is None:
            return SpeedState((), False, "")
        return SpeedState(tuple(read(self.root / kind)[0]), now.phase != "over", now.ending)

    def stop(self, name: str = "heads", who: str = "") -> bool:
        """Ends it for all readers; what was measured stays."""
        return super().stop(name, who)

    def ending(self, job: Job[None], status: int, cut_off: bool) -> str:
        return read(job.folder)[1] or ("stopped" if job.told_to_stop else "failed")


speed_run = session_folders.OfTheServer(lambda: SpeedRun(session_folders.new_folder()), SpeedRun.close)
"""That of this server."""
