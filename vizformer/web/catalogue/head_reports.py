"""Head reports of this server: measured in processes of their own, one after the other, and kept for all readers.

A report has a name that says model, files and texts, so that whoever asks for the same finds it, done or under way.
Nothing happens in the background: whoever asks about a report also moves the queue on.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vizformer.analysis.corpus_heads import Corpus, HeadReport
from vizformer.analysis.corpus_heads.report_file import read_report
from vizformer.analysis.corpus_heads.worker import Request
from vizformer.errors import VizformerError
from vizformer.messages import N_
from vizformer.web.catalogue import session_folders
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef

LONGEST_QUEUE = 12  # that wait
MOST = 24  # kept on disk; those looked at least recently go first
WATCHES = 10.0  # seconds after which somebody who has not asked again does not watch any more
UNWATCHED = 60.0  # seconds after which one that waits and that nobody looks at is forgotten
LONGEST = 900.0  # seconds of a process; what it has measured stays, and the next one goes on
HANGS = 20.0  # seconds a process may take to obey
UNREADABLE = 3  # (as vizformer.analysis.corpus_heads.worker has it, without torch)
ROOM = 256 * 2**20  # bytes that are free on the disk when one begins

Phase = Literal["waiting", "running", "over", "stopped", "unreadable", "failed"]


@dataclass(frozen=True)
class State:
    """A report as it stands.

    Attributes:
        ahead: how many wait before it (while it waits).
        done, texts: how many of the texts are measured.
    """

    phase: Phase
    ahead: int
    done: int
    texts: int


@dataclass
class _Job:
    folder: Path
    texts: int
    asked: float
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    told_to_stop: float = 0.0
    ending: Phase | None = None
    watchers: dict[str, float] = field(default_factory=dict)  # who watches, and when they asked last


class Reports:
    """All reports of a server, in folders below `root`.  Safe to use from many threads."""

    def __init__(self, root: Path, at_once: int = 1) -> None:
        self.root, self.at_once = root, at_once
        self._jobs: dict[str, _Job] = {}  # in the order in which they came
        self._lock, self._closed = threading.RLock(), False

    def submit(self, name: str, request: Request) -> None:
        """Queues a report, unless it is there or under way; one that was stopped goes on where it was.

        Raises:
            VizformerError: the queue or the disk is full.
        """
        with self._lock:
            if self._closed:  # the server is ending
                return
            self._move_on()
            job = self._jobs.get(name)
            if job is not None and job.ending not in ("stopped", "unreadable", "failed"):
                job.asked = time.monotonic()
                return
            if len(self._waiting()) >= LONGEST_QUEUE:
                raise VizformerError(
                    N_(
                        "{n} reports are waiting already, more are not taken. Try again in a few minutes.",
                        n=len(self._waiting()),
                    )
                )
            self._make_room()
            folder = self.root / name
            folder.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(folder).free < ROOM:
                raise VizformerError(
                    N_("The disk of this server is almost full: there is no room for a report. Ask whoever runs it.")
                )
            (folder / "stop").unlink(missing_ok=True)
            (folder / "watched").touch()
            request.write(folder)
            self._jobs.pop(name, None)  # the last one in the queue
            self._jobs[name] = _Job(folder, len(request.texts), time.monotonic())
            self._move_on()

    def look(self, name: str, watcher: str | None = "") -> State | None:
        """How a report stands; None if nobody has asked for it.  Asking is what keeps it going.

        `watcher` is who asks; None for somebody who only wants to know, and does not wait for it.
        """
        with self._lock:
            job = self._jobs.get(name)
            if job is None:
                return None
            if watcher is not None:
                job.asked = job.watchers[watcher] = time.monotonic()
                with suppress(OSError):
                    (job.folder / "watched").touch()
            self._move_on()
            waiting, done = self._waiting(), 0
            with suppress(OSError, ValueError):
                done = int((job.folder / "progress").read_text(encoding="utf-8"))
            if job.ending is not None:
                return State(job.ending, 0, done, job.texts)
            return (
                State("waiting", waiting.index(job), done, job.texts)
                if job in waiting
                else State("running", 0, done, job.texts)
            )

    def leave(self, name: str, watcher: str = "") -> None:
        """Ends the watching, and the measuring with it where nobody else watches; what was measured stays."""
        with self._lock:
            job = self._jobs.get(name)
            if job is None or job.ending is not None:
                return
            job.watchers.pop(watcher, None)
            if any(time.monotonic() - asked < WATCHES for asked in job.watchers.values()):
                return
            if job.process is None:
                job.ending = "stopped"
            else:
                (job.folder / "stop").touch()
                job.told_to_stop = job.told_to_stop or time.monotonic()

    def file(self, name: str) -> Path | None:
        """The finished report."""
        job = self._jobs.get(name)
        found = None if job is None or job.ending != "over" else job.folder / "report.npz"
        return found if found is not None and found.is_file() else None

    def close(self) -> None:
        """Ends every process, for good."""
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
        return [job for job in self._jobs.values() if job.process is None and job.ending is None]

    def _move_on(self) -> None:
        now = time.monotonic()
        for job in self._jobs.values():
            if job.process is None or job.ending is not None:
                continue
            if (status := job.process.poll()) is not None:
                there = (job.folder / "report.npz").is_file()
                stopped = status == 0 or now - job.started > LONGEST or bool(job.told_to_stop)
                refused: Phase = "unreadable" if status == UNREADABLE else "failed"
                job.ending = "over" if there else "stopped" if stopped else refused
            elif now - job.started > LONGEST or (job.told_to_stop and now - job.told_to_stop > HANGS):
                job.process.kill()
        for job in self._waiting():
            if now - job.asked > UNWATCHED:
                job.ending = "stopped"
        active = sum(job.process is not None and job.ending is None for job in self._jobs.values())
        for job in self._waiting()[: max(0, self.at_once - active)]:
            try:
                job.process, job.started = _start(job.folder), now
            except OSError:
                job.ending = "failed"

    def _make_room(self) -> None:
        over = sorted((job.asked, name) for name, job in self._jobs.items() if job.ending is not None)
        for __, name in over[: max(0, len(self._jobs) + 1 - MOST)]:
            shutil.rmtree(self._jobs.pop(name).folder, ignore_errors=True)


def _start(folder: Path) -> subprocess.Popen[bytes]:
    package = Path(__file__).resolve().parents[3]  # where `vizformer` is, installed or not
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "vizformer.analysis.corpus_heads.worker", str(folder), str(os.getpid())],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


_making = threading.Lock()
_reports: Reports | None = None


def reports() -> Reports:
    """Those of this server."""
    global _reports
    with _making:
        if _reports is None:
            _reports = Reports(session_folders.new_folder())
            session_folders.before_the_end(_close)
        return _reports


def _close() -> None:
    global _reports
    with _making:
        closing, _reports = _reports, None
    if closing is not None:
        closing.close()


def name_of(model: ModelRef, corpus: Corpus) -> str:
    """The name of the report on a model (with the stamp of its files) and texts."""
    said = f"{model} {model.stamp} {corpus.key}"
    return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()


@cached
def report(name: str) -> HeadReport:
    """A finished report.

    Raises:
        VizformerError: it is not there any more.
    """
    prepare_torch()
    path = reports().file(name)
    with suppress(OSError):  # it may go while it is opened
        if path is not None:
            return read_report(path)
    raise VizformerError(N_("This report is no longer on the server. Measure again."))
