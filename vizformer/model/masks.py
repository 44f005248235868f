"""Attention masks: which query sees which key.

One convention inside VizFormer: a mask is an additive float bias, 0 where a query may see a key and -inf where it
may not, with a uint8 map that says why.  (Elsewhere: tutorials' 0 = blocked, `nn.Transformer`'s True = blocked,
`F.scaled_dot_product_attention`'s True = allowed.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

MaskKind = Literal["causal", "padding", "cross", "prefix", "window", "bigbird"]
KINDS: tuple[MaskKind, ...] = get_args(MaskKind)


class Kept(IntEnum):
    """Why a cell of a sparse mask is open."""

    NO = 0
    WINDOW = 1
    GLOBAL = 2
    RANDOM = 3


class Reason(IntEnum):
    """Why a query may not see a key."""

    VISIBLE = 0
    PADDING = 1
    FUTURE = 2
    OUTSIDE_WINDOW = 3
    PAINTED = 4  # blocked by hand
    NOT_CHOSEN = 5  # blocked by a sparse mask: neither near, nor global, nor drawn (`bigbird_mask`)
    LEFT_OUT = 6  # left out of the pictures only, not blocked in the model (`vizformer.analysis.without_keys`)
    OF_THE_MODEL = 7  # blocked by a recorded model, whose mask does not say why (`vizformer.recorder.as_trace`)


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


def window_mask(
    n: int, reach: int, *, causal: bool = False, n_k: int | None = None, device: torch.device | None = None
) -> Mask:
    """Query i sees keys i-reach .. i+reach; with `causal` only i-reach .. i.

    With more keys `n_k` than queries (a cache) the last query is at the place of the last key.  The number of open
    cells grows with n * reach, not with n^2.  After L layers a position depends on positions up to L * reach away.
    Source: Beltagy et al. 2020, "Longformer", section 3.1 (whose window size is 2 * reach); causal: Child et al. 2019,
    "Generating Long Sequences with Sparse Transformers".
    """
    query, key = query_and_key(n, n_k, device)
    reason = ((key - query).abs() > reach).to(torch.uint8) * int(Reason.OUTSIDE_WINDOW)
    return mask_for(torch.where(key > query, int(Reason.FUTURE), reason).to(torch.uint8) if causal else reason)


def self_attention_masks(
    n: int,
    before: int = 0,
    padding: Bool[Tensor, "b n_all"] | None = None,
    window: int | None = None,
    *,
    causal: bool,
    device: torch.device | None = None,
) -> tuple[Mask | None, Mask | None]:
    """The mask of self-attention of `n` tokens after `before` others, and that of the layers with a sliding window.

    A window reaches window - 1 positions back, and, where the mask is not causal, as many ahead.  A single new position
    sees all others, so that no mask is built for it during generation.
    """
    padded, length = None if padding is None else padding_mask(padding), before + n
    mask = combine([padded, causal_mask(n, length, device) if causal and n > 1 else None])
    if window is None or length <= window:  # the window reaches every position
        return mask, mask
    return mask, combine([padded, window_mask(n, window - 1, causal=causal, n_k=length, device=device)])


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


# A mask given by its name and its settings, from which the mask of a text of any length is made; BigBird's among
# them.
@dataclass(frozen=True)
class MaskRecipe:
    """The name and the settings of a mask; each kind uses some of them.

    Attributes:
        kind: the name of the mask; those of padding and of cross-attention follow from a batch, not from a length.
        prefix: so many keys are seen by all queries ("prefix").
        reach: so many keys are seen on each side ("window", "bigbird").
        n_global, n_random, seed: see `bigbird_parts`.
        causal: a "window" or a "bigbird" that does not look ahead either.
    """

    kind: MaskKind
    prefix: int = 2
    reach: int = 1
    n_global: int = 1
    n_random: int = 1
    seed: int = 0
    causal: bool = False

    def mask(self, n: int) -> Mask | None:
        """The mask of n tokens; None for "padding" and "cross"."""
        match self.kind:
            case "causal":
                return causal_mask(n)
            case "prefix":
                return prefix_mask(n, self.prefix)
            case "window":
                return window_mask(n, self.reach, causal=self.causal)
            case "bigbird":
                return bigbird_mask(n, self.reach, self.n_global, self.n_random, self.seed, causal=self.causal)
        return None

    def kept(self, n: int) -> UInt8[Tensor, "n n"] | None:
        """Why each cell of a "bigbird" mask is open (`Kept`); None for other kinds."""
        if self.kind != "bigbird":
            return None
        return bigbird_parts(n, self.reach, self.n_global, self.n_random, self.seed, causal=self.causal)


def bigbird_parts(
    n: int, reach: int, n_global: int, n_random: int, seed: int = 0, *, causal: bool = False
) -> UInt8[Tensor, "n n"]:
    """Why each cell is open, as `Kept`, 0 where it is not.

    The first `n_global` positions see all and are seen by all; every query sees its window; and every query that is
    not global gets `n_random` further keys, drawn without replacement (fewer where fewer are left).  Here one position
    is one block.
    Source: Zaheer et al. 2020, "Big Bird: Transformers for Longer Sequences", section 2.
    """
    query, key = query_and_key(n)
    kept = torch.zeros(n, n, dtype=torch.uint8)
    kept[(key - query).abs() <= reach] = int(Kept.WINDOW)
    kept[:n_global], kept[:, :n_global] = int(Kept.GLOBAL), int(Kept.GLOBAL)
    allowed = key <= query if causal else torch.ones(n, n, dtype=torch.bool)
    kept[~allowed] = int(Kept.NO)
    if n_random == 0:
        return kept
    generator = torch.Generator().manual_seed(seed)
    for i in range(n_global, n):
        left = torch.nonzero((kept[i] == Kept.NO) & allowed[i])[:, 0]
        drawn = torch.randperm(len(left), generator=generator)[:n_random]
        kept[i, left[drawn]] = int(Kept.RANDOM)
    return kept


def bigbird_mask(n: int, reach: int, n_global: int, n_random: int, seed: int = 0, *, causal: bool = False) -> Mask:
    """A BigBird mask: sliding window, global positions and random keys (`bigbird_parts`)."""
    query, key = query_and_key(n)
    blocked = bigbird_parts(n, reach, n_global, n_random, seed, causal=causal) == Kept.NO
    reason = blocked.to(torch.uint8) * int(Reason.NOT_CHOSEN)
    return mask_for(torch.where(key > query, int(Reason.FUTURE), reason).to(torch.uint8) if causal else reason)
