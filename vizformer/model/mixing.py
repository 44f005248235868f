"""softmax(scores) v: one fused call, or step by step where a recorded model's scores are more than scaled products."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

Numbers = TypeVar("Numbers", Tensor, ndarray)


def mix(
    q: Float[Tensor, "b h n_q d"],
    k: Float[Tensor, "b h_kv n_k d"],
    v: Float[Tensor, "b h_kv n_k d_value"],
    bias: Tensor | None,
    scale: float,
) -> Float[Tensor, "b h n_q d_value"]:
    """softmax(q k^T * scale + bias) v in every head, in one fused call.

    `bias` is shaped like the scores, with sizes of 1 for "the same for all".  A row whose every key is blocked gives 0.
    """
    shared = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale, enable_gqa=shared)


@dataclass(frozen=True)
class Scoring:
    """What happens to q k^T before position bias and mask are added: scale, then soft cap.

    Attributes:
        scale: 1 / sqrt(d_head), or the factor that the model or an edit uses instead.
        cap: the scores of a recorded model may be bent by a soft cap, cap * tanh(score / cap): about what they were where
            they are small, and never beyond -cap or cap (Bello et al. 2016, "Neural Combinatorial Optimization with
            Reinforcement Learning", section 4.2, for logits; Gemma Team 2024, "Gemma 2", section 2).  None: they are not.
    """

    scale: float
    cap: float | None = None

    @property
    def is_product(self) -> bool:
        """Whether a score is the dot product times the scale, without a soft cap."""
        return self.cap is None

    def bent(self, scores: Numbers) -> Numbers:
        """cap * tanh(scores / cap) of scores that are scaled already; the scores themselves without a cap."""
        if self.cap is None:
            return scores
        return self.cap * (torch.tanh(scores / self.cap) if isinstance(scores, Tensor) else np.tanh(scores / self.cap))


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


def mix_scored(
    q: Float[Tensor, "b h n_q d"],
    k: Float[Tensor, "b h n_k d"],
    v: Float[Tensor, "b h n_k d_value"],
    bias: Tensor | None,
    scoring: Scoring,
    sinks: Float[Tensor, "b h #n_q"] | None = None,
) -> Float[Tensor, "b h n_q d_value"]:
    """`mix` of scores that a recorded model may have bent or given sinks: then step by step.

    Half precision is left inside, as the fused call does.
    """
    if scoring.is_product and sinks is None:
        return mix(q, k, v, bias, scoring.scale)
    wide = [t if t.dtype == torch.float64 else t.float() for t in (q, k, v)]
    scores = scoring.bent(wide[0] @ wide[1].mT * scoring.scale)  # [b, h, n_q, n_k]
    weights = weights_of(scores if bias is None else scores + bias, sinks)
    return (weights @ wide[2]).to(v.dtype)
