"""softmax(scores) v: one fused call, or step by step where the scores are more than scaled products."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

Numbers = TypeVar("Numbers", Tensor, ndarray)


def soft_cap(x: Numbers, cap: float | None) -> Numbers:
    """cap * tanh(x / cap): about x where x is small, and never beyond -cap or cap; x where there is no cap.

    Source: Bello et al. 2016, "Neural Combinatorial Optimization with Reinforcement Learning", section 4.2 (for logits);
    Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size", section 2.
    """
    if cap is None:
        return x
    return cap * (torch.tanh(x / cap) if isinstance(x, Tensor) else np.tanh(x / cap))


@dataclass(frozen=True)
class Scoring:
    """What becomes of the dot products of queries and keys before anything is added: soft_cap(q k^T * scale, cap).

    Attributes:
        scale: 1 / sqrt(d_head), or what the model or an edit has in its place.
        cap: by what a recorded model bends the scores; None: they are not bent, as in our own.
    """

    scale: float
    cap: float | None = None

    @property
    def is_product(self) -> bool:
        """Whether a score is a dot product times a number, and no more."""
        return self.cap is None

    def bent(self, scores: Numbers) -> Numbers:
        """Dot products that were scaled already, as the model goes on with them."""
        return soft_cap(scores, self.cap)


def weights_of(
    scores: Float[Tensor, "*b n_q n_k"], sinks: Float[Tensor, "*b #n_q"] | None = None
) -> Float[Tensor, "*b n_q n_k"]:
    """softmax of the scores with all that is added to them; a row whose every key is blocked gives 0.

    With sinks each row has one more score, whose share of 1 goes to no key.
    Source: OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card", section 2.1.
    """
    if sinks is None:
        return torch.softmax(scores, dim=-1).nan_to_num(0.0)
    column = sinks.to(scores)[..., None].expand(*scores.shape[:-1], 1)
    return torch.softmax(torch.cat([scores, column], -1), dim=-1)[..., :-1].nan_to_num(0.0)


def mix(
    q: Float[Tensor, "b h n_q d"],
    k: Float[Tensor, "b h_kv n_k d"],
    v: Float[Tensor, "b h_kv n_k d_value"],
    bias: Tensor | None,
    scoring: Scoring,
    sinks: Float[Tensor, "b h #n_q"] | None = None,
) -> Float[Tensor, "b h n_q d_value"]:
    """softmax(scores + bias) v in every head, the scores made of q k^T as `scoring` says.

    `bias` is shaped like the scores, with sizes of 1 for "the same for all".  A row whose every key is blocked gives 0.
    Half precision is left inside, as the fused call does.
    """
    group = q.shape[1] // k.shape[1]
    if scoring.is_product and sinks is None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scoring.scale, enable_gqa=group > 1)
    wide = [t if t.dtype == torch.float64 else t.float() for t in (q, k, v)]
    if group > 1:
        wide[1:] = [t.repeat_interleave(group, dim=1) for t in wide[1:]]
    scores = scoring.bent(wide[0] @ wide[1].mT * scoring.scale)  # [b, h, n_q, n_k]
    weights = weights_of(scores if bias is None else scores + bias, sinks)
    return (weights @ wide[2]).to(v.dtype)
