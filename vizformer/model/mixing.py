"""softmax(scores) v: one fused call, or step by step where the scores are bent by a soft cap."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def soft_cap(x: Float[Tensor, "*n"], cap: float) -> Float[Tensor, "*n"]:
    """cap * tanh(x / cap): about x where x is small, and never beyond -cap or cap.

    Source: Bello et al. 2016, "Neural Combinatorial Optimization with Reinforcement Learning", section 4.2 (for logits);
    Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size", section 2.
    """
    return cap * torch.tanh(x / cap)


def mix(
    q: Float[Tensor, "b h n_q d"],
    k: Float[Tensor, "b h_kv n_k d"],
    v: Float[Tensor, "b h_kv n_k d"],
    bias: Tensor | None,
    scale: float,
    cap: float | None = None,
) -> Float[Tensor, "b h n_q d"]:
    """softmax(q k^T * scale + bias) v, or softmax(cap tanh(q k^T * scale / cap) + bias) v, in every head.

    `bias` is shaped like the scores, with sizes of 1 for "the same for all".  A row whose every key is blocked gives 0.
    Half precision is left inside, as the fused call does.
    """
    group = q.shape[1] // k.shape[1]
    if cap is None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale, enable_gqa=group > 1)
    wide = [t if t.dtype == torch.float64 else t.float() for t in (q, k, v)]
    if group > 1:
        wide[1:] = [t.repeat_interleave(group, dim=1) for t in wide[1:]]
    scores = soft_cap(wide[0] @ wide[1].mT * scale, cap)  # [b, h, n_q, n_k]
    weights = torch.softmax(scores if bias is None else scores + bias, dim=-1).nan_to_num(0.0)
    return (weights @ wide[2]).to(v.dtype)
