"""Ways of mixing tokens, in float64: pure functions of queries, keys, values and gates, of one head each.

Each is there twice: token by token, with a cache or a state of the tokens before; and at once, as a map M with o = M v,
which is exact also without a softmax, since all are linear in the values.  How far M v is from o is the proof.

    softmax:            o_i = sum_j<=i a_ij v_j,   a_i = softmax(q_i . k_j / sqrt(d));  with a sink s, e^s stands in the sum too
    gated delta rule:   S_i = a_i S_(i-1) + k_i u_i^T,   u_i = b_i (v_i - (a_i S_(i-1))^T k_i),   o_i = S_i^T q_i
                        M = tril(Q K^T * G) (I + stril(diag(b) K K^T * G))^-1 diag(b),   G_ij = a_(j+1) ... a_i
    state space (SSD):  S_i = a_i S_(i-1) + k_i (dt_i v_i)^T,   o_i = S_i^T q_i + D v_i
                        M = tril(Q K^T * G) diag(dt) + D I

Source: Vaswani et al. 2017, section 3.2; Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks",
section 3.3; Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule", section 3, and "Parallelizing Linear
Transformers with the Delta Rule over Sequence Length", section 3; Dao & Gu 2024, "Transformers are SSMs", sections 3, 5, 6,
where tril(G) is called L, q C, k B, and v x.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain.arrays import float64, softmax
from vizformer.model.records import AttentionRecord

Rows = Float[ndarray, "n d"]
Values = Float[ndarray, "n d_v"]
Each = Float[ndarray, " n"]
Map = Float[ndarray, "n n"]
State = Float[ndarray, "d d_v"]
Two = Float[ndarray, "2 2"]
VALUES = np.array([[3.0, 1.0], [1.0, 3.0]])


def two_keys(degrees: int) -> Two:
    """Two keys of length 1 at an angle of `degrees`."""
    angle = math.radians(degrees)
    return np.round(np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]]), 12)  # cos 90 degrees is 0


def attention_map(q: Rows, k: Rows, *, window: int | None = None, sink: float | None = None) -> Map:
    """The attention weights M of all tokens at once. `window`: each query sees only so many of the latest keys; `sink`:
    one more score in each sum, without a value.
    """
    places = np.arange(len(q))
    back = places[:, None] - places  # how far the key lies before the query
    seen = (back >= 0) & (back < (window or len(q)))
    return softmax(np.where(seen, q @ k.T / math.sqrt(q.shape[1]), -np.inf), sink)


def attention_read(
    q: Rows, k: Rows, v: Values, *, window: int | None = None, sink: float | None = None, scale: float | None = None
) -> Values:
    """o_i of attention, token by token with a cache of keys and values; `scale` replaces 1 / sqrt(d), the rest as in
    `attention_map`.
    """
    read = []
    for i in range(len(q)):
        cached = slice(max(0, i + 1 - (window or len(q))), i + 1)
        scores = k[cached] @ q[i] * (1 / math.sqrt(q.shape[1]) if scale is None else scale)
        read.append(softmax(scores, sink) @ v[cached])
    return np.stack(read)


def left_between(keep: Each) -> Map:
    """G: what is left at token i of what was written at token j, a_(j+1) ... a_i; 0 where j comes after i."""
    return np.tril([[np.prod(keep[j + 1 : i + 1]) for j in range(len(keep))] for i in range(len(keep))])


@dataclass(frozen=True)
class Write:
    """One step of the gated delta rule: the faded state, the value that it holds for the key, the correction, and the
    new state.
    """

    kept: State
    held: Float[ndarray, " d_v"]
    written: Float[ndarray, " d_v"]
    state: State


def delta_writes(k: Rows, v: Values, beta: Each, keep: Each) -> tuple[Write, ...]:
    """The gated delta rule, token by token.  forget: a S,  read: r = (a S)^T k,  correct: u = b (v - r),  write: k u^T."""
    S, writes = np.zeros((k.shape[1], v.shape[1])), []
    for key, value, b, a in zip(k, v, beta, keep, strict=True):
        kept = a * S
        held = key @ kept
        u = b * (value - held)
        S = kept + np.outer(key, u)
        writes.append(Write(kept, held, u, S))
    return tuple(writes)


def delta_map(q: Rows, k: Rows, beta: Each, keep: Each) -> Map:
    """The map M of the gated delta rule: tril(Q K^T * G) (I + stril(diag(b) K K^T * G))^-1 diag(b)."""
    G = left_between(keep)
    system = np.eye(len(k)) + np.tril(beta[:, None] * (k @ k.T) * G, -1)
    return np.tril(np.linalg.solve(system.T, (q @ k.T * G).T).T * beta)


def space_states(k: Rows, v: Values, steps: Each, keep: Each) -> tuple[State, ...]:
    """The states S_i of a state space, token by token: S_i = a_i S_(i-1) + k_i (dt_i v_i)^T."""
    S, states = np.zeros((k.shape[1], v.shape[1])), []
    for key, value, dt, a in zip(k, v, steps, keep, strict=True):
        S = a * S + np.outer(key, dt * value)
        states.append(S)
    return tuple(states)


def space_map(q: Rows, k: Rows, steps: Each, keep: Each, skip: float = 0.0) -> Map:
    """The map M of a state space: tril(Q K^T * G) diag(dt) + D I; D is `skip`."""
    return left_between(keep) * (q @ k.T) * steps + skip * np.eye(len(q))


Mixer = Literal["softmax", "sink", "grouped", "latent", "window", "delta", "space"]
MIXERS: tuple[Mixer, ...] = get_args(Mixer)
N_HEADS, D, LATENT, WINDOW, SINK = 4, 8, 12, 3, 1.0  # the sizes of the compared layers; the score of the sink


def mixed(kind: Mixer, ids: tuple[int, ...]) -> tuple[Float[ndarray, "heads n n"], float]:
    """The maps M of a layer with random weights drawn from a seed, on a text, and |M v - o| / |o|; equal ids are equal
    tokens.

    Layers that have the same matrices have the same numbers.  Keys of the delta rule have the length 1; a state space has
    D = 0, and a step of softplus(x w), by which its state fades as e^-step.
    """
    draw, width = np.random.default_rng(0), N_HEADS * D
    W_Q, W_K, W_V = draw.standard_normal((3, N_HEADS, D, width)) / math.sqrt(width)
    W_DKV, gates = (draw.standard_normal((n, width)) / math.sqrt(width) for n in (LATENT, 2 * N_HEADS))
    W_UK, W_UV = draw.standard_normal((2, N_HEADS, D, LATENT)) / math.sqrt(LATENT)
    rows = {token: draw.standard_normal(width) for token in dict.fromkeys(ids)}
    x = np.stack([rows[token] for token in ids])  # [n, width]
    c, made = x @ W_DKV.T, []
    for h in range(N_HEADS):
        shared = 0 if kind == "grouped" else h
        q, k, v = x @ W_Q[h].T, x @ W_K[shared].T, x @ W_V[shared].T
        write, fade = x @ gates[h], x @ gates[N_HEADS + h]  # [n]
        if kind == "latent":
            o = attention_read(q @ W_UK[h], c, c, scale=1 / math.sqrt(D)) @ W_UV[h].T  # no key, no value
            M, v = attention_map(q, c @ W_UK[h].T), c @ W_UV[h].T
        elif kind == "delta":
            k = k / np.linalg.norm(k, axis=-1, keepdims=True)
            gated = 1 / (1 + np.exp(-write)), np.exp(-np.logaddexp(0.0, fade))
            o = np.stack([one.state.T @ row for one, row in zip(delta_writes(k, v, *gated), q, strict=True)])
            M = delta_map(q, k, *gated)
        elif kind == "space":
            gated = np.logaddexp(0.0, write), np.exp(-np.logaddexp(0.0, write))
            o = np.stack([state.T @ row for state, row in zip(space_states(k, v, *gated), q, strict=True)])
            M = space_map(q, k, *gated)
        else:
            near, sink = WINDOW if kind == "window" else None, SINK if kind == "sink" else None
            o = attention_read(q, k, v, window=near, sink=sink)
            M = attention_map(q, k, window=near, sink=sink)
        made.append((M, M @ v - o, o))
    maps, left, read = (np.stack(parts) for parts in zip(*made, strict=True))
    return maps, float(np.linalg.norm(left) / np.linalg.norm(read))


def mixer_cost(kind: Mixer, n: int) -> tuple[int, int]:
    """Multiplications of a layer to mix token n, and the numbers that it holds of n tokens; for latents no keys are
    made.
    """
    seen, one = min(n, WINDOW) if kind == "window" else n, N_HEADS * D
    if kind == "latent":
        return 2 * N_HEADS * LATENT * (n + D), LATENT * n
    if kind in ("delta", "space"):  # forget, write, read; the delta rule also reads what the key holds
        return (4 if kind == "delta" else 3) * one * D, one * D
    return 2 * one * seen, 2 * (D if kind == "grouped" else one) * seen


@dataclass(frozen=True)
class TwoSteps:
    """A state space on two tokens: `states` and `read` token by token, `left` (L), `scores` (C B^T) and `map` at once."""

    keys: Two
    steps: Float[ndarray, " 2"]
    keep: float
    states: tuple[Two, ...]
    read: Two
    left: Two
    scores: Two
    map: Two


def two_steps(degrees: int, step: float, rate: float, skip: float, values: Two = VALUES) -> TwoSteps:
    """A state space, token by token and as a map M = L * (C B^T) diag(dt) + D I, where a = e^(-r dt).

    Each token asks with its own key (c = b); L_21 = a_2, and above the diagonal L is 0.  The keys, of length 1, are
    `degrees` apart; the first token has the step 1, the second one `step`.
    """
    keys, steps = two_keys(degrees), np.array([1.0, step])
    keep = np.exp(-rate * steps)
    states = space_states(keys, values, steps, keep)
    read = np.stack([state.T @ row for state, row in zip(states, keys, strict=True)]) + skip * values
    M = space_map(keys, keys, steps, keep, skip)
    return TwoSteps(keys, steps, float(keep[1]), states, read, left_between(keep), keys @ keys.T, M)


@dataclass(frozen=True)
class TwoWrites:
    """The gated delta rule and the sum after the same two tokens; `read` and `read_sum` are what each key then reads."""

    keys: Two
    values: Two
    writes: tuple[Write, ...]
    total: Two  # the sum S after both tokens
    read: Two
    read_sum: Two


def two_writes(degrees: int, beta: float, keep: float, values: Two = VALUES) -> TwoWrites:
    """The gated delta rule with a state of 2 x 2 numbers, beside linear attention, whose state is a sum: S <- S + k v^T.

    The keys, of length 1, are `degrees` apart; `beta` is the share of each value that is written, and `keep` the factor
    of the state before it.

    Source: Katharopoulos et al. 2020, "Transformers are RNNs", section 3.3 (the sum).
    """
    keys = two_keys(degrees)
    total, writes = keys.T @ values, delta_writes(keys, values, np.full(2, beta), np.full(2, keep))
    return TwoWrites(keys, values, writes, total, keys @ writes[1].state, keys @ total)


@dataclass(frozen=True)
class SinkRow:
    """The scores minus c, the weights with and without a sink, the sink's share, and the lengths of the mixed values."""

    scores: Float[ndarray, " n_k"]
    plain: Float[ndarray, " n_k"]
    weights: Float[ndarray, " n_k"]
    share: float
    plain_length: float
    length: float


def sink_row(record: AttentionRecord, head: int, query: int, lower: float, sink: float) -> SinkRow:
    """The attention weights of one query with all scores reduced by `lower`, without a sink and with one.

        a_j = e^(s_j - c) / (e^s + sum_j' e^(s_j' - c)),   c = `lower`, s the sink's score; without a sink e^s is left out

    Source: OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card", section 2.2.
    """
    scores, mask = float64(record.scores(head)[query]), record.mask_row(head, query)
    scores = scores - lower if mask is None else scores - lower + float64(mask)
    plain, weights = softmax(scores), softmax(scores, sink)
    v = float64(record.v[record.kv_head(head)])
    return SinkRow(
        scores, plain, weights, 1.0 - float(weights.sum()), *(float(np.linalg.norm(w @ v)) for w in (plain, weights))
    )


WIDEST, HEADS, D_HEAD = 4, 4, 2  # numbers of a row and of the widest latent, heads at most, numbers of a head


@dataclass(frozen=True)
class TwoLatents:
    """Two rows h in a few heads: `scores` and `mixed` computed with keys and values, `absorbed` and `mixed_latents`
    without.

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
    error: float  # by how much the two ways differ at most, in a score or a mixed value


def two_latents(width: int, heads: int) -> TwoLatents:
    """Latent attention, computed with keys and values and without them.

        c = W_DKV h,   q = W_Q h,   k = W_UK c,   v = W_UV c
        with keys: s_j = q . k_j,   z = sum_j a_j v_j     absorbed: s_j = (W_UK^T q) . c_j,   z = W_UV (sum_j a_j c_j)

    a = softmax(s / sqrt(d_head)); both tokens see both.  A latent has `width` numbers (1 to 4), for `heads` heads (1 to 4).
    The norm of the latent and the rotary part of queries and keys are left out.

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
    z, absorbed_z = softmax(scores / D_HEAD**0.5) @ v, softmax(absorbed / D_HEAD**0.5) @ c @ W_UV.mT
    error = max(np.abs(scores - absorbed).max(), np.abs(z - absorbed_z).max())
    return TwoLatents(h, W_DKV, W_Q, W_UK, W_UV, c, q, k, moved, scores, absorbed, z, absorbed_z, float(error))
