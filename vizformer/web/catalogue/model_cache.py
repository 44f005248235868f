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
from vizformer.web.link import edits, state

if TYPE_CHECKING:
    from torch import Tensor

    from vizformer.analysis import HeadMaps, Kind, Prediction
    from vizformer.checkpoints import Opened, Report
    from vizformer.checkpoints.agreement import Agreement
    from vizformer.checkpoints.tensors.memory import Need
    from vizformer.components.payload import HeadsPayload
    from vizformer.explain import Step
    from vizformer.explain.examples import PaperAttention
    from vizformer.model import Trace

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


def _is_settled(model: str, *_: object) -> bool:
    """Whether a model is known by its files as they are: what is refused then stays refused."""
    found = model_reference.parse(model)
    return found is not None and bool(found.stamp)


def report(model: str) -> "Report":
    """How a model's files were read; every number of them is looked at once."""
    return _report(precision.files(model))


@cached(refusals=_is_settled)
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


@cached(refusals=_is_settled)
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


@cached(cache=_MODELS, refusals=_is_settled, weigh=_weight)
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


@cached(refusals=_is_settled)
def trace(model: str, text: str, target: str, edited: str = "") -> "Trace":
    """One forward with everything kept; `edited` are numbers set by hand (`vizformer.web.link.edits`)."""
    return checkpoint(model).trace(text, target=target or None, edit=edits.edit(edited))


@cached
def heads(
    model: str, text: str, target: str, edited: str, kind: "Kind", chosen: tuple[int, int] | None
) -> "HeadsPayload":
    """All heads of one kind, packed for the browser; `chosen` matters only where they do not all fit (else None)."""
    from vizformer.analysis import head_maps
    from vizformer.components.attention import pack_heads

    maps: HeadMaps = head_maps(trace(model, text, target, edited), kind)
    return pack_heads(maps.weights, maps.scores, maps.reasons, chosen=chosen or (0, 0))


@cached
def lines(model: str, text: str, target: str, edited: str, kind: "Kind", layer: int | None) -> "HeadsPayload":
    """The weights of all heads of one kind; those of one layer's heads where they do not all fit (else None)."""
    from vizformer.analysis import head_maps
    from vizformer.components.lines import pack_heads, pack_layer

    maps: HeadMaps = head_maps(trace(model, text, target, edited), kind)
    if layer is None:
        return pack_heads(maps.weights, None, maps.reasons)
    return pack_layer(maps.weights[layer], maps.reasons[layer], layer=layer, layers=len(maps.weights))


@cached
def predictions(model: str, text: str, target: str, edited: str, position: int) -> "tuple[Prediction, ...]":
    from vizformer.analysis import next_tokens

    return next_tokens(checkpoint(model), trace(model, text, target, edited), position)


@cached
def steps(model: str, text: str, target: str, edited: str, site: str, head: int, query: int) -> "list[Step]":
    from vizformer.explain import attention_steps, light

    return light(attention_steps(checkpoint(model), trace(model, text, target, edited), site, head, query))


@cached
def layer(model: str, text: str, target: str, edited: str, stack: str, number: int) -> "tuple[list[Step], list[str]]":
    """The steps of a layer and, after the last one, of the prediction, with the texts of the leading candidates."""
    from vizformer.explain import candidates, layer_steps, light, output_steps

    loaded, traced = checkpoint(model), trace(model, text, target, edited)
    steps = layer_steps(loaded, traced, f"{stack}.{number}")
    final = "decoder" if loaded.model.decoder is not None else "encoder"
    config = loaded.model.config
    n_layers = config.n_decoder_layers if final == "decoder" else config.n_encoder_layers
    if (stack, number) != (final, n_layers - 1) or not predicts(model):
        return light(steps), []
    ids = [token.id for token in traced.tokens.get(final, ())]
    position = ids.index(config.mask_id) if config.mask_id in ids else traced.logits.shape[0] - 1
    best = loaded.tokenizer.tokens(candidates(loaded, traced, position))
    return light([*steps, *output_steps(loaded, traced, position)]), [token.text for token in best]


@cached
def toy_tensors(stack: str) -> "dict[str, Tensor]":
    """What can be set by hand in a layer of the toy: input, weights, and q, k, v [head, position, component]."""
    from vizformer.explain import toy, toy_tensors

    source = "x" if stack == "encoder" else "target"
    stored = {
        name: tensor
        for name, tensor in toy_tensors().items()
        if name == source or (name.startswith(f"{stack}.") and name != f"{stack}.output")
    }
    trace, site = toy().trace, f"{stack}.0.self"
    vectors = {f"{site}.{name}": getattr(trace[site], name) for name in ("q", "k", "v")}
    return {source: stored.pop(source), **vectors, **dict(sorted(stored.items()))}


@cached
def toy_layer(stack: str, edited: str = "") -> "list[Step]":
    """The toy's layer; items of `edited` that name its stored tensors change them, the others its forward."""
    from vizformer.explain import layer_steps, toy

    run = toy(edits.edit(edited))
    return layer_steps(run.checkpoint, run.trace, f"{stack}.0")


@cached
def first_layer_map(
    model: str, text: str, target: str, edited: str, stack: str, identity: bool, scaled: bool
) -> "PaperAttention":
    """What the first layer's input gives with identity matrices, or with head 0's learned ones."""
    from vizformer.explain import examples

    traced = trace(model, text, target, edited)
    if identity:
        x = traced.residual(f"{stack}.0.pre").double().cpu().numpy()
        return examples.attention_without_weights(x, scaled=scaled)
    record = traced[f"{stack}.0.self"]
    q, k, v = (t[0].double().cpu().numpy() for t in (record.q, record.k, record.v))
    return examples.paper_attention(q, k, v, scaled=scaled)
