"""Masks that leave so few cells open that long texts become cheap: a sliding window, and window + global + random."""

from enum import IntEnum

import torch
from jaxtyping import UInt8
from torch import Tensor

from vizformer.model.masks import Mask, Reason, mask_for, query_and_key


class Kept(IntEnum):
    """Why a cell of a sparse mask is open."""

    NO = 0
    WINDOW = 1
    GLOBAL = 2
    RANDOM = 3


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
