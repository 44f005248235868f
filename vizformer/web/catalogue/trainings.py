"""Trainings of this server's visitors: the queue that runs them, what pages show of them, and their models by name.

A trained model is called train-..., after what it was made from.  Whoever has its name (from a link) may open it while
the server keeps it; it is listed only in the session that trained it (`training_steps`).
"""

import io
import json
import os
import re
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from vizformer.assets import asset
from vizformer.errors import VizformerError
from vizformer.messages import N_, Message
from vizformer.serving import one_of
from vizformer.web.catalogue import session_folders
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import TRAINING
from vizformer.web.turns import visitor
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, translate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vizformer.analysis import HeadScores
    from vizformer.analysis.training.small_trainings import TaskAnswer
    from vizformer.checkpoints import Checkpoint
    from vizformer.training.live import Plan
    from vizformer.training.runs import Run, State, TrainingQueue

TASKS: dict[str, Message] = {
    "copy": N_("Copy"),
    "reverse": N_("Reverse"),
    "sort": N_("Sort"),
    "addition": N_("Addition"),
    "repeat": N_("Repeat what came before"),
}
_FILES = ("config.json", "model.safetensors", "tokenizer.json")


def _make() -> "TrainingQueue":
    prepare_torch()
    from vizformer.training.runs import TrainingQueue

    return TrainingQueue(root(), max(1, (os.cpu_count() or 1) // (2 * one_of())))


root = session_folders.OfTheServer(session_folders.new_folder)  # where the trainings are
queue = session_folders.OfTheServer(_make, lambda made: made.close())


def who() -> str:
    """The id of this session as a reader of trainings."""
    return session_folders.current()


def submit(plan: "Plan") -> str:
    """Queues a training of this session's visitor; see `TrainingQueue.submit`."""
    mine = visitor()
    return queue().submit(plan, who(), mine.name, mine.address)


# --- trained models by name -------------------------------------------------------------------------------------------


def folder(name: str) -> Path | None:
    """The folder of a trained model in our own format; None where there is none (yet, or any more)."""
    found = place(name)
    return found if found is not None and all((found / file).is_file() for file in _FILES) else None


def place(name: str) -> Path | None:
    """The folder of the training with this name, running or over; None for what cannot be such a name."""
    if not re.fullmatch(TRAINING, name):
        return None
    return example() if name == example().name else root() / name


def example() -> Path:
    """The bundled training, which is over: to be looked at before one's own (`recipes.example_training`)."""
    (found,) = asset("trainings").glob("train-*")
    return found


def title(name: str) -> str:
    """The name of a trained model in lists: its task and the end of its name."""
    found = place(name)
    if found is None or not (found / "plan.json").is_file():
        return name
    task = json.loads((found / "plan.json").read_text(encoding="utf-8"))["task"]
    return f"{translate(TASKS[task])} · {name.removeprefix('train-')[:4]}"


def archive(name: str) -> bytes:
    """The model's folder as a zip file: unpacked, `vizformer.load` opens it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        if (found := folder(name)) is not None:
            for part in (*_FILES, "plan.json"):
                file.write(found / part, f"{name}/{part}")
    return packed.getvalue()


# --- what a page shows of a training ----------------------------------------------------------------------------------


def look_at(name: str) -> "State | None":
    """The state of a training.  A training goes on only as long as somebody asks for its state."""
    found = queue().look(name, who())
    if found is None and name == example().name:
        from vizformer.training.runs import State

        return State("over", 0, _example().progress())
    return found


def title_of(plan: "Plan") -> str:
    return translate(TASKS[plan.task])


def describe(plan: "Plan") -> str:
    """The model in one line, and what its training does without."""
    from vizformer.model import count_parameters

    parts = [
        *_settings(plan).values(),
        *left_out(plan),
        _("seed {n}", n=plan.seed),
        _("{n} trained numbers", n=f"{count_parameters(plan.config):,}"),
    ]
    return " · ".join(parts)


def left_out(plan: "Plan") -> list[str]:
    """The parts of the usual recipe that a training leaves out, in words."""
    return [
        said
        for said, missing in (
            (_("no warm-up"), not plan.warmup),
            (_("embeddings without √d_model"), not plan.scaled_embedding),
            (_("no residual connections"), not plan.residual),
        )
        if missing
    ]


def difference(plan: "Plan", other: "Plan") -> str:
    """The settings in which a training differs from `plan`, in words."""
    names = {
        **_settings(other),
        "steps": _("steps: {n}", n=other.steps),
        "warmup": _("warm-up {share}", share=f"{other.warmup:.0%}") if other.warmup else _("no warm-up"),
        "scaled_embedding": _("embeddings times √d_model")
        if other.scaled_embedding
        else _("embeddings without √d_model"),
        "residual": _("residual connections") if other.residual else _("no residual connections"),
        "seed": _("seed {n}", n=other.seed),
    }
    return " · ".join(said for name, said in names.items() if getattr(plan, name) != getattr(other, name))


def _settings(plan: "Plan") -> dict[str, str]:
    """Field of the plan -> its value in words."""
    return {
        "architecture": _("encoder and decoder") if plan.architecture == "encoder-decoder" else _("decoder only"),
        "n_layers": _("{n} layers", n=plan.n_layers),
        "n_heads": _("{n} heads", n=plan.n_heads),
        "d_model": _("width {n}", n=plan.d_model),
        "positions": labels.positions(plan.positions),
        "norm_order": _("norm before") if plan.norm_order == "pre" else _("norm after"),
        "learning_rate": _("learning rate {rate}", rate=f"{plan.learning_rate:g}"),
    }


def beside(name: str, plan: "Plan") -> "Run | None":
    """The training of this name, where its losses can be compared with those of `plan`: it has the same task.

    To look at its curves is not to watch it: that does not keep it going.
    """
    found = queue().run(name) or (_example() if name == example().name else None)
    return found if found is not None and found.plan.task == plan.task and found.plan != plan else None


def run(name: str) -> "Run":
    found = queue().run(name)
    if found is None and name == example().name:
        return _example()
    if found is None:
        raise VizformerError("This training is no longer on the server. Train again, it will come out the same.")
    return found


@lru_cache(maxsize=1)
def _example() -> "Run":
    from vizformer.training.runs import Run

    return Run(example())


@cached
def checkpoint(name: str, index: int) -> "Checkpoint":
    """The weights of snapshot `index`."""
    return run(name).checkpoint(index)


@cached
def look(name: str, index: int, text: str) -> "TaskAnswer":
    """The answer of a snapshot's model to a question."""
    from vizformer.analysis.training.small_trainings import task_answer

    return task_answer(checkpoint(name, index), run(name).plan, text)


@cached
def positions(name: str, index: int) -> "NDArray[np.float32] | None":
    """The vectors that are added at the positions that occur in training; None where none are."""
    from vizformer.analysis.training.small_trainings import position_rows

    return position_rows(checkpoint(name, index), run(name).plan)


@cached
def scores(name: str, index: int) -> "HeadScores":
    """How much each head is a previous-token head or an induction head, on random tokens that come twice."""
    from vizformer.analysis.training.small_trainings import repetition_scores

    return repetition_scores(checkpoint(name, index), run(name).plan)
