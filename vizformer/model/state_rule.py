"""A state in the place of all earlier keys and values: it forgets, is written, and is read; by one of two rules.

    S_t = a_t S_(t-1) + k_t u_t^T,   a_t = e^(g_t)                           S is [d_key, d_value] however long the text is
    gated delta rule:   u_t = b_t (v_t - (a_t S_(t-1))^T k_t),   o_t = S_t^T q_t
    state space (SSD):  u_t = b_t v_t,                           o_t = S_t^T q_t + D v_t

By the delta rule, what the state says of the new key is taken off the new value before that is written: the same key
written twice holds the second value, and not their sum.  A state-space layer just adds; its paper calls q C, k B, v x and
b the step, dt.  There is no softmax, and all is linear in v:

    o = M v,   G_ij = a_(j+1) ... a_i
    gated delta rule:   M = tril(Q K^T * G) (I + stril(diag(b) K K^T * G))^-1 diag(b)
    state space (SSD):  M = tril(Q K^T * G) diag(b) + D I

M is the map that is drawn: exact, with both signs, and rows that sum to anything.

Source: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule", section 3; Yang et al. 2024,
"Parallelizing Linear Transformers with the Delta Rule over Sequence Length", section 3; the M of that rule is the two
together.  Dao & Gu 2024, "Transformers are SSMs", sections 5 and 6, where tril(G) is called L.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vizformer.options.attention import StateRule

CHUNK = 64  # tokens that are worked out together


@dataclass(frozen=True)
class StateGates:
    """The gates of a layer for one text.

    Attributes:
        beta: how much of each value is written: 0 to 1, or in a state-space layer a step of any size from 0 on.
        decay: the logarithm of what is left of the state at each token, at most 0.
        first: the position of the first query that is asked for.
        skip: D of a state-space layer, how much of its own value each token is given; None: no such layer.
        back: of a short convolution (`vizformer.model.short_convolution`), how many places back each head reads; it has
            no state, and is written as M_ij = q_i . k_j b_j where i - j is `back`, else 0; None: a state.
    """

    beta: Float[Tensor, "n_heads n"]
    decay: Float[Tensor, "n_heads n"]
    first: int = 0
    skip: Float[Tensor, " n_heads"] | None = None
    back: Int[Tensor, " n_heads"] | None = None

    @property
    def rule(self) -> StateRule:
        """By which rule the state was written."""
        return "convolution" if self.back is not None else "delta" if self.skip is None else "space"


def each_of(gates: StateGates, change: Callable[[Tensor], Tensor]) -> StateGates:
    """The same gates of other heads, which `change` makes of the first axis."""
    skip, back = (None if one is None else change(one) for one in (gates.skip, gates.back))
    return replace(gates, beta=change(gates.beta), decay=change(gates.decay), skip=skip, back=back)


def apply_state_rule(
    q: Float[Tensor, "b h n d_key"],
    k: Float[Tensor, "b h n d_key"],
    v: Float[Tensor, "b h n d_value"],
    beta: Float[Tensor, "b h n"],
    decay: Float[Tensor, "b h n"],
    state: Float[Tensor, "b h d_key d_value"] | None = None,
    skip: Float[Tensor, " h"] | None = None,
) -> tuple[Float[Tensor, "b h n d_value"], Float[Tensor, "b h d_key d_value"]]:
    """o and the last state, CHUNK tokens at a time; `decay` is g, `state` what the tokens before have left.

    u = (I + stril(diag(b) K K^T * G))^-1 diag(b) (V - diag(e^c) K S), or diag(b) V where there is a `skip`, D
    o = diag(e^c) Q S + tril(Q K^T * G) u (+ D V)
    S <- e^(c_last) S + (diag(e^(c_last - c)) K)^T u,   c = cumsum(g)

    Half precision is left inside.
    """
    wide = torch.float64 if v.dtype == torch.float64 else torch.float32
    S = v.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1], dtype=wide) if state is None else state
    found = []
    for first in range(0, q.shape[2], CHUNK):
        at = slice(first, first + CHUNK)
        q_c, k_c, v_c, b = (x[:, :, at].to(wide) for x in (q, k, v, beta))
        c = decay[:, :, at].double().cumsum(-1)[..., None]  # [b, h, n, 1]; exp makes of its rounding an error as large
        G, left, to_end = (x.to(wide) for x in (between(c), c.exp(), (c[:, :, -1:] - c).exp()))
        u = b[..., None] * (v_c if skip is not None else v_c - left * (k_c @ S))
        if skip is None:
            system = torch.tril(b[..., None] * (k_c @ k_c.mT) * G, -1)
            u = torch.linalg.solve_triangular(system, u, upper=False, unitriangular=True)
        o = left * (q_c @ S) + torch.tril(q_c @ k_c.mT * G) @ u
        found.append(o if skip is None else o + skip.to(wide)[:, None, None] * v_c)
        S = left[:, :, -1:] * S + (to_end * k_c).mT @ u
    return torch.cat(found, dim=2).to(v.dtype), S


def read_back(
    q: Float[Tensor, "b h n d_key"],
    k: Float[Tensor, "b h n d_key"],
    v: Float[Tensor, "b h n d"],
    back: Int[Tensor, " h"],
) -> Float[Tensor, "b h n d"]:
    """o_i = (q_i . k_j) v_j with j = i - back, each head by its own; 0 where there is no such token."""

    def later(x: Tensor) -> Tensor:
        rows = (torch.nn.functional.pad(x[:, h], (0, 0, t, 0))[:, : x.shape[2]] for h, t in enumerate(back.tolist()))
        return torch.stack([*rows], dim=1)

    return (q * later(k)).sum(-1, keepdim=True) * later(v)


def between(c: Float[Tensor, "*b n 1"]) -> Float[Tensor, "*b n n"]:
    """G: what is left at token i of what was written at token j, e^(c_i - c_j); 0 where j comes after i."""
    later = torch.ones(c.shape[-2], c.shape[-2], dtype=torch.bool, device=c.device).triu(1)
    return (c - c.mT).masked_fill(later, -torch.inf).exp()


def effective_map(
    q: Float[Tensor, "h n_q d_key"], k: Float[Tensor, "h n d_key"], gates: StateGates
) -> Float[Tensor, "h n_q n"]:
    """M of the queries from `gates.first` on, in float64; q as `apply_state_rule` reads it."""
    end = gates.first + q.shape[1]  # no query sees a later key
    q, k, b = q.double(), k[:, :end].double(), gates.beta[:, :end, None].double()
    G = between(gates.decay[:, :end, None].double().cumsum(-2))
    found = q @ k.mT * G[:, gates.first :]
    if gates.back is not None:
        at = torch.arange(end, device=q.device)
        found = found * (at[gates.first :, None] - at == gates.back[:, None, None])
    if gates.rule == "delta":
        system = torch.tril(b * (k @ k.mT) * G, -1)
        found = torch.linalg.solve_triangular(system, found, upper=False, left=False, unitriangular=True)
    found = found * b.mT
    if gates.skip is not None:
        found.diagonal(gates.first, -2, -1).add_(gates.skip.double()[:, None])
    return torch.nn.functional.pad(found, (0, gates.beta.shape[1] - end))
