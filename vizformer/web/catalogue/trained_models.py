"""Models that were trained on this server: whoever has a name (from a link) may open one while the server keeps it."""

from pathlib import Path

from vizformer.errors import CheckpointError
from vizformer.messages import N_
from vizformer.web.catalogue import trainings
from vizformer.web.link.model_ref import ModelRef


def listed() -> tuple[ModelRef, ...]:
    """Those of this session that are finished."""
    found = (ModelRef("training", name) for name in trainings.claimed())
    return tuple(model for model in found if locate(model) is not None)


def locate(model: ModelRef) -> Path | None:
    """The folder of a finished training."""
    return trainings.folder(model.name)


def title(model: ModelRef) -> str:
    """What a model is called in lists: its task and the end of its name."""
    return trainings.title(model.name)


def absent(model: ModelRef) -> CheckpointError:
    """Why there is no such model."""
    return CheckpointError(N_("This training is no longer on the server. Train again, it will come out the same."))


def stamp(path: Path) -> str:
    """None: a name says what was trained, and the same training gives the same weights."""
    return ""
