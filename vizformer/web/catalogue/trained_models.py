"""Models that were trained on this server, at the end or after a step of their training: whoever has a name (from a link)
may open one while the server keeps it.
"""

from pathlib import Path

from vizformer.errors import CheckpointError
from vizformer.web.catalogue import training_steps, trainings
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words.i18n import _


def listed() -> tuple[ModelRef, ...]:
    """The finished trainings of this session."""
    found = (ModelRef("training", name) for name in trainings.claimed())
    return tuple(model for model in found if locate(model) is not None)


def steps(model: ModelRef) -> tuple[ModelRef, ...]:
    """The snapshots of a training and its final model; empty for another model."""
    kept = training_steps.steps(model.name) if model.source == "training" else ()
    return tuple(ModelRef("training", model.name, str(step)) for step in kept)


def locate(model: ModelRef) -> Path | None:
    """The folder of a finished training, or of what it had come to after a step."""
    return (
        trainings.folder(model.name) if not model.revision else training_steps.folder(model.name, int(model.revision))
    )


def title(model: ModelRef) -> str:
    """The name of a model in lists: its task, the end of its name, and the step."""
    title = trainings.title(model.name)
    return title if not model.revision else _("{title}, step {step}", title=title, step=model.revision)


def absent(model: ModelRef) -> CheckpointError:
    """Why there is no such model."""
    return CheckpointError("This training is no longer on the server. Train again, it will come out the same.")


def stamp(path: Path) -> str:
    """None: a name says what was trained, and the same training gives the same weights."""
    return ""
