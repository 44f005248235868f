"""A single file of weights as people save them: a state dict, alone or inside what else a training keeps.

`torch.save(model.state_dict())`, nanoGPT's {"model": ..., "model_args": ...}, Lightning's {"state_dict": ...,
"hyper_parameters": ...}, {"model_state_dict": ..., "epoch": ...}; names that a wrapper has put "module." (DataParallel) or
"_orig_mod." (torch.compile) before.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from vizformer.checkpoints.files import formats
from vizformer.checkpoints.files.untrusted_folder import Folder, listed, shown
from vizformer.checkpoints.files.weights import (
    Stored,
    Weights,
    is_plain_tensor,
    load_torch,
    not_only_tensors,
    open_safetensors,
    open_weights,
    stored_tensors,
)
from vizformer.errors import CheckpointError
from vizformer.messages import N_

SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
STANDARD = ("model.safetensors", "pytorch_model.bin")  # what `open_weights` finds, in shards too
_NOT_WEIGHTS = ("training_args", "optimizer", "scheduler", "rng_state", "scaler", "trainer_state")
_INSIDE = ("state_dict", "model_state_dict", "model_state", "model", "module", "net", "weights")
_SAYING = ("model_args", "model_config", "hyper_parameters", "hparams", "config", "cfg", "args")
_NOT_A_MODEL = re.compile(r"optim|sched|scaler|rng|ema|loss|metric|history|callbacks|loops|hyper", re.IGNORECASE)
_OF_ONE_MODEL = re.compile(r"encoder|decoder|generator|embed\w*|src_\w+|tgt_\w+|trg_\w+|head|classifier", re.IGNORECASE)
_WRAPPERS = ("module.", "_orig_mod.")
_DEEPEST = 3


class Content(NamedTuple):
    """The content of one file: tensors by name, and what lies beside them."""

    weights: Weights  # the tensors, by their names without wrappers
    said: dict[str, Mapping[str, Any]]  # what describes the model beside them: place -> field -> value


def candidates(names: list[str]) -> list[str]:
    return [n for n in names if n.lower().endswith(SUFFIXES) and not n.startswith((*_NOT_WEIGHTS, "."))]


def choose(folder: Folder) -> str | None:
    """The file of weights in a folder without a usable config.json; None where there is none."""
    for name in STANDARD:
        if folder.has(name) or folder.has(f"{name}.index.json"):
            return name
    found = candidates(folder.names()) or [n for n in formats.weights_in(folder) if not n.startswith(_NOT_WEIGHTS)]
    if len(found) > 1:
        raise CheckpointError(
            "{folder} holds several files of weights: {files}. Give the path of one of them.",
            folder=folder.name,
            files=", ".join(map(shown, found[:8])),
        )
    return found[0] if found else None


def open_file(folder: Folder, name: str) -> Content:
    """The tensors of one file, and what it says of the model beside them."""
    said: dict[str, Mapping[str, Any]] = {}
    if name in STANDARD and not folder.has(name):
        weights = open_weights(folder)
    else:
        path = folder.file(name)
        usual = "safetensors" if name.lower().endswith(".safetensors") else "torch"
        if (formats.writer_of(path) or usual) == "safetensors":
            tensors = open_safetensors(path, name)
        else:
            content, said = _unpacked(load_torch(path, name), name)
            tensors = stored_tensors(content, path, name)
        weights = Weights(tensors, {name: path.stat().st_size})
    return Content(replace(weights, tensors=_unwrapped(weights.tensors)), said)


def _unpacked(content: object, name: str, depth: int = 0) -> tuple[dict[str, Any], dict[str, Mapping[str, Any]]]:
    """The state dict in what a file holds, and the objects beside it that describe the model."""
    if not isinstance(content, dict):
        raise not_only_tensors(content, name)
    if content and all(is_plain_tensor(key, value) for key, value in content.items()):
        return content, {}
    said = {key: value for key, value in content.items() if key in _SAYING and isinstance(value, Mapping)}
    for key in _INSIDE if depth < _DEEPEST else ():
        inner = content.get(key)
        if isinstance(inner, dict) and inner:
            found, more = _unpacked(inner, name, depth + 1)
            return found, {**said, **more}
    states = {key: value for key, value in content.items() if _is_state_dict(key, value)}
    if len(states) == 1:
        return next(iter(states.values())), said
    parts = {key: value for key, value in states.items() if _OF_ONE_MODEL.fullmatch(key)}
    if {"encoder", "decoder"} <= parts.keys() == states.keys():  # saved module by module
        return {f"{key}.{inner}": tensor for key, part in parts.items() for inner, tensor in part.items()}, said
    raise not_only_tensors(content, name)


def _is_state_dict(key: object, value: object) -> bool:
    """Whether something under a name of its author's own is a state dict."""
    if not isinstance(key, str) or _NOT_A_MODEL.search(key) or not isinstance(value, dict) or not value:
        return False
    return all(is_plain_tensor(name, tensor) for name, tensor in value.items())


def _unwrapped(tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """Without the prefixes of wrappers, and without one that all names share (Lightning's "model.")."""
    names = {name: name for name in tensors}
    while names:
        first = next(iter(names)).split(".")
        shared = f"{first[0]}."
        if shared not in _WRAPPERS and (len(first) < 3 or first[1].isdigit()):
            break
        if not all(name.startswith(shared) for name in names):
            break
        if any(name.removeprefix(shared).split(".")[0].isdigit() for name in names):
            break  # a list of layers: its name says what they are
        names = {name.removeprefix(shared): stored for name, stored in names.items()}
    plain: dict[str, Stored] = {}
    twice = []
    for name, stored in names.items():
        inner = ".".join(part for part in name.split(".") if f"{part}." not in _WRAPPERS)
        if inner in plain:
            twice.append(N_("{name} occurs twice", name=shown(inner)))
        plain[inner] = tensors[stored]
    if twice:
        raise CheckpointError(
            "{file} holds tensors of the same name: {problems}. Save the state dict of one model.",
            file=next(iter(tensors.values())).file,
            problems=listed(list(twice)),
        )
    return plain
