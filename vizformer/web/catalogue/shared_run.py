"""Work that is done once for all readers of a worker, by one process at a time; what comes of it is kept."""

import json
import shutil
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from vizformer.jobs.queue import Job, JobQueue

GRACE = 30.0  # seconds that a process may take beyond its time
SETTINGS = "settings.json"
Found = TypeVar("Found")


@dataclass(frozen=True)
class RunState(Generic[Found]):
    """The state of a job: what it has `found` so far, or what the last job found, and how that one ended."""

    found: tuple[Found, ...]
    running: bool
    ending: str  # "done", "time", "stopped", "abandoned" or "failed"; empty while it goes on, or if there was none


class SharedRun(JobQueue[None], Generic[Found]):
    """Starts, looks at and stops the processes, whose job is told by settings.json in their folder."""

    @abstractmethod
    def read(self, folder: Path) -> tuple[list[Found], str]:
        """What a process has come to so far, and how it ended ("" while it goes on)."""

    def begin(self, name: str, settings: Mapping[str, Any]) -> None:
        """Starts the job, unless it is under way, or has ended well and is kept (`good`)."""

        def write(folder: Path) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")

        self.add(name, write, "")

    def look(self, name: str) -> RunState[Found]:
        """The state of the job.  A reader who stops asking counts as gone; without readers it ends after a minute."""
        if (now := self.standing(name, "")) is None:
            return RunState((), False, "")
        return RunState(tuple(self.read(self.root / name)[0]), now.phase != "over", now.ending)

    def ending(self, job: Job[None], status: int, cut_off: bool) -> str:
        return self.read(job.folder)[1] or ("stopped" if job.told_to_stop else "failed")
