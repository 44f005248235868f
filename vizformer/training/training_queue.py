"""The trainings of a server: those that run, those that wait and those that are over."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from vizformer.jobs.queue import Job, JobQueue
from vizformer.jobs.worker import FULL
from vizformer.training.live import Plan
from vizformer.training.runs import Progress, Run


@dataclass(frozen=True)
class State:
    """A training as it stands, and how many wait `ahead` of it."""

    phase: Literal["waiting", "starting", "running", "over"]
    ahead: int
    progress: Progress


class TrainingQueue(JobQueue[Run]):
    """All trainings of a server; one that was stopped is not gone on with: its model may be open somewhere."""

    module = "vizformer.training.worker"
    good = ("done", "diverged")
    resumes = False
    longest_queue = 240
    longest_of_an_address = 80  # of those: a class of forty, two for each
    most_each = 2  # the new one, and the one before until it has ended
    most_kept = 40  # of which the largest has about 100 MB

    def __init__(self, root: Path, at_once: int | None = None) -> None:
        super().__init__(root, at_once or max(1, (os.cpu_count() or 1) // 2))

    def submit(self, plan: Plan, who: str, visitor: str = "", address: str = "") -> str:
        """Queues a training and returns its name; joins one with the same plan, whose weights are the same.

        See `JobQueue.add` for the rest.
        """
        return self.add(f"train-{plan.key}", lambda folder: Run.create(folder, plan), who, visitor, address)

    def look(self, name: str, who: str) -> State | None:
        """How a training stands; None if there is none of this name.  Whoever stops asking counts as gone."""
        if (found := self.standing(name, who)) is None:
            return None
        progress = found.content.progress()
        if found.phase == "over":
            return State("over", 0, progress if progress.ending else replace(progress, ending=found.ending))
        if found.phase == "waiting":
            return State("waiting", found.ahead, progress)
        return State("running" if progress.snapshots else "starting", 0, progress)

    def run(self, name: str) -> Run | None:
        job = self._jobs.get(name)
        return None if job is None else job.content

    def ending(self, job: Job[Run], status: int, cut_off: bool) -> str:
        if not (ending := job.content.progress().ending):  # killed, or a mistake of ours: its log says which
            ending = "full" if status == FULL else "failed"
            with suppress(OSError):  # where nothing can be written, only the queue knows it
                job.content.finish(ending, time.monotonic() - job.started)
        return ending
