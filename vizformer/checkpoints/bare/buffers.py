"""Tensors of a file that are no parameters: counters, the numbers of positions, masks."""

import math
import re

import torch

from vizformer.checkpoints.files.weights import FLOATS, Stored, Weights
from vizformer.messages import N_, Message

_LARGEST_MASK = 2**14  # positions
_WHOLE = ("int64", "int32", "int16", "int8", "uint8")
_NO_MASK = re.compile(r"(?:.*\.)?(?:masked_bias|IGNORE|mask_value|neg_inf|ignore)", re.IGNORECASE)


def plays_no_part(stored: Stored) -> Message | None:
    """Says why no forward computes with a tensor, by its numbers; None where it may be a parameter.

    One whole number is a counter (num_batches_tracked, n_averaged), 0, 1, ..., n - 1 are the numbers of positions.
    """
    n = math.prod(stored.shape)
    if stored.dtype not in _WHOLE or not 0 < n <= 2**20:
        return None
    if n == 1:
        return N_("a counter (one whole number), which the forward does not use")
    if bool(torch.equal(stored.read().reshape(-1).long(), torch.arange(n))):
        return N_("the numbers of the positions")
    return None


def masks(weights: Weights) -> dict[str, Message]:
    """Causal masks, and the numbers that stand for what they block, by name."""
    found: dict[str, Message] = {}
    for name, stored in weights.tensors.items():
        if _NO_MASK.fullmatch(name) and math.prod(stored.shape) == 1:
            found[name] = N_("the score of blocked positions")
        elif _is_causal(name, stored):
            found[name] = N_("the causal mask: it follows from the positions")
    return found


def _is_causal(name: str, stored: Stored) -> bool:
    """Whether a buffer says which places are seen: the lower triangle, or that the upper one is not."""
    *above, rows, columns = stored.shape if len(stored.shape) > 1 else (0, 1)
    if rows != columns or not 1 < rows <= _LARGEST_MASK or any(n != 1 for n in above):
        return False
    if stored.dtype in FLOATS and not re.search(r"mask|tril|triu|causal|bias|future|tri", name, re.IGNORECASE):
        return False
    if stored.dtype.startswith("complex"):
        return False
    mask = stored.read().reshape(rows, columns)
    ones = torch.ones(rows, columns, dtype=torch.bool)
    if stored.dtype in FLOATS and bool((mask.float() < -100).any()):
        return bool(torch.equal(mask.float() > -100, ones.tril()) and (mask.float().tril() == 0).all())
    if not bool(((mask == 0) | (mask == 1)).all()):
        return False
    said = mask.bool()
    if torch.equal(said, ones.tril()):
        return True
    return bool(torch.equal(said, ones.triu(1)))
