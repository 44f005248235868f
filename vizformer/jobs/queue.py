"""Which jobs run and which wait: processes of their own, a bounded number at once, the visitors in turn.

A job has a folder.  What is to be done is written there before it begins; its process writes there what comes of it, and
`vizformer.jobs.worker` says how it knows when to end.  A job that nobody looks at any more ends.
"""

import math
import os
import shutil
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeVar

from vizformer.errors import VizformerError
from vizformer.jobs.worker import STOP, UNWATCHED, WATCHED, environment, is_full

ROOM = 256 * 2**20  # bytes that are free on the disk when a job begins
STILL_WATCHED = 10.0  # seconds since somebody last asked
HANGS = 20.0  # seconds a process may take to obey

Content = TypeVar("Content")


@dataclass(frozen=True)
class Standing(Generic[Content]):
    phase: Literal["waiting", "running", "over"]
    ahead: int  # how many wait before it (while it waits)
    # how it ended (when it is over): what `JobQueue.ending` says; or "stopped", "abandoned" (nobody looked at it),
    # "full" (the disk) or "failed"
    ending: str
    content: Content  # what `add` was given to keep


@dataclass
class Job(Generic[Content]):
    folder: Path
    content: Content
    asked: float  # when somebody asked about it last
    watchers: dict[str, float] = field(default_factory=dict)  # who -> when they last asked
    began: str | None = None  # who began it, of those who ask
    owner: str = ""  # the visitor who began it, and the address
    address: str = ""
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0.0
    told_to_stop: float = 0.0
    ending: str = ""


_OWNER, _ADDRESS = attrgetter("owner"), attrgetter("address")


class JobQueue(ABC, Generic[Content]):
    """The jobs of one kind of a server, in folders below `root`.  Safe to use from many threads.

    Nothing happens in the background: whoever asks about a job also moves the queue on.  A subclass says what it is about:
    """

    module: ClassVar[str]  # the process is `python -m MODULE FOLDER PARENT`
    good: ClassVar[Collection[str]]  # the endings after which whoever asks for the same job gets what there is
    resumes: ClassVar[bool] = True  # a job that ended otherwise goes on in its folder; else it begins in another one
    # longest_queue, longest_of_an_address: how many may wait, and how many of one address
    longest_queue: int = 12
    longest_of_an_address: int = 12
    most_each: float = math.inf  # how many a visitor may have begun that are not over
    most_kept: int = 24  # jobs on the disk; of those that are over, the ones asked about least recently go first
    longest: float = 900.0  # seconds of any process, whatever happens
    room: int = ROOM  # bytes that are free on the disk when a job begins

    def __init__(self, root: Path, at_once: int = 1) -> None:
        self.root, self.at_once = root, at_once
        self._jobs: dict[str, Job[Content]] = {}  # in the order in which they came
        self._lock, self._closed = threading.RLock(), False

    @abstractmethod
    def ending(self, job: Job[Content], status: int, cut_off: bool) -> str:
        """How a job ended whose process is over with this exit status; `cut_off`: it was told to end, or took too long."""

    def add(
        self, name: str, write: Callable[[Path], Content], who: str | None = None, visitor: str = "", address: str = ""
    ) -> str:
        """Queues a job and returns its name; joins the one that is there or under way.

        `write`: writes into the job's folder what is to be done, and returns what the queue keeps of it.
        `visitor`: of those who watch several may be one; default `who`.

        Raises:
            VizformerError: the queue is full, or the disk; or the visitor has begun as many as one may.
        """
        visitor, first, attempt = visitor or who or "", name, 1
        with self._lock:
            if self._closed:  # the server is ending
                return name
            self._move_on()
            while (job := self._jobs.get(name)) is not None:
                if not job.ending or job.ending in self.good:
                    self._ask(job, who)
                    return name
                if self.resumes:
                    break
                attempt += 1
                name = f"{first}-{attempt}"
            waiting = self._waiting()
            there = sum(one.address == address for one in waiting)
            if self._active() >= self.at_once and (
                len(waiting) >= self.longest_queue or there >= self.longest_of_an_address
            ):
                raise VizformerError(
                    "{n} are waiting already, and no more are taken. Try again in a few minutes.", n=len(waiting)
                )
            begun = sum(one.owner == visitor and not one.ending and not one.told_to_stop for one in self._jobs.values())
            if begun >= self.most_each:
                raise VizformerError(
                    "You have begun {n} that wait or run, and no more are taken. Stop one of them, or wait until it is "
                    "over.",
                    n=begun,
                )
            self._make_room(name)
            content = self._write(self.root / name, write)
            self._jobs.pop(name, None)  # the last one in the queue
            job = Job(self.root / name, content, time.monotonic(), {}, who, visitor, address)
            self._jobs[name] = job
            self._ask(job, who)
            self._move_on()
            return name

    def standing(self, name: str, who: str | None) -> Standing[Content] | None:
        """How a job stands; None if there is none of this name.  Whoever stops asking counts as gone.

        `who` is who asks; None for somebody who only wants to know, and does not wait for it.
        """
        with self._lock:
            job = self._jobs.get(name)
            if job is None:
                return None
            self._ask(job, who)
            self._move_on()
            if job.ending:
                return Standing("over", 0, job.ending, job.content)
            waiting = self._waiting()
            if job in waiting:
                return Standing("waiting", waiting.index(job), "", job.content)
            return Standing("running", 0, "", job.content)

    def stop(self, name: str, who: str = "") -> bool:
        """Ends a job, unless others are watching it; whether it ends."""
        with self._lock:
            job = self._jobs.get(name)
            if job is None or job.ending:
                return True
            job.watchers.pop(who, None)
            if job.began == who:
                job.owner = ""
            if any(time.monotonic() - last < STILL_WATCHED for last in job.watchers.values()):
                return False
            if job.process is None:
                job.ending = "stopped"
            else:
                with suppress(OSError):  # (then it is killed)
                    (job.folder / STOP).touch()
                job.told_to_stop = job.told_to_stop or time.monotonic()
            return True

    def close(self) -> None:
        """Ends every process, for good; what they made is lost."""
        with self._lock:
            self._closed = True
            for job in self._jobs.values():
                if job.process is not None and job.process.poll() is None:
                    job.process.kill()
                    job.process.wait()
            self._jobs.clear()
            shutil.rmtree(self.root, ignore_errors=True)

    # Under the lock ------------------------------------------------------------------------------------------

    def _ask(self, job: Job[Content], who: str | None) -> None:
        if who is None:
            return
        job.asked = job.watchers[who] = time.monotonic()
        if not job.ending:
            with suppress(OSError):  # (then it ends after a minute)
                (job.folder / WATCHED).touch()

    def _waiting(self) -> list[Job[Content]]:
        """Those that wait, the next one first: round after round, in which each visitor has one job.

        In a round the addresses take turns; of an address, that visitor comes first whose last job began first.
        """
        jobs = list(self._jobs.values())
        runs = [job for job in jobs if job.process is not None and not job.ending]
        in_time = sorted(jobs, key=lambda job: job.started)
        began, began_there = ({name(job): job.started for job in in_time} for name in (_OWNER, _ADDRESS))
        each, there = Counter(job.owner for job in runs), Counter((0, job.address) for job in runs)
        rounds = list[tuple[int, Job[Content]]]()
        for job in jobs:
            if job.process is None and not job.ending:
                rounds.append((each[job.owner], job))
                each[job.owner] += 1
        line = list[tuple[tuple[int, int, float], Job[Content]]]()
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
                job.ending = self.ending(job, status, bool(job.told_to_stop) or now - job.started > self.longest)
            elif now - job.started > self.longest or (job.told_to_stop and now - job.told_to_stop > HANGS):
                job.process.kill()
        for job in self._waiting():
            if now - job.asked >= UNWATCHED:
                job.ending = "abandoned"
        for job in self._waiting()[: 0 if self._closed else max(0, self.at_once - self._active())]:
            try:
                job.process, job.started = start_process(self.module, job.folder), now
            except OSError as error:  # no room for its log, or for another process
                job.ending = "full" if is_full(error) else "failed"

    def _write(self, folder: Path, write: Callable[[Path], Content]) -> Content:
        """Makes the folder of a job ready.

        Raises:
            VizformerError: there is no room for it.
        """
        if not self.resumes:
            shutil.rmtree(folder, ignore_errors=True)  # what is left of one that could not be removed
        old = folder.exists()
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self.root).free >= self.room:
                content = write(folder)
                (folder / STOP).unlink(missing_ok=True)
                (folder / WATCHED).touch()
                return content
        except OSError as error:
            if not old:
                shutil.rmtree(folder, ignore_errors=True)
            if not is_full(error):
                raise
        raise VizformerError(
            "The disk of this server is almost full: there is no room for this. Ask whoever runs it to make some, then "
            "try again."
        )

    def _make_room(self, name: str) -> None:
        over = [(job.asked, other) for other, job in self._jobs.items() if job.ending and other != name]
        for _, other in sorted(over)[: max(0, len(self._jobs.keys() | {name}) - self.most_kept)]:
            shutil.rmtree(self._jobs.pop(other).folder, ignore_errors=True)


def start_process(module: str, folder: Path) -> "subprocess.Popen[bytes]":
    """`python -m module folder PARENT`, on one thread, its output in log.txt."""
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, str(folder), str(os.getpid())],
            env=environment(OMP_NUM_THREADS="1"),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
