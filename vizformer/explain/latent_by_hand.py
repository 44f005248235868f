"""Latent attention (`vizformer.model.latent_attention`) by hand: two tokens, with keys and values and without any.

    c = W_DKV h,   q = W_Q h,   k = W_UK c,   v = W_UV c
    with keys: s_j = q . k_j,   z = sum_j a_j v_j     absorbed: s_j = (W_UK^T q) . c_j,   z = W_UV (sum_j a_j c_j)

a = softmax(s / sqrt(d_head)).  The norm of the latent and the rotary part, which is no part of it, are left out.

Source: DeepSeek-AI 2024, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model",
section 2.1.2 and appendix C.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain.arrays import softmax

WIDEST, HEADS, D_HEAD = 4, 4, 2  # numbers of a row and of the widest latent, heads at most, numbers of a head


@dataclass(frozen=True)
class TwoLatents:
    """Two rows `h` in a few heads; `scores` and `mixed` by keys and values, `absorbed` and `mixed_latents` without.

    The matrices have a first axis for the heads, all but `W_DKV`, of which there is one.
    """

    h: Float[ndarray, "2 d"]
    W_DKV: Float[ndarray, "width d"]
    W_Q: Float[ndarray, "heads d_head d"]
    W_UK: Float[ndarray, "heads d_head width"]
    W_UV: Float[ndarray, "heads d_head width"]
    latents: Float[ndarray, "2 width"]
    queries: Float[ndarray, "heads 2 d_head"]
    keys: Float[ndarray, "heads 2 d_head"]
    moved: Float[ndarray, "heads 2 width"]
    scores: Float[ndarray, "heads 2 2"]
    absorbed: Float[ndarray, "heads 2 2"]
    mixed: Float[ndarray, "heads 2 d_head"]
    mixed_latents: Float[ndarray, "heads 2 d_head"]

    @property
    def error(self) -> float:
        """By how much the two ways differ at most, in a score or a mixed value."""
        pairs = (self.scores, self.absorbed), (self.mixed, self.mixed_latents)
        return max(float(np.abs(one - other).max()) for one, other in pairs)


def two_latents(width: int, heads: int) -> TwoLatents:
    """Two tokens that leave a latent of `width` numbers (1 to 4) for `heads` heads (1 to 4); both see both."""
    draw = np.random.default_rng(294)  # small numbers of either sign
    h, W_DKV = draw.integers(-1, 3, (2, WIDEST)).astype(float), draw.integers(-1, 2, (WIDEST, WIDEST)).astype(float)
    W_Q, W_UK, W_UV = draw.integers(-1, 3, (3, HEADS, D_HEAD, WIDEST)).astype(float)[:, :heads]
    W_DKV, W_UK, W_UV = W_DKV[:width], W_UK[..., :width], W_UV[..., :width]
    c = h @ W_DKV.T
    q, k, v = h @ W_Q.mT, c @ W_UK.mT, c @ W_UV.mT  # [heads, 2, d_head]
    moved = q @ W_UK  # [heads, 2, width]
    scores, absorbed = q @ k.mT, moved @ c.T
    mixed = np.array(
        [[softmax(row / D_HEAD**0.5) for row in of] @ values for of, values in zip(scores, v, strict=True)]
    )
    latent = np.array([[softmax(row / D_HEAD**0.5) for row in of] @ c for of in absorbed])
    return TwoLatents(h, W_DKV, W_Q, W_UK, W_UV, c, q, k, moved, scores, absorbed, mixed, latent @ W_UV.mT)
