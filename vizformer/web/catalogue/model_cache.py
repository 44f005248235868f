"""Loaded models and what was computed with them, cached for all sessions of the server.

Keys are the model's key (its name; for a model from elsewhere, `names.key`) and the texts, never an array.  What a
cached function returns is shared: read only.
torch is imported on the first call, so that the frame of the page is on screen before.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import streamlit as st

from vizformer.assets import asset, bundled_models
from vizformer.config import ModelConfig
from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_reference, precision, server_folder, trainings, uploads
from vizformer.web.catalogue.bounded_cache import Cache, cached
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link import state

if TYPE_CHECKING:
    from vizformer.checkpoints import Opened, Report
    from vizformer.checkpoints.agreement import Agreement
    from vizformer.checkpoints.tensors.memory import Need

_LOADED: "WeakValueDictionary[str, Opened]" = WeakValueDictionary()  # of all that the cache still holds
OPEN = 12  # models in memory at a time: the bundled ones, and the folders and trainings looked at last
_MODELS = Cache(most=OPEN)  # apart from the rest: weights must not push out every trace, nor traces the weights
_WORD = 256  # bytes, or so, that an entry of a vocabulary takes in the library


def shelf() -> tuple[str, ...]:
    """What can be chosen: the bundled models, the server's folders, what this session opened or put up or trained, and
    one that its link names.
    """
    kept = _opened()
    mine = [name for name in kept if not name.startswith("models/") and model_reference.is_there(name)]
    linked = state.view().model
    if (base := model_reference.base(linked)) is not None and not base.startswith("models/"):
        mine.append(base if base in kept else linked)  # there or not: the page says what is to be done
    own = [kept.get(name, name) for name in dict.fromkeys([*mine, *uploads.models()])]
    return (*bundled_models(), *server_folder.models(kept), *own, *trainings.models(linked))


def _opened() -> dict[str, str]:
    """What this session has opened, by name, and under which assumptions: they stay when it comes back."""
    opened: dict[str, str] = st.session_state.setdefault("vizformer.opened", {})
    model = state.view().model
    base = model_reference.base(model)
    if base is not None and (base.startswith("models/") or model_reference.is_there(base)):
        opened[base] = model
    return opened


def title(model: str) -> str:
    """What a model is called in a list."""
    return model_reference.title(model) if model_reference.is_name(model) else trainings.title(model)


def titles(shelf: tuple[str, ...]) -> dict[str, str]:
    """The titles of a list as this session knows them: for widgets, which ask again outside of a run.

    No two are alike: a widget could not tell them apart.
    """
    said: dict[str, str] = {}
    for model in shelf:
        name = title(model)
        said[model] = name if name not in said.values() else f"{name} · {model_reference.base(model) or model}"
    return said


def _source(model: str) -> Path | str:
    return model_reference.folder(model) or trainings.folder(model) or model


def options(model: str) -> ModelConfig:
    """The model's options, from its file: what a page asks before torch is loaded (but for models from elsewhere).

    Raises:
        VizformerError: a folder that does not open.
    """
    return _glance(model_reference.key(model)).config if model_reference.is_name(model) else _written_options(model)


@cached
def _written_options(model: str) -> ModelConfig:
    folder = trainings.folder(model) or asset("models", model)
    written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return ModelConfig.from_dict(written["model"])


def reads_target(model: str) -> bool:
    """Whether the model is an encoder-decoder; one that does not open is none."""
    try:
        return options(model).architecture == "encoder-decoder"
    except VizformerError:
        return False


def predicts(model: str) -> bool:
    """Whether the weights came with a head that predicts tokens; without one, logits mean nothing."""
    return not model_reference.is_name(model) or _glance(model_reference.key(model)).has_head


def that_open() -> tuple[str, ...]:
    """The models on the shelf whose options can be read, for pages that offer another model."""
    found = []
    for name in shelf():
        try:
            options(name)
        except VizformerError:
            continue  # the page Model report says why
        found.append(name)
    return tuple(found)


@cached
def agreement(model: str, text: str) -> "Agreement":
    """A folder of others' held against `transformers`, for one text."""
    from vizformer.checkpoints.agreement import agreement

    opened, source = checkpoint(model), _source(model)
    assert isinstance(source, Path)
    return agreement(opened, source, text)


def is_settled(model: str, *_: object) -> bool:
    """Whether a model is known by its files as they are: what is refused then stays refused."""
    found = model_reference.parse(model)
    return found is not None and bool(found.stamp)


def report(model: str) -> "Report":
    """How a model's files were read; every number of them is looked at once."""
    return _report(precision.files(model))


@cached(refusals=is_settled)
def _report(model: str) -> "Report":
    prepare_torch()
    from vizformer.checkpoints import inspect

    with _unchanged(model):
        return inspect(_source(model), **_answers(model))


def need(model: str) -> "Need":
    """What a model takes, in the precision that its name says.

    Raises:
        DoesNotFitError: more than there is.
        CheckpointError: no such precision, or no such device.
    """
    prepare_torch()
    from vizformer.checkpoints.tensors.memory import need, require
    from vizformer.checkpoints.tensors.placement import chosen_device, chosen_dtype

    found, device = _glance(model), chosen_device(precision.device())
    dtype = chosen_dtype(precision.dtype(model), (tensor.dtype for tensor in found.with_fate("used")))
    if model not in _LOADED:  # what is loaded has its memory already
        require(found, dtype, device)
    return need(found, dtype, device)


def _glance(model: str) -> "Report":
    """The report without a look at the numbers: milliseconds, also where the weights are large."""
    return _glance_at(precision.files(model))


@cached(refusals=is_settled)
def _glance_at(model: str) -> "Report":
    prepare_torch()
    from vizformer.checkpoints import inspect

    with _unchanged(model):
        return inspect(_source(model), numbers=False, **_answers(model))


def _weight(model: "Opened") -> int:
    """Bytes of an open model.  Weights that stay mapped to their file are the file's own pages: the system takes them
    back when it must.
    """
    from vizformer.checkpoints.tensors.memory import need

    readers = [reader for reader in (model.tokenizer, model.source_tokenizer) if reader is not None]
    vocabularies = _WORD * sum(reader.vocab_size for reader in readers)
    return need(model.report, model.dtype, model.device).copied + vocabularies


@cached(cache=_MODELS, refusals=is_settled, weigh=_weight)
def checkpoint(model: str) -> "Opened":
    prepare_torch()
    from vizformer.checkpoints import load

    with _unchanged(model):
        found = load(_source(model), dtype=precision.dtype(model), device=precision.device(), **_answers(model))
    _LOADED[model] = found
    return found


@contextmanager
def _unchanged(model: str) -> Iterator[None]:
    """Files that changed or went away while they were read: that is what is said, not what was found half-way."""
    try:
        yield
    except VizformerError:
        model_reference.folder(model)  # raises if they are not those of the key
        raise


def _answers(model: str) -> dict[str, Any]:
    """What bare weights are assumed to be."""
    return {name: value for name, value in model_reference.answers(model).items() if name != precision.DTYPE}
