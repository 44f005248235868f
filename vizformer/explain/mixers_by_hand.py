"""What the layers of the lesson on mixers do, by hand, with two tokens or one row: few numbers, each of which can be read."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain.arrays import float64, softmax
from vizformer.model.records import AttentionRecord

VALUES = np.array([[3.0, 1.0], [1.0, 3.0]])


def two_keys(degrees: int) -> Float[ndarray, "2 2"]:
    """Two keys of length 1, so far apart."""
    angle = math.radians(degrees)
    return np.round(np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]]), 12)  # cos 90 degrees is 0


@dataclass(frozen=True)
class TwoSteps:
    """Two tokens both ways: `states` and `read` token by token, `left` (L), `scores` (C B^T) and `map` at once."""

    keys: Float[ndarray, "2 2"]
    steps: Float[ndarray, " 2"]
    keep: float
    states: tuple[Float[ndarray, "2 2"], Float[ndarray, "2 2"]]
    read: Float[ndarray, "2 2"]
    left: Float[ndarray, "2 2"]
    scores: Float[ndarray, "2 2"]
    map: Float[ndarray, "2 2"]


def two_steps(degrees: int, step: float, rate: float, skip: float, values: Float[ndarray, "2 2"] = VALUES) -> TwoSteps:
    """A state space (`vizformer.model.state_rule`), token by token and as a map.

        S <- a S + b (dt v)^T,  o = S^T c + D v,  a = e^(-r dt)     and     o = M v,  M = L * (C B^T) diag(dt) + D I

    Each token asks with its own key (c = b); L_21 = a_2, and above the diagonal L is 0.  The keys, of length 1, are
    `degrees` apart; the first token has the step 1, the second one `step`.

    Source: Dao & Gu 2024, "Transformers are SSMs", sections 3 and 5.
    """
    keys, steps = two_keys(degrees), np.array([1.0, step])
    S, states, read = np.zeros((2, 2)), [], []
    for k, dt, v in zip(keys, steps, values, strict=True):
        S = np.exp(-rate * dt) * S + np.outer(k, dt * v)
        states.append(S)
        read.append(k @ S + skip * v)
    keep = float(np.exp(-rate * step))
    left, scores = np.array([[1.0, 0.0], [keep, 1.0]]), keys @ keys.T
    return TwoSteps(
        keys,
        steps,
        keep,
        (states[0], states[1]),
        np.stack(read),
        left,
        scores,
        left * scores * steps + skip * np.eye(2),
    )


@dataclass(frozen=True)
class Write:
    """What becomes of the state at one token: what is left of it, holds under the key, is written, and the state then."""

    kept: Float[ndarray, "2 2"]
    held: Float[ndarray, " 2"]
    written: Float[ndarray, " 2"]
    state: Float[ndarray, "2 2"]


@dataclass(frozen=True)
class TwoWrites:
    """Both rules after the same two tokens; `read` and `read_sum` are what the state gives for each of the keys."""

    keys: Float[ndarray, "2 2"]
    values: Float[ndarray, "2 2"]
    writes: tuple[Write, Write]
    sums: tuple[Float[ndarray, "2 2"], Float[ndarray, "2 2"]]

    @property
    def read(self) -> Float[ndarray, "2 2"]:
        return self.keys @ self.writes[1].state

    @property
    def read_sum(self) -> Float[ndarray, "2 2"]:
        return self.keys @ self.sums[1]


def two_writes(degrees: int, beta: float, keep: float, values: Float[ndarray, "2 2"] = VALUES) -> TwoWrites:
    """The gated delta rule (`vizformer.model.state_rule`) in a state of 2 x 2 numbers, beside a sum.

        forget: a S,   read: r = (a S)^T k,   correct: u = b (v - r),   write: S <- a S + k u^T

    Linear attention just adds: S <- S + k v^T.  The keys, of length 1, are `degrees` apart; of each value `beta` is
    written, and `keep` is left before it.

    Source: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule", section 3; Katharopoulos et al.
    2020, "Transformers are RNNs", section 3.3 (the sum).
    """
    keys = two_keys(degrees)
    S, total, writes, sums = np.zeros((2, 2)), np.zeros((2, 2)), [], []
    for k, v in zip(keys, values, strict=True):
        kept = keep * S
        held = k @ kept
        u = beta * (v - held)
        S, total = kept + np.outer(k, u), total + np.outer(k, v)
        writes.append(Write(kept, held, u, S))
        sums.append(total)
    return TwoWrites(keys, values, (writes[0], writes[1]), (sums[0], sums[1]))


@dataclass(frozen=True)
class SinkRow:
    """The scores less c, the weights of either softmax, and how long the sum of the values is with them."""

    scores: Float[ndarray, " n_k"]
    plain: Float[ndarray, " n_k"]
    weights: Float[ndarray, " n_k"]
    plain_length: float
    length: float

    @property
    def share(self) -> float:
        """The sink's part of the softmax."""
        return 1.0 - float(self.weights.sum())


def sink_row(record: AttentionRecord, head: int, query: int, lower: float, sink: float) -> SinkRow:
    """The row of a query, every score `lower` less, without a sink and beside one (`vizformer.model.mixing.Scoring`).

        a_j = e^(s_j - c) / (e^s + sum_j' e^(s_j' - c)),   c taken off every score, s the sink's; without it e^s is left out

    Source: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section 3.3; OpenAI 2025,
    "gpt-oss-120b & gpt-oss-20b Model Card", section 2.2.
    """
    scores, mask = float64(record.scores(head)[query]), record.mask_row(head, query)
    scores = scores - lower if mask is None else scores - lower + float64(mask)
    plain, weights = softmax(scores), softmax(scores, sink)
    v = float64(record.v[record.kv_head(head)])
    return SinkRow(scores, plain, weights, *(float(np.linalg.norm(w @ v)) for w in (plain, weights)))


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
    """Latent attention (`vizformer.model.latent_attention`): with keys and values and without any.

        c = W_DKV h,   q = W_Q h,   k = W_UK c,   v = W_UV c
        with keys: s_j = q . k_j,   z = sum_j a_j v_j     absorbed: s_j = (W_UK^T q) . c_j,   z = W_UV (sum_j a_j c_j)

    a = softmax(s / sqrt(d_head)); both tokens see both.  A latent has `width` numbers (1 to 4), for `heads` heads (1 to 4).
    The norm of the latent and the rotary part, which is no part of it, are left out.

    Source: DeepSeek-AI 2024, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model",
    section 2.1.2 and appendix C.
    """
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


ROUTER = np.array([[2.0, 0.0], [-1.0, 2.0], [-2.0, -1.0], [1.0, -2.0]])  # no ties at whole multiples of 15 degrees
W_IN = np.array([[2.0, 1.0], [0.0, 2.0], [-2.0, 0.0], [1.0, -1.0]])
W_OUT = np.array([[1.0, 2.0], [2.0, -1.0], [-1.0, 1.0], [3.0, 0.0]])
FIRST = (1.0, 1.0)  # the first token's row


@dataclass(frozen=True)
class TwoRouted:
    """Two tokens through the layer: `weights` are 0 for experts that are not chosen, whose `outputs` are not needed."""

    x: Float[ndarray, "2 2"]
    scores: Float[ndarray, "2 experts"]
    probabilities: Float[ndarray, "2 experts"]
    weights: Float[ndarray, "2 experts"]
    outputs: Float[ndarray, "2 experts 2"]
    y: Float[ndarray, "2 2"]


def two_routed(degrees: int, k: int, *, renormalised: bool) -> TwoRouted:
    """A mixture of experts (`vizformer.model.experts`): four networks with one hidden number each.

        p = softmax(W_r x),   T = the k largest of p,   g_e = p_e / sum_{e' in T} p_e'   (or g_e = p_e),   0 outside of T
        y = sum_{e in T} g_e FFN_e(x),   FFN_e(x) = u_e max(0, w_e . x)

    The second token's row has the length 1 and this direction.

    Source: Shazeer et al. 2017, "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer",
    section 2; Jiang et al. 2024, "Mixtral of Experts", section 2.1; for weights as they are Fedus et al. 2021, "Switch
    Transformers", section 2.1.
    """
    angle = math.radians(degrees)
    x = np.round(np.array([FIRST, (math.cos(angle), math.sin(angle))]), 12)  # cos 90 degrees is 0
    scores = x @ ROUTER.T
    p = softmax(scores)
    chosen = p >= np.sort(p, axis=-1)[:, [-k]]
    g = np.where(chosen, p, 0.0)
    g = g / g.sum(-1, keepdims=True) if renormalised else g
    outputs = np.maximum(0.0, x @ W_IN.T)[..., None] * W_OUT
    return TwoRouted(x, scores, p, g, outputs, (g[..., None] * outputs).sum(1))
