"""The models that come with VizFormer."""

from pathlib import Path

from vizformer.assets import asset, bundled_models
from vizformer.errors import CheckpointError
from vizformer.web.link.model_ref import ModelRef


def listed() -> tuple[ModelRef, ...]:
    return tuple(ModelRef("bundled", name) for name in bundled_models())


def locate(model: ModelRef) -> Path | None:
    return asset("models", model.name) if model.name in bundled_models() else None


def title(model: ModelRef) -> str:
    return model.name


def absent(model: ModelRef) -> CheckpointError:
    return CheckpointError("There is no model called {name} here. Choose another one.", name=model.name)


def stamp(path: Path) -> str:
    return ""  # they change with the program
