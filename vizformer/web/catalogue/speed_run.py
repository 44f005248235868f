"""The measurement of attention on this machine: one process at a time for all readers of a worker; its results are kept."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vizformer.analysis.costs.attention_speed import LENGTHS, SECONDS, SETTINGS, Measured, read
from vizformer.jobs.queue import Job, JobQueue
from vizformer.web.catalogue import session_folders

GRACE = 30.0  # seconds that a process may take beyond its time
_NAME = "speed"


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
    """Starts, looks at and stops the process: a queue with one job.

    Args:
        lengths, seconds: what is measured and for how long; those of `attention_speed` if not given.
    """

    module = "vizformer.analysis.costs.attention_speed"
    good = ()
    room = 0

    def __init__(self, root: Path, lengths: Sequence[int] | None = None, seconds: float | None = None) -> None:
        super().__init__(root)
        seconds = SECONDS if seconds is None else seconds
        self._settings = {"lengths": list(lengths or LENGTHS), "seconds": seconds}
        self.longest = seconds + GRACE

    def start(self) -> None:
        """Begins to measure, unless it is measured already."""

        def write(folder: Path) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / SETTINGS).write_text(json.dumps(self._settings), encoding="utf-8")

        self.add(_NAME, write, "")

    def look(self) -> SpeedState:
        """How it stands.  Who stops asking counts as gone: after a minute it ends."""
        if (now := self.standing(_NAME, "")) is None:
            return SpeedState((), False, "")
        return SpeedState(tuple(read(self.root / _NAME)[0]), now.phase != "over", now.ending)

    def stop(self, name: str = _NAME, who: str = "") -> bool:
        """Ends it for all readers; what was measured stays."""
        return super().stop(name, who)

    def ending(self, job: Job[None], status: int, cut_off: bool) -> str:
        return read(job.folder)[1] or ("stopped" if job.told_to_stop else "failed")


speed_run = session_folders.OfTheServer(lambda: SpeedRun(session_folders.new_folder()), SpeedRun.close)
"""That of this server."""
