"""Models of code that the server was started with (`vizformer --model my_model.py:load`): they stay as they were loaded.

A link names such a model and never its code: where the server has none of that name, it says so.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from vizformer.checkpoints import own_code
from vizformer.errors import CheckpointError
from vizformer.web.link.model_ref import ModelRef

if TYPE_CHECKING:
    from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint


def listed() -> tuple[ModelRef, ...]:
    return tuple(ModelRef("code", name) for name in own_code.named())


def code(model: ModelRef) -> own_code.Code:
    """The code of a model.

    Raises:
        CheckpointError: this server was started without it.
    """
    if (found := own_code.named().get(model.name)) is None:
        raise absent(model)
    return found


def checkpoint(model: ModelRef) -> "RecordedCheckpoint":
    """The model itself, loaded once a process.

    Raises:
        CheckpointError: this server was started without it; its code goes wrong.
    """
    return own_code.checkpoint(code(model))


def locate(model: ModelRef) -> Path | None:
    """The file of its code; of a dotted module its name."""
    found = own_code.named().get(model.name)
    return None if found is None else Path(found.place)


def title(model: ModelRef) -> str:
    return model.name


def absent(model: ModelRef) -> CheckpointError:
    return CheckpointError(
        "{name} is a model of somebody's own code, and this server was started without it; a link carries no code. Start "
        "VizFormer with that file (vizformer --model my_model.py:load), or choose another model.",
        name=model.name,
    )


def stamp(path: Path) -> str:
    """A constant stamp, since a file that changes after the start is not loaded again."""
    return "started"
