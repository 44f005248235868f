"""Conventions for the same mask, and what goes wrong where they are mixed up or the mask is put in the wrong place."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor, nn

from vizformer.explain.arrays import softmax
from vizformer.model import AttentionRecord

# --- four notations of one mask ---------------------------------------------------------------------------------------


def notations(blocked: Bool[ndarray, "n_q n_k"]) -> dict[str, ndarray]:
    """One mask in the three notations that are in use.

    "tutorial": 1 = visible, 0 = blocked (`scores.masked_fill(mask == 0, -inf)`); "module": True = blocked
    (`attn_mask` of nn.MultiheadAttention and nn.Transformer); "fused": True = visible (`attn_mask` of
    F.scaled_dot_product_attention); "additive": 0 and -inf, added to the scores.
    """
    return {
        "tutorial": (~blocked).astype(np.int64),
        "module": blocked.copy(),
        "fused": ~blocked,
        "additive": np.where(blocked, -np.inf, 0.0),
    }


def results(record: AttentionRecord, head: int, blocked: Bool[ndarray, "n_q n_k"]) -> dict[str, Float[ndarray, "n d"]]:
    """z of one head from each notation, each by the call that it belongs to (names as in `notations`)."""
    q, k, v = _operands(record, head)
    mask = {name: torch.from_numpy(value) for name, value in notations(blocked).items()}
    scores = (q @ k.T * record.scale).masked_fill(mask["tutorial"] == 0, -torch.inf)
    found = {
        "tutorial": torch.softmax(scores, dim=-1) @ v,
        "module": _module(q, k, v, record.scale, mask["module"]),
        "fused": F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask["fused"], scale=record.scale)[
            0
        ],
        "additive": F.scaled_dot_product_attention(
            q[None], k[None], v[None], attn_mask=mask["additive"].to(q.dtype), scale=record.scale
        )[0],
    }
    return {name: z.double().cpu().numpy() for name, z in found.items()}


def agreement(record: AttentionRecord, head: int, blocked: Bool[ndarray, "n_q n_k"]) -> dict[str, float]:
    """Largest |difference| of each of `results` from softmax(q k^T / sqrt(d_head) + M) v in float64.

    Without a position bias, which the calls of the field do not know.
    """
    q, k, v = (x.double().cpu().numpy() for x in _operands(record, head))
    z = softmax(q @ k.T * record.scale + np.where(blocked, -np.inf, 0.0)) @ v
    return {name: float(np.abs(found - z).max()) for name, found in results(record, head, blocked).items()}


def mixed_up(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, "n_q n_k"]:
    """The weights where a mask is read the other way round: what was to be hidden is all that is seen.

    NaN where that leaves nothing, as exp / sum gives it.
    """
    return naive_softmax(np.where(blocked, scores, -np.inf))


def nan_rows(weights: Float[ndarray, "n_q n_k"]) -> int:
    """The number of rows whose weights are all NaN."""
    return int(np.isnan(weights).all(axis=1).sum())


def _module(q: Tensor, k: Tensor, v: Tensor, scale: float, blocked: Tensor) -> Tensor:
    """nn.MultiheadAttention with one head whose four matrices are the identity; q carries a scale of ours."""
    width, cut = q.shape[1], v.shape[1]
    v = F.pad(v, (0, max(0, width - cut)))  # its values are as wide as its keys: 0 changes nothing
    q, k = (F.pad(t, (0, v.shape[1] - width)) for t in (q, k))
    scale, width = scale * v.shape[1] ** 0.5, v.shape[1]
    module = nn.MultiheadAttention(width, 1, bias=False, batch_first=True, dtype=q.dtype).eval()
    with torch.inference_mode():
        module.in_proj_weight.copy_(torch.eye(width).repeat(3, 1))
        module.out_proj.weight.copy_(torch.eye(width))
        z, _ = module(q[None] * scale, k[None], v[None], attn_mask=blocked, need_weights=False)
    return z[0, :, :cut]


def _operands(record: AttentionRecord, head: int) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v of one head in float32 on the CPU, since notations are compared here and not precisions."""
    kv = record.kv_head(head)
    q, k, v = (x.detach().cpu().float() for x in (record.q[head], record.k[kv], record.v[kv]))
    return q, k, v


# --- four mistakes ----------------------------------------------------------------------------------------------------


def naive_softmax(scores: Float[ndarray, "*n n_k"]) -> Float[ndarray, "*n n_k"]:
    """exp(s - max) / sum as it is written in most code: NaN where everything is -inf."""
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        found: ndarray = e / e.sum(axis=-1, keepdims=True)
    return found


def masked_after(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, "n_q n_k"]:
    """softmax first, then the blocked weights set to 0: rows sum to less than 1, and by how much the future decides."""
    return np.where(blocked, 0.0, softmax(scores))


def left_over(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, " n_q"]:
    """The sum of each row of `masked_after`."""
    return masked_after(scores, blocked).sum(axis=1)


def given_away(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, " n_q"]:
    """The weight of each row that softmax gave to blocked keys: 1 less the sum of the row in `masked_after`."""
    return np.where(blocked, softmax(scores), 0.0).sum(axis=1)


def zeroed(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, "n_q n_k"]:
    """The blocked scores set to 0 instead of -inf: exp(0) = 1, and they keep a share."""
    return softmax(np.where(blocked, 0.0, scores))


def kept_by_blocked(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, " n_q"]:
    """The weight that the blocked cells of each row keep together where their scores are set to 0."""
    return (zeroed(scores, blocked) * blocked).sum(axis=1)


def blind_row(
    scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"], row: int
) -> Float[ndarray, "n_q n_k"]:
    """exp / sum of the masked scores where every key of query `row` is blocked as well: that row is NaN."""
    masked = np.where(blocked, -np.inf, scores)
    masked[row] = -np.inf
    return naive_softmax(masked)


def blind_output(record: AttentionRecord, head: int, blocked: Bool[ndarray, "n_q n_k"], row: int) -> float:
    """Largest |z| that the fused call gives for a query of which every key is blocked; NaN if it gives NaN."""
    blocked = blocked.copy()
    blocked[row] = True
    return float(np.abs(results(record, head, blocked)["additive"][row]).max())


def poisoned(weights: Float[ndarray, "n_q n_k"], row: int) -> Bool[ndarray, " n_q"]:
    """Which rows of weights @ v are NaN once the value at position `row` is: 0 * NaN is NaN."""
    v = np.ones((weights.shape[1], 1))
    v[row] = np.nan
    with np.errstate(invalid="ignore"):
        found: ndarray = np.isnan(weights @ v)[:, 0]
    return found


How = Literal["fill", "add"]
Precision = Literal["float32", "bfloat16", "float16"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Outcome:
    """The result of a large negative number in place of -inf, in a precision."""

    precision: Precision  # of scores and mask
    how: How  # "fill" sets the blocked scores to it (`masked_fill`), "add" adds it to them
    value: float | None  # the number; None for the smallest finite one of the precision
    stored: float  # what becomes of `value` in that precision
    refused: bool = False  # whether PyTorch raises instead
    blocked_weight: float = 0.0  # the weight that blocked cells of the row get together; NaN where the row is NaN
    blind_weight: float = 0.0  # the same for a row in which everything is blocked


WAYS: tuple[tuple[How, float | None], ...] = (
    ("fill", -1e9),
    ("add", -1e9),
    ("fill", -1e4),
    ("fill", None),
    ("fill", -np.inf),
)
"""The ways in which published code blocks a cell, and the number it uses; None: the precision's smallest finite one."""


def in_every_precision(row: Float[ndarray, " n_k"], blocked: Bool[ndarray, " n_k"]) -> tuple[Outcome, ...]:
    """`in_precision` for every one of `WAYS` in every one of `PRECISIONS`."""
    return tuple(in_precision(row, blocked, name, how, value) for how, value in WAYS for name in PRECISIONS)


def in_precision(
    row: Float[ndarray, " n_k"], blocked: Bool[ndarray, " n_k"], precision: Precision, how: How, value: float | None
) -> Outcome:
    """One row of scores, masked and passed through softmax in a precision, all by PyTorch itself."""
    dtype = getattr(torch, precision)
    number = torch.finfo(dtype).min if value is None else value
    scores, hidden = torch.from_numpy(row).to(dtype), torch.from_numpy(blocked)
    stored = float(torch.tensor(number, dtype=dtype))
    try:
        part, whole = (_weights(scores, mask, how, number) for mask in (hidden, torch.ones_like(hidden)))
    except (RuntimeError, OverflowError):  # "value cannot be converted to type at::Half without overflow"
        return Outcome(precision, how, value, stored, refused=True)
    return Outcome(precision, how, value, stored, False, float(part[hidden].sum()), float(whole.sum()))


def _weights(scores: Tensor, blocked: Tensor, how: How, number: float) -> Tensor:
    if how == "fill":
        return torch.softmax(scores.masked_fill(blocked, number), dim=-1).double()
    mask = torch.zeros_like(scores)
    mask[blocked] = torch.tensor(number, dtype=scores.dtype)  # beyond the range of the precision: -inf
    return torch.softmax(scores + mask, dim=-1).double()
