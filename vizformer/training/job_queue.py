"""Who trains now and who waits: processes of their own, a bounded number at once, the visitors in turn."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Literal

from vizformer.errors import VizformerError
from vizformer.messages import N_
from vizformer.training.live import Plan
from vizformer.training.runs import STOP, WATCHED, Progress, Run, is_full
from vizformer.training.worker import FULL, UNWATCHED

LONGEST_QUEUE = 240
LONGEST_OF_AN_ADDRESS = 80  # of those: a class of forty, two for each
MOST_EACH = 2  # that one visitor has begun and that are not over: the new one, and the one before until it has ended
ROOM = 256 * 2**20  # bytes that are free on the disk when a training begins; the largest one keeps about 100 MB
MOST_RUNS = 40  # kept on disk; the ones looked at least recently go first
STILL_WATCHED = 10.0  # seconds since somebody last asked
HANGS = 20.0  # seconds a process may take to obey
LONGEST = 900.0  # seconds of any process, whatever happens

Phase = Literal["waiting", "starting", "running", "over"]


@dataclass(frozen=True)
class State:
    """A training as it stands.

    Attributes:
        ahead: how many wait before it (while it waits).
        progress: see `Progress`; its `ending` is set when the phase is "over".
    """

    phase: Phase
    ahead: int
    progress: Progress


@dataclass
class _Job:
    run: Run
    watchers: dict[str, float] = field(default_factory=dict)  # who -> when they last asked
    began: str = ""  # who began it, of those who ask
    owner: str = ""  # the visitor who began it, and the address
    address: str = ""
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0.0
    told_to_stop: float = 0.0
    ending: str = ""  # how it ended, where the worker could not say it

    def watched(self, seconds: float) -> bool:
        return any(time.monotonic() - last < seconds for last in self.watchers.values())


_OWNER, _ADDRESS = attrgetter("owner"), attrgetter("address")


class JobQueue:
    """All trainings of a server, in folders below `root`.  Safe to use from many threads.

    Nothing happens in the background: whoever asks about a training also moves the queue on.
    """

    def __init__(self, root: Path, at_once: int | None = None, longest_queue: int = LONGEST_QUEUE) -> None:
        self.root = root
        self.at_once = at_once or max(1, (os.cpu_count() or 1) // 2)
        self.longest_queue = longest_queue
        self._jobs: dict[str, _Job] = {}  # in the order in which they came
        self._lock = threading.RLock()
        self._closed = False

    def submit(self, plan: Plan, who: str, visitor: str = "", address: str = "") -> str:
        """Queues a training and returns its name; joins one with the same plan, whose weights are the same.

        Args:
            who: watches it.
            visitor: of those who watch several may be one; default `who`.
            address: where the visitor comes from.

        Raises:
            VizformerError: the queue is full, or the disk; or the visitor has begun as many as one may.
        """
        visitor = visitor or who
        with self._lock:
            self._move_on()
            name, attempt = f"train-{plan.key}", 1
            while name in self._jobs:
                if self._jobs[name].ending in ("", "done", "diverged"):
                    self._jobs[name].watchers[who] = time.monotonic()
                    return name
                attempt += 1
                name = f"train-{plan.key}-{attempt}"
            waiting = self._waiting()
            there = sum(job.address == address for job in waiting)
            if self._active() >= self.at_once and (
                len(waiting) >= self.longest_queue or there >= LONGEST_OF_AN_ADDRESS
            ):
                raise VizformerError(
                    N_(
                        "{n} trainings are waiting already, more are not taken. Try again in a few minutes.",
                        n=len(waiting),
                    )
                )
            begun = sum(job.owner == visitor and not job.ending and not job.told_to_stop for job in self._jobs.values())
            if begun >= MOST_EACH:
                raise VizformerError(
                    N_(
                        "You have {n} trainings that wait or run, more are not taken. Stop one of them, or wait until "
                        "it is over.",
                        n=begun,
                    )
                )
            self._make_room()
            self._jobs[name] = _Job(self._create(name, plan), {who: time.monotonic()}, who, visitor, address)
            self._move_on()
            return name

    def look(self, name: str, who: str) -> State | None:
        """How a training stands; None if there is none of this name.  Whoever stops asking counts as gone."""
        with self._lock:
            job = self._jobs.get(name)
            if job is None:
                return None
            job.watchers[who] = time.monotonic()
            if not job.ending:
                with suppress(OSError):  # (then it ends after a minute)
                    (job.run.folder / WATCHED).touch()
            self._move_on()
            waiting, progress = self._waiting(), job.run.progress()
            if job.ending:
                return State("over", 0, _ended(progress, job.ending))
            if job in waiting:
                return State("waiting", waiting.index(job), progress)
            return State("running" if progress.snapshots else "starting", 0, progress)

    def stop(self, name: str, who: str) -> bool:
        """Ends a training, unless others are watching it; whether it ends."""
        with self._lock:
            job = self._jobs.get(name)
            if job is None or job.ending:
                return True
            job.watchers.pop(who, None)
            if job.began == who:
                job.owner = ""
            if job.watched(STILL_WATCHED):
                return False
            if job.process is None:
                job.ending = "stopped"
            else:
                (job.run.folder / STOP).touch()
                job.told_to_stop = job.told_to_stop or time.monotonic()
            return True

    def run(self, name: str) -> Run | None:
        job = self._jobs.get(name)
        return None if job is None else job.run

    def close(self) -> None:
        """Ends every process, for good; what was trained is lost."""
        with self._lock:
            self._closed = True
            for job in self._jobs.values():
                if job.process is not None and job.process.poll() is None:
                    job.process.kill()
                    job.process.wait()
            self._jobs.clear()
            shutil.rmtree(self.root, ignore_errors=True)

    # Under the lock ------------------------------------------------------------------------------------------

    def _waiting(self) -> list[_Job]:
        """Those that wait, the next one first: round after round, in which each visitor has one training.

        In a round the addresses take turns; of an address, that visitor comes first whose last training began first.
        """
        jobs = list(self._jobs.values())
        trains = [job for job in jobs if job.process is not None and not job.ending]
        in_time = sorted(jobs, key=lambda job: job.started)
        began, began_there = ({name(job): job.started for job in in_time} for name in (_OWNER, _ADDRESS))
        each, there = Counter(job.owner for job in trains), Counter((0, job.address) for job in trains)
        rounds = list[tuple[int, _Job]]()
        for job in jobs:
            if job.process is None and not job.ending:
                rounds.append((each[job.owner], job))
                each[job.owner] += 1
        line = list[tuple[tuple[int, int, float], _Job]]()
        for number, job in sorted(rounds, key=lambda one: (one[0], began[one[1].owner])):
            line.append(((number, there[number, job.address], began_there[job.address]), job))
            there[number, job.address] += 1
        return [job for _, job in sorted(line, key=lambda one: one[0])]

    def _active(self) -> int:
        return sum(1 for job in self._jobs.values() if job.process is not None and not job.ending)

    def _move_on(self) -> None:
        now = time.monotonic()
        for job in self._jobs.values():
            if job.ending or job.process is None:
                continue
            if (status := job.process.poll()) is not None:
                if not (ending := job.run.progress().ending):  # killed, or a mistake of ours: its log says which
                    ending = "full" if status == FULL else "failed"
                    with suppress(OSError):  # where nothing can be written, only the queue knows it
                        job.run.finish(ending, now - job.started)
                job.ending = ending
            elif now - job.started > LONGEST or (job.told_to_stop and now - job.told_to_stop > HANGS):
                job.process.kill()
        for job in self._waiting():
            if not job.watched(UNWATCHED):
                job.ending = "abandoned"
        for job in self._waiting()[: 0 if self._closed else max(0, self.at_once - self._active())]:
            try:
                job.process, job.started = _start(job.run.folder), now
            except OSError as error:  # no room for its log, or for another process
                job.ending = "full" if is_full(error) else "failed"

    def _create(self, name: str, plan: Plan) -> Run:
        """The folder of a new training.

        Raises:
            VizformerError: there is no room for it.
        """
        folder = self.root / name
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self.root).free >= ROOM:
                return Run.create(folder, plan)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            if not is_full(error):
                raise
        raise VizformerError(
            N_(
                "The disk of this server is almost full: there is no room for a training. Ask whoever runs it to make "
                "some, then train again."
            )
        )

    def _make_room(self) -> None:
        over = [(max(job.watchers.values(), default=0.0), name) for name, job in self._jobs.items() if job.ending]
        for _, name in sorted(over)[: max(0, len(self._jobs) + 1 - MOST_RUNS)]:
            shutil.rmtree(self._jobs.pop(name).run.folder, ignore_errors=True)


def _ended(progress: Progress, ending: str) -> Progress:
    return progress if progress.ending else replace(progress, ending=ending)


def _start(folder: Path) -> "subprocess.Popen[bytes]":
    package = Path(__file__).resolve().parents[2]  # where `vizformer` is, installed or not
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    command: Sequence[str] = [sys.executable, "-m", "vizformer.training.worker", str(folder), str(os.getpid())]
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
