"""The numbers of a GGUF file's tensors, and how far quantised ones may be from those that they were made of.

Q8_0: 32 numbers share a scale d = max |x| / 127, kept in float16, and each is a whole number q from -127 to 127:

    x ≈ d q        |x - d q| <= d/2 + 127 |d - float16(d)|

Q4_0: 32 numbers share d = x* / -8, where x* is the one that is largest in size, and each is q from 0 to 15:

    x ≈ d (q - 8)  |x - d (q - 8)| <= d + 8 |d - float16(d)|, a whole step at the end that is not x*'s; half of one elsewhere

float16 rounds d by 2^-11 of it at most, and by 2^-25 where it is below 2^-14 (subnormal), which may be many steps: with the
smallest scale d' that is not 0, the error is at most so many steps:

    Q8_0  0.5 + 127 max(2^-11, 2^-25 / d')        Q4_0  1 + 8 max(2^-11, 2^-25 / d')

Where the scale has become 0, all 32 numbers are 0, and were at most 127 (Q4_0: 8) times 2^-25.

A step is d.  What else there is (Q6_K, which files called Q4_0 hold beside it, ...) the package `gguf` reads, where it is
installed.  Source: ggml-quants.c (quantize_row_q8_0_ref, quantize_row_q4_0_ref).
"""

import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import damaged, shown
from vizformer.checkpoints.gguf.header import Place
from vizformer.errors import CheckpointError

PLAIN = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
READ = (*PLAIN, "Q8_0", "Q4_0")
OFF = {"Q8_0": (0.5, 127), "Q4_0": (1.0, 8)}  # steps at most with an exact scale, and the largest |q|
_NORMAL, _SUBNORMAL = 2.0**-11, 2.0**-25  # how far float16 may be off: of a number, and of the smallest ones at all
_AT_ONCE = 2**20  # blocks whose scales are looked at together


@dataclass(frozen=True)
class Steps:
    """How fine the numbers of tensors are that are quantised in one way."""

    tensors: int
    largest: float
    usual: float  # the root of the mean square of all steps
    smallest: float = math.inf  # the smallest step that is not 0; infinite where there is none

    @property
    def error(self) -> float:
        """The error to be expected (root mean square), where numbers lie anywhere between two steps: step / √12."""
        return self.usual / math.sqrt(12)


def most_off(kind: str, smallest: float = math.inf) -> float:
    """How many steps a number may be off; `smallest` is the smallest scale that is not 0, normal where it is not given."""
    exact, largest = OFF[kind]
    return exact + largest * max(_NORMAL, _SUBNORMAL / smallest)


def content(path: Path, name: str) -> Tensor:
    """The bytes of the file, mapped: what nobody reads is not loaded."""
    try:
        return torch.from_file(str(path), shared=False, size=path.stat().st_size, dtype=torch.uint8)
    except (OSError, RuntimeError) as error:
        raise damaged(name, error) from error


def tensor(whole: Tensor, place: Place) -> Tensor:
    """The numbers of a tensor; plain ones stay mapped to the file, quantised ones become float32."""
    stored = whole[place.start : place.start + place.n_bytes]
    kind = place.kind.name
    if kind in PLAIN:
        return stored.view(PLAIN[kind]).reshape(place.shape)
    blocks = stored.reshape(-1, place.kind.size)  # [blocks, 2 + n]
    if kind == "Q8_0":
        numbers = blocks[:, 2:].view(torch.int8).float()
    elif kind == "Q4_0":
        packed = blocks[:, 2:]  # two numbers a byte: the first half of the block below, the second above
        numbers = torch.cat([packed & 15, packed >> 4], dim=1).float() - 8
    else:
        return _by_package(blocks, place)
    return (_scales(blocks)[:, None] * numbers).reshape(place.shape)


def is_read(place: Place) -> bool:
    return place.kind.name in READ or importlib.util.find_spec("gguf") is not None


def _by_package(blocks: Tensor, place: Place) -> Tensor:
    if not is_read(place):
        raise not_read(place)
    import gguf

    kind = gguf.GGMLQuantizationType[place.kind.name]
    return torch.from_numpy(gguf.dequantize(blocks.numpy(), kind).astype("float32", copy=False)).reshape(place.shape)


def _scales(blocks: Tensor) -> Tensor:
    return blocks[:, :2].contiguous().view(torch.float16)[:, 0].float()  # [blocks]


def not_read(place: Place) -> CheckpointError:
    return CheckpointError(
        "{name} is quantised as {kind}; read here are {read}. With the package gguf (pip install vizformer[gguf]) the "
        "other kinds are read too; or open the original model, the folder with config.json and model.safetensors.",
        name=shown(place.name),
        kind=place.kind.name,
        read=", ".join(READ),
    )


def steps(whole: Tensor, places: list[Place]) -> Steps:
    """The steps of tensors that are quantised in one way; reads the scale of every block."""
    largest, smallest, squares, n = 0.0, math.inf, 0.0, 0
    for place in places:
        blocks = whole[place.start : place.start + place.n_bytes].reshape(-1, place.kind.size)
        for part in range(0, len(blocks), _AT_ONCE):
            found = _scales(blocks[part : part + _AT_ONCE]).double().abs()
            largest = max(largest, float(found.max()))
            smallest = min(smallest, float(found.masked_fill(found == 0, math.inf).min()))
            squares += float(found.square().sum())
            n += len(found)
    return Steps(len(places), largest, math.sqrt(squares / max(n, 1)), smallest)
