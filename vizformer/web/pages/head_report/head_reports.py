"""Head reports of this server: measured in processes of their own, one after the other, and kept for all readers.

A report has a name that says model, files and texts, so that whoever asks for the same finds it, done or under way.
"""

import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from vizformer.analysis.corpus_heads import Corpus, HeadReport
from vizformer.analysis.corpus_heads.report import path_of_bundled_report, read_report
from vizformer.analysis.corpus_heads.worker import PROGRESS, REPORT, UNREADABLE, Request
from vizformer.errors import VizformerError
from vizformer.jobs.queue import Job, JobQueue
from vizformer.web.catalogue import session_folders, sources
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef

Phase = Literal["waiting", "running", "over", "stopped", "unreadable", "failed"]


@dataclass(frozen=True)
class State:
    """A report as it stands: how many wait `ahead` of it, or how many of its `texts` are `done`."""

    phase: Phase
    ahead: int
    done: int
    texts: int


class Reports(JobQueue[int]):
    """All reports of a server; one that was stopped goes on where it was.  A job's content is the number of texts."""

    module = "vizformer.analysis.corpus_heads.worker"
    good = ("over",)

    def submit(self, name: str, request: Request, visitor: str = "", address: str = "") -> None:
        """Queues a report, unless it is there or under way.

        Raises:
            VizformerError: the queue or the disk is full.
        """

        def write(folder: Path) -> int:
            folder.mkdir(exist_ok=True)
            request.write(folder)
            return len(request.texts)

        self.add(name, write, None, visitor, address)

    def look(self, name: str, watcher: str | None = "") -> State | None:
        """The state of a report; None if nobody has asked for it.  See `JobQueue.standing`."""
        if (found := self.standing(name, watcher)) is None:
            return None
        done = 0
        with suppress(OSError, ValueError):
            done = int((self.root / name / PROGRESS).read_text(encoding="utf-8"))
        return State(_PHASES.get(found.ending or found.phase, "failed"), found.ahead, done, found.content)

    def file(self, name: str) -> Path | None:
        job = self._jobs.get(name)
        found = None if job is None or job.ending != "over" else job.folder / REPORT
        return found if found is not None and found.is_file() else None

    def ending(self, job: Job[int], status: int, cut_off: bool) -> str:
        if (job.folder / REPORT).is_file():
            return "over"
        return "stopped" if status == 0 or cut_off else "unreadable" if status == UNREADABLE else "failed"


_PHASES: dict[str, Phase] = {phase: phase for phase in get_args(Phase)} | {"abandoned": "stopped"}


reports = session_folders.OfTheServer(lambda: Reports(session_folders.new_folder()), Reports.close)
"""The head reports of this server."""


def name_of(model: ModelRef, corpus: Corpus) -> str:
    """The name of the report on a model (with the stamp of its files) and texts."""
    said = f"{model} {model.stamp} {corpus.key}"
    return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()


@cached
def bundled(model: ModelRef, corpus: Corpus) -> HeadReport | None:
    """The report of a bundled model as it is, on these texts, that comes with VizFormer; None where none does."""
    if model.source != "bundled" or model.base != replace(model, stamp=""):
        return None
    path = path_of_bundled_report(sources.folder(model), corpus)
    return read_report(path) if path.is_file() else None


@cached
def report(name: str) -> HeadReport:
    """A finished report; a VizformerError where it is not there any more."""
    prepare_torch()
    path = reports().file(name)
    with suppress(OSError):  # it may go while it is opened
        if path is not None:
            return read_report(path)
    raise VizformerError("This report is no longer on the server. Measure again.")
