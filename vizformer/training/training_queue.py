"""The queue of the trainings on a server: running, waiting and finished ones."""

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
    """The state of a training, and how many wait `ahead` of it."""

    phase: Literal["waiting", "starting", "running", "over"]
    ahead: int
    progress: Progress


class TrainingQueue(JobQueue[Run]):
    """The trainings of a server. A stopped training is not resumed: its model may be open somewhere."""

    module = "vizformer.training.worker"
    good = ("done", "diverged")
    resumes = False
    longest_queue = 240
    longest_of_an_address = 80  # of these, from one network address: a class of forty, two for each
    most_each = 2  # of one visitor: the new one, and the previous one until it has ended
    most_kept = 40  # jobs on the disk; the largest has about 100 MB

    def __init__(self, root: Path, at_once: int | None = None) -> None:
        super().__init__(root, at_once or max(1, (os.cpu_count() or 1) // 2))

    def submit(self, plan: Plan, who: str, visitor: str = "", address: str = "") -> str:
        """Queues a training and returns its name; a plan that is queued already is joined, as its weights are the same.

        The other arguments are those of `JobQueue.add`.
        """
        return self.add(f"train-{plan.key}", lambda folder: Run.create(folder, plan), who, visitor, address)

    def look(self, name: str, who: str) -> State | None:
        """The state of a training; None if there is none of this name. A visitor who stops asking counts as gone."""
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
        if not (ending := job.content.progress().ending):  # killed, or an error in the program: its log says which
            ending = "full" if status == FULL else "failed"
            with suppress(OSError):  # where nothing can be written, only the queue knows it
                job.content.finish(ending, time.monotonic() - job.started)
        return ending
