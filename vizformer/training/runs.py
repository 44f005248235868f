"""A live training on disk: its plan, losses, kept weights and, when it is over, the model in our own format.

One process writes (`vizformer.training.worker`), others read while it does.  The folder holds

    plan.json            what is trained
    progress.jsonl       losses, snapshots and the ending, a line each
    000123.safetensors   the weights after 123 updates
    config.json, model.safetensors, tokenizer.json     the last weights, for `vizformer.load`
    watched, stop        see `vizformer.jobs.worker`
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

from vizformer.checkpoints import Checkpoint, save
from vizformer.checkpoints.files.weights import write_weights
from vizformer.jobs.queue import Job, JobQueue
from vizformer.jobs.worker import FULL, WATCHED, FullDiskError, is_full
from vizformer.model.initialisation import without_memory
from vizformer.training.live import Plan, Snapshot
from vizformer.training.tasks import Marks

PLAN, PROGRESS, MODEL = "plan.json", "progress.jsonl", "model.safetensors"
LARGEST_HALF = 60_000.0  # float16 ends at 65,504


@dataclass(frozen=True)
class Kept:
    """A snapshot whose weights are kept."""

    step: int
    marks: Marks


@dataclass(frozen=True)
class Progress:
    """The progress of a training so far."""

    steps: NDArray[np.int32]
    losses: NDArray[np.float32]
    snapshots: tuple[Kept, ...]
    # "done", "stopped", "diverged", "time", "abandoned", "full" (the disk) or "failed"; empty while it goes on
    ending: str
    seconds: float


class Run:
    """A training in its folder: `create` begins one, the worker writes to it, and pages read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = Plan.from_json((folder / PLAN).read_text(encoding="utf-8"))

    @classmethod
    def create(cls, folder: Path, plan: Plan) -> "Run":
        folder.mkdir(parents=True)
        (folder / PLAN).write_text(plan.to_json(), encoding="utf-8")
        (folder / WATCHED).touch()
        return cls(folder)

    # Written by the worker -----------------------------------------------------------------------------------

    def keep(self, snapshot: Snapshot, seconds: float) -> None:
        """Writes the weights, and then the line that announces them."""
        state = {name: tensor.detach() for name, tensor in snapshot.model.state_dict().items()}
        largest = max(float(tensor.abs().max()) for tensor in state.values())
        dtype = torch.float16 if largest < LARGEST_HALF else torch.float32
        path = self._weights(snapshot.step)
        new = path.with_suffix(".new")
        with _whole(new):
            write_weights({name: tensor.to(dtype).contiguous() for name, tensor in state.items()}, new)
            new.replace(path)
        self.write({"kept": snapshot.step, "marks": snapshot.marks._asdict(), "seconds": seconds})

    def write(self, line: Mapping[str, Any]) -> None:
        with (self.folder / PROGRESS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def finish(self, ending: str, seconds: float) -> None:
        """Writes the last kept weights as a model in our own format, and records how the training ended."""
        kept = self.progress().snapshots
        if kept:
            with _whole(self.folder / MODEL):
                save(self.checkpoint(len(kept) - 1), self.folder, torch.float32)
        self.write({"ending": ending, "seconds": seconds})

    # Read by everyone ----------------------------------------------------------------------------------------

    def progress(self) -> Progress:
        lines: list[dict[str, Any]] = []
        if (self.folder / PROGRESS).is_file():
            for text in (self.folder / PROGRESS).read_text(encoding="utf-8").splitlines(keepends=True):
                if text.endswith("\n"):  # the last line may be half written
                    with suppress(ValueError):  # and stays so if the disk was full
                        lines.append(json.loads(text))
        losses = [line for line in lines if "loss" in line]
        return Progress(
            np.array([line["step"] for line in losses], dtype=np.int32),
            np.array([line["loss"] for line in losses], dtype=np.float32),
            tuple(Kept(line["kept"], Marks(**line["marks"])) for line in lines if "kept" in line),
            next((line["ending"] for line in lines if "ending" in line), ""),
            float(lines[-1]["seconds"]) if lines else 0.0,
        )

    def checkpoint(self, index: int) -> Checkpoint:
        """The model of snapshot `index` with the task's tokenizer."""
        return self.after(self.progress().snapshots[index].step)

    def after(self, step: int) -> Checkpoint:
        """The model after `step` updates, with the task's tokenizer.

        Raises:
            ValueError: no weights are kept of this step.
        """
        if not self._weights(step).is_file():
            raise ValueError(f"no weights are kept after step {step}")
        with without_memory():
            model = self.plan.build()
        weights = {name: tensor.float() for name, tensor in load_file(self._weights(step)).items()}
        model.load_state_dict(weights, assign=True)
        model.materialise_buffers()
        return Checkpoint(self.folder.name, model, self.plan.on.tokenizer(self.plan.architecture))

    def save_step(self, step: int, folder: Path) -> None:
        """Writes the model after `step` updates in our own format.

        Raises:
            ValueError: no weights are kept of this step.
        """
        save(self.after(step), folder, torch.float32)

    def _weights(self, step: int) -> Path:
        return self.folder / f"{step:06d}.safetensors"


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """`path` is written completely inside the block, or removed again."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        with suppress(OSError):
            path.unlink()
        raise FullDiskError(str(error)) if is_full(error) else OSError(str(error)) from error


# The queue of the trainings on a server: running, waiting and finished ones.
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
