"""Attention masks: which query sees which key.

One convention inside VizFormer: a mask is an additive float bias, 0 where a query may see a key and -inf where it
may not, with a uint8 map that says why.  (Elsewhere: tutorials' 0 = blocked, `nn.Transformer`'s True = blocked,
`F.scaled_dot_product_attention`'s True = allowed.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor


class Reason(IntEnum):
    """Why a query may not see a key."""

    VISIBLE = 0
    PADDING = 1
    FUTURE = 2
    OUTSIDE_WINDOW = 3
    PAINTED = 4  # blocked by hand
    NOT_CHOSEN = 5  # blocked by a sparse mask: neither near, nor global, nor drawn (`vizformer.model.sparse_masks`)
    LEFT_OUT = 6  # left out of the pictures only, not blocked in the model (`vizformer.analysis.without_keys`)
    OF_THE_MODEL = 7  # blocked by a recorded model, whose mask does not say why (`vizformer.recorder.reasons`)


@dataclass(frozen=True)
class Mask:
    """An additive bias for the scores and the reason for every blocked cell.

    Sizes of 1 stand for "the same for all" and broadcast, also to the attention kernel, which is fast only for
    four-dimensional float biases.
    """

    bias: Float[Tensor, "b h n_q n_k"]
    reason: UInt8[Tensor, "b h n_q n_k"]


def causal_mask(n_q: int, n_k: int | None = None, device: torch.device | None = None) -> Mask:
    """Query i sees keys 0..i; with more keys than queries (a cache) the last query sees the last key."""
    query, key = query_and_key(n_q, n_k, device)
    return mask_for((key > query).to(torch.uint8) * int(Reason.FUTURE))


def prefix_mask(n: int, prefix: int) -> Mask:
    """Every query sees the first `prefix` keys, and beyond them only what is not after it: j <= i or j < prefix.

    With prefix = 0 (or 1) this is the causal mask, with prefix = n everything is open.
    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning" (T5), section 3.2.1, figure 4.
    """
    query, key = query_and_key(n)
    return mask_for(((key > query) & (key >= prefix)).to(torch.uint8) * int(Reason.FUTURE))


def padding_mask(is_padding: Bool[Tensor, "b n_k"]) -> Mask:
    """Blocks every padding key for all queries."""
    return mask_for(is_padding[:, None, None, :].to(torch.uint8) * int(Reason.PADDING))


def combine(masks: Sequence[Mask | None]) -> Mask | None:
    """A cell is blocked if any of the masks blocks it; the first mask that does gives the reason."""
    combined = None
    for mask in masks:
        if combined is None or mask is None:
            combined = combined or mask
            continue
        reason = torch.where(combined.reason > 0, combined.reason, mask.reason)
        combined = Mask(combined.bias + mask.bias, reason)
    return combined


def total_bias(
    position_bias: Float[Tensor, "*#heads #n_q n_k"] | None, mask_bias: Float[Tensor, "*#heads #n_q n_k"] | None
) -> Float[Tensor, "..."] | None:
    """The sum that is added to the scores: position bias, and -inf in each cell that the mask blocks."""
    if position_bias is None or mask_bias is None:
        return mask_bias if position_bias is None else position_bias
    return position_bias + mask_bias


def query_and_key(
    n_q: int, n_k: int | None = None, device: torch.device | None = None
) -> tuple[Int[Tensor, "n_q 1"], Int[Tensor, "1 n_k"]]:
    """The positions of the queries as a column and of the keys as a row; the last query is at the last key."""
    n_k = n_q if n_k is None else n_k
    return torch.arange(n_k - n_q, n_k, device=device)[:, None], torch.arange(n_k, device=device)[None, :]


def mask_for(reason: UInt8[Tensor, "*b_h n_q n_k"]) -> Mask:
    """The mask that blocks every cell whose reason is not 0; a two-dimensional map applies to all heads and texts."""
    reason = reason if reason.dim() == 4 else reason[None, None]
    return Mask(torch.zeros(reason.shape, device=reason.device).masked_fill_(reason > 0, -math.inf), reason)
