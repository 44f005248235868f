"""Where models come from: one `Source` per kind of reference, all with the same methods."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from vizformer.context_value import held
from vizformer.errors import CheckpointError, VizformerError
from vizformer.messages import N_
from vizformer.web.catalogue import bundled_models, hub, local_paths, named_code, server_folder, training_steps, uploads
from vizformer.web.link import model_ref
from vizformer.web.link.model_ref import ModelRef


class Source(Protocol):
    def listed(self) -> Iterable[ModelRef]:
        """The models that this session may choose without having opened them before."""

    def locate(self, model: ModelRef) -> Path | None:
        """The folder or file of a model, if it is there and this session may open it.  Asks no network."""

    def title(self, model: ModelRef) -> str:
        """The name of a model in lists."""

    def absent(self, model: ModelRef) -> CheckpointError:
        """Why there is no such model, and the way out."""

    def stamp(self, path: Path) -> str:
        """Says which version of the files lies there; empty where they never change."""


SOURCES: Mapping[model_ref.Source, Source] = {
    "bundled": bundled_models,
    "models": server_folder,
    "hub": hub,
    "upload": uploads,
    "path": local_paths,
    "code": named_code,
    "training": training_steps,
}


_LENT: ContextVar[Mapping[str, Path]] = ContextVar("lent", default=MappingProxyType({}))


def locate(model: ModelRef) -> Path | None:
    """The folder or file of a model, if it is there and this session may open it, or this thread was lent it."""
    lent = _LENT.get().get(_bare(model))
    return lent if lent is not None and lent.exists() else SOURCES[model.source].locate(model)


def may_open(call: Iterable[object]) -> Mapping[str, Path]:
    """Where the models among some arguments, and those of its subjects, lie that this session may open."""
    models = (getattr(value, "model", value) for value in call)
    return {_bare(model): path for model in models if isinstance(model, ModelRef) and (path := locate(model))}


def lent(found: Mapping[str, Path]) -> AbstractContextManager[None]:
    """Lets work in a thread of its own, which has no session, open what the session may open that began it."""
    return held(_LENT, found)


def _bare(model: ModelRef) -> str:
    return f"{model.source}/{model.name}@{model.revision}"


def is_there(model: ModelRef) -> bool:
    """Whether a model is there and this session may open it."""
    return locate(model) is not None


def title(model: ModelRef) -> str:
    """The name of a model in lists: that of its folder, its file or on its hub."""
    return SOURCES[model.source].title(model)


def stamped(model: ModelRef) -> ModelRef:
    """The reference with the stamp of its files as they are now, by which caches know it; as it is if it is not there.

    Another model that takes the place of this one has another stamp, and is never mistaken for it.
    """
    path = locate(model) if model.is_from_elsewhere and not model.stamp else None
    return model if path is None else replace(model, stamp=SOURCES[model.source].stamp(path))


def folder(model: ModelRef) -> Path:
    """Where a model lies.

    Raises:
        CheckpointError: it is not there (for this session), or its stamp says that its files were others.
    """
    path, source = locate(model), SOURCES[model.source]
    if path is None:
        error = source.absent(model)
    elif model.stamp and model.stamp != source.stamp(path):
        about = N_(
            "The files of {name} have changed since this page was drawn. Reload the page.", name=source.title(model)
        )
        error = CheckpointError(about)
    else:
        return path
    error.passing = True  # true of this session, or of this moment: not to be kept for others
    raise error


@contextmanager
def reading(model: ModelRef) -> Iterator[Path]:
    """`folder`, while the model's files are read.

    Files that changed or went away meanwhile: that is what is said, not what was found half-way.
    """
    path = folder(model)
    try:
        yield path
    except VizformerError:
        folder(model)  # raises if they are not those of the key
        raise
