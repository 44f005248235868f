"""The masks of self-attention in each stack: causal or not, with or without a sliding window, and without padding."""

import torch
from jaxtyping import Bool
from torch import Tensor

from vizformer.model.masks import Mask, causal_mask, combine, padding_mask
from vizformer.model.sparse_masks import window_mask


def decoder_masks(
    n: int,
    before: int = 0,
    padding: Bool[Tensor, "b n_all"] | None = None,
    window: int | None = None,
    device: torch.device | None = None,
) -> tuple[Mask | None, Mask | None]:
    """The mask of self-attention, and that of the layers with a sliding window, for `n` tokens after `before` others.

    A single new position sees all others, so no mask is built for it during generation.
    """
    length = before + n
    padded = None if padding is None else padding_mask(padding)
    mask = combine([padded, causal_mask(n, length, device=device) if n > 1 else None])
    if window is None or length <= window:  # the window reaches every position
        return mask, mask
    return mask, combine([padded, window_mask(n, window - 1, causal=True, n_k=length, device=device)])


def encoder_masks(
    n: int, padding: Bool[Tensor, "b n"] | None = None, window: int | None = None, device: torch.device | None = None
) -> tuple[Mask | None, Mask | None]:
    """The mask of an encoder's self-attention, and that of its windowed layers, whose window reaches equally far to
    both sides.
    """
    padded = None if padding is None else padding_mask(padding)
    if window is None or n <= window:
        return padded, padded
    return padded, combine([padded, window_mask(n, window - 1, device=device)])
