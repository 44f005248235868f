"""The reasons for which cells are masked, as far as the mask proves them."""

import torch
from jaxtyping import Bool, UInt8
from torch import Tensor

from vizformer.model.masks import Reason


def reasons_of(blocked: Bool[Tensor, "h n_q n_k"]) -> UInt8[Tensor, "h n_q n_k"]:
    """The reasons of a mask's cells, 0 where they are visible.

    A key that no query sees is padding, unless it lies behind all queries.  Of what is left a mask is causal where it
    blocks exactly the keys behind each query, the last query standing at the last key.  Any other cell is masked by the
    model, and no more is said.
    """
    return torch.stack([_of_one(one) for one in blocked])


def _of_one(blocked: Tensor) -> Tensor:
    n_q, n_k = blocked.shape
    hidden = blocked.all(0)
    ahead = torch.ones_like(blocked).triu(1 + n_k - n_q)
    reason = torch.where(blocked, int(Reason.OF_THE_MODEL), 0).to(torch.uint8)
    if torch.equal(blocked & ~hidden, ahead & ~hidden) and bool((ahead & ~hidden).any()):
        reason[blocked & ahead] = int(Reason.FUTURE)
    reason[blocked & hidden] = int(Reason.PADDING)
    return reason
