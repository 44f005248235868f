"""Weights in several files because several machines computed with them at once: Meta's consolidated.00.pth, .01.pth, ...

Each file has a slice of every matrix, and all of every norm:

    y = x W^T   W_Q, W_K, W_V, the first two of the network, the head: rows     W_O and the last of the network: columns

Source: Shoeybi et al. 2019, "Megatron-LM", section 3; github.com/meta-llama/llama (model.py).
"""

import re
from collections.abc import Collection, Sequence
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import listed, shown
from vizformer.checkpoints.files.weights import Stored, Weights
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
            problems.append(N_("{name} is not in all of them, or not alike", name=shown(name)))
        elif (axis := _axis(name, first, len(files))) is not None:
            shape = tuple(n * len(files) if place == axis else n for place, n in enumerate(pieces[0].shape))
            tensors[name] = Stored(first.where, shape, pieces[0].dtype, partial(_read, pieces, axis), copied=True)
        elif len(pieces[0].shape) > 1 or any(not torch.equal(piece.read(), pieces[0].read()) for piece in pieces[1:]):
            problems.append(N_("how {name} was cut is not known", name=shown(name)))
        else:
            tensors[name] = pieces[0]
    if problems:
        raise CheckpointError(
            "{files} do not go together as slices of one model: {problems}. Copy all of them again, or open what "
            "`transformers` makes of them.",
            files=", ".join(shown(one.where) for one in files[:6]),
            problems=listed(problems),
        )
    note = N_("{n} files have a slice of every matrix each: they are put together", n=len(files))
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
