"""A single file of weights as people save them: a state dict, alone or inside what else a training keeps.

`torch.save(model.state_dict())`, nanoGPT's {"model": ..., "model_args": ...}, Lightning's {"state_dict": ...,
"hyper_parameters": ...}, {"model_state_dict": ..., "stoi": ...}; names that a wrapper has put "module." (DataParallel) or
"_orig_mod." (torch.compile) before.

Weights that several machines computed with at once are in several files (Meta's consolidated.00.pth, .01.pth, ...), each
with a slice of every matrix, and all of every norm:

    y = x W^T   W_Q, W_K, W_V, the first two of the network, the head: rows     W_O and the last of the network: columns

Source: Shoeybi et al. 2019, "Megatron-LM", section 3; github.com/meta-llama/llama (model.py).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vizformer.checkpoints.files import formats
from vizformer.checkpoints.files.untrusted_folder import Folder, listed, shown
from vizformer.checkpoints.files.vocabularies_inside import Vocabulary, vocabularies
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
from vizformer.messages import N_, Message

_FILE = re.compile(r"consolidated\.(\d\d)\.pth")
_ROWS = re.compile(r"layers\.\d{1,4}\.(attention\.w[qkv]|feed_forward\.w[13])\.weight|output\.weight")
_COLUMNS = re.compile(r"layers\.\d{1,4}\.(attention\.wo|feed_forward\.w2)\.weight")
_TOKENS, _NORM = "tok_embeddings.weight", "norm.weight"


def parts(name: str, names: Collection[str]) -> list[str]:
    """The files of which `name` is one, from the first number to the last, also those that are missing; none if alone."""
    numbers = [int(found[1]) for one in (name, *names) if (found := _FILE.fullmatch(one))]
    alone = not _FILE.fullmatch(name) or max(numbers) == 0
    return [] if alone else [f"consolidated.{number:02}.pth" for number in range(max(numbers) + 1)]


def joined(files: Sequence[Weights]) -> Weights:
    """The tensors put together, each when it is read."""
    first = files[0]
    tensors: dict[str, Stored] = {}
    problems: list[Message] = []
    for name in dict.fromkeys(name for one in files for name in one.tensors):
        pieces = [one.tensors[name] for one in files if name in one.tensors]
        if len(pieces) < len(files) or len({(piece.shape, piece.dtype) for piece in pieces}) > 1:
            problems.append(N_("{name} is missing in some of them, or differs", name=shown(name)))
        elif (axis := _axis(name, first, len(files))) is not None:
            shape = tuple(n * len(files) if place == axis else n for place, n in enumerate(pieces[0].shape))
            tensors[name] = Stored(first.where, shape, pieces[0].dtype, partial(_read, pieces, axis), copied=True)
        elif len(pieces[0].shape) > 1 or any(not torch.equal(piece.read(), pieces[0].read()) for piece in pieces[1:]):
            problems.append(N_("VizFormer does not know how {name} was split", name=shown(name)))
        else:
            tensors[name] = pieces[0]
    if problems:
        raise CheckpointError(
            "{files} do not fit together as slices of one model: {problems}. Copy all of them again, or "
            "convert them with `transformers` and open the result.",
            files=", ".join(shown(one.where) for one in files[:6]),
            problems=listed(problems),
        )
    note = N_("{n} files each have a slice of every matrix: VizFormer joined the slices", n=len(files))
    sizes = {name: size for one in files for name, size in one.files.items()}
    return Weights(tensors, sizes, (note, *first.notes))


def _axis(name: str, first: Weights, n: int) -> int | None:
    """Along which axis a matrix was cut; None where that is not known, and of what was not.

    Of the embeddings columns (to LLaMA 2) or rows (LLaMA 3): a row of what was not cut in columns is as wide as a norm.
    """
    if len(first.tensors[name].shape) != 2:
        return None
    if name == _TOKENS and _NORM in first.tensors:
        width, columns = first.tensors[_NORM].shape[0], first.tensors[name].shape[1]
        return {width: 0, width // n: 1}.get(columns)
    return 1 if _COLUMNS.fullmatch(name) else 0 if _ROWS.fullmatch(name) else None


def _read(pieces: Sequence[Stored], axis: int) -> Tensor:
    return torch.cat([piece.read() for piece in pieces], axis)


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
    vocabularies: list[Vocabulary]


def candidates(names: list[str]) -> list[str]:
    return [n for n in names if n.lower().endswith(SUFFIXES) and not n.startswith((*_NOT_WEIGHTS, "."))]


def choose(folder: Folder) -> str | None:
    """The file of weights in a folder without a usable config.json; None where there is none."""
    for name in STANDARD:
        if folder.has(name) or folder.has(f"{name}.index.json"):
            return name
    found = candidates(folder.names()) or [n for n in formats.weights_in(folder) if not n.startswith(_NOT_WEIGHTS)]
    if found and set(parts(found[0], found)).issuperset(found):
        return found[0]
    if len(found) > 1:
        raise CheckpointError(
            "{folder} holds several files of weights: {files}. Give the path of one of them.",
            folder=folder.name,
            files=", ".join(map(shown, found[:8])),
        )
    return found[0] if found else None


def open_file(folder: Folder, name: str) -> Content:
    """The tensors of one file, or of all that have slices of them, and what it says of the model beside them."""
    if sliced := [_open(folder, part) for part in parts(name, folder.names())]:
        return sliced[0]._replace(weights=joined([part.weights for part in sliced]))
    return _open(folder, name)


def _open(folder: Folder, name: str) -> Content:
    said: dict[str, Mapping[str, Any]] = {}
    words: list[Vocabulary] = []
    if name in STANDARD and not folder.has(name):
        weights = open_weights(folder)
    else:
        path = folder.file(name)
        usual = "safetensors" if name.lower().endswith(".safetensors") else "torch"
        if (formats.writer_of(path) or usual) == "safetensors":
            tensors = open_safetensors(path, name)
        else:
            whole = load_torch(path, name)
            content, said = _unpacked(whole, name)
            words = [] if content is whole else vocabularies(whole)
            tensors = stored_tensors(content, path, name)
        weights = Weights(tensors, {name: path.stat().st_size})
    return Content(replace(weights, tensors=_unwrapped(weights.tensors)), said, words)


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
