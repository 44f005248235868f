"""What can be measured of ways to tell positions: tokens in another order, effects on scores, the sinusoidal code."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vizformer.config import ModelConfig
from vizformer.explain import position_terms
from vizformer.model import AttentionRecord, Trace, Transformer, without_memory
from vizformer.model.positions import (
    alibi_bias,
    alibi_slopes,
    relative_buckets,
    relative_positions,
    sinusoidal_encoding,
)
from vizformer.options import Positions

SAME = 1e-5  # up to which two rows are the same

# --- a small model, and the same tokens in another order --------------------------------------------------------------


def small_config(positions: Positions, vocab_size: int, *, causal: bool, max_positions: int = 512) -> ModelConfig:
    """Two layers, four heads, 64 numbers a token; the same shapes as the models of `vizformer.training.lengths`."""
    return ModelConfig(
        vocab_size=vocab_size,
        d_model=64,
        n_heads=4,
        d_ff=256,
        n_encoder_layers=0 if causal else 2,
        n_decoder_layers=2 if causal else 0,
        max_positions=max_positions,
        positions=positions,
        norm_order="pre",
        final_norm=True,
        activation="gelu",
        scaled_embedding=True,
        dropout=0.0,
    )


@torch.no_grad()
def small_model(
    positions: Positions, vocab_size: int, *, causal: bool, seed: int = 0, tables_of: Transformer | None = None
) -> Transformer:
    """An untrained model: the same seed gives the same weights under every scheme, only the positions differ.

    Matrices are drawn with variance 1 / columns, norms are fresh, biases 0.  Tables of positions (learned rows, T5's
    biases) are drawn with variance 1, about as large as training makes them, or taken from the model `tables_of`.
    """
    model = Transformer(small_config(positions, vocab_size, causal=causal))
    tables = position_tables(model)
    generator = torch.Generator().manual_seed(seed)  # not torch's own: other threads of a server draw from that one
    for _, parameter in sorted(model.named_parameters()):
        if parameter.dim() == 2 and not any(parameter is table for table in tables):
            drawn = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(drawn * parameter.shape[1] ** -0.5)
    for index, table in enumerate(tables):
        trained = None if tables_of is None else position_tables(tables_of)[index]
        table.copy_(torch.randn(table.shape, generator=generator))
        if trained is not None:
            table[: len(trained)] = trained[: len(table)]
    return model.eval().requires_grad_(False)


def position_tables(model: Transformer) -> list[Tensor]:
    """The learned numbers that tell positions: rows of a table, T5's biases; nothing for the other schemes."""
    names = ("position_embedding.weight", "relative_bias.weight")
    return [parameter for name, parameter in model.named_parameters() if name.endswith(names)]


@dataclass(frozen=True)
class Shuffled:
    """The output rows of a text and of the same tokens in another order."""

    before: Float[np.ndarray, "n d_model"]  # [n, d_model], row i the output at position i
    after: Float[np.ndarray, "n d_model"]  # [n, d_model], row p the output at position p of the reordered text
    order: tuple[int, ...]  # which token of the text stands at position p afterwards
    moved: Float[np.ndarray, " n"]  # [n], for token i of the text the largest |difference| between its two output rows
    # how far the two sets of rows are apart: the largest |difference| of any row to the nearest row of the other set (0
    # up to rounding if they are the same rows in another order)
    sets: float

    @property
    def n_unmoved(self) -> int:
        """How many tokens have the output row that they had before, up to 1e-5."""
        return int((self.moved < SAME).sum())


def other_order(n: int, kind: Literal["reverse", "random"], seed: int) -> tuple[int, ...]:
    """The permutation of n tokens: the reverse one, or a random one other than the identity."""
    if kind == "reverse" or n < 2:
        return tuple(reversed(range(n)))
    drawn, rng = list(range(n)), random.Random(seed)
    while drawn == sorted(drawn):
        rng.shuffle(drawn)
    return tuple(drawn)


@torch.inference_mode()
def shuffle(model: Transformer, ids: Sequence[int], order: Sequence[int]) -> Shuffled:
    """The change of every token's output row when the tokens stand in another order.

    Without positions and without a mask, attention is equivariant: f(P x) = P f(x) for every permutation P, because a
    row's queries, keys and values depend on its token alone and the weighted sum has no order.

    Raises:
        ValueError: `order` is not a permutation of the positions.
    """
    if sorted(order) != list(range(len(ids))):
        raise ValueError(f"{list(order)} is not a permutation of {len(ids)} positions")
    forward = model.decode if model.decoder is not None else model.encode
    before, after = (
        forward(_row(model, row))[0].double().cpu().numpy() for row in (list(ids), [ids[i] for i in order])
    )  # [n, d_model]
    place = np.argsort(order)  # where token i stands afterwards
    apart = np.abs(before[:, None, :] - after[None, :, :]).max(axis=-1)  # [n, n]
    return Shuffled(
        before,
        after,
        tuple(order),
        np.abs(before - after[place]).max(axis=-1),
        float(max(apart.min(axis=0).max(), apart.min(axis=1).max())),
    )


# --- what a scheme adds, to the input and to the scores -------------------------------------------------------------------


@torch.inference_mode()
def input_rows(
    model: Transformer, ids: Sequence[int]
) -> tuple[Float[np.ndarray, "n d_model"], Float[np.ndarray, "n d_model"]]:
    """The embeddings of the tokens (before they are scaled), and the rows that the model adds for their positions.

    Raises:
        ValueError: a model that adds nothing to its input.
    """
    added = model.positions(len(ids))
    if added is None:
        raise ValueError(f"positions={model.config.positions!r} adds nothing to the input")
    return model.embedding(_row(model, ids))[0].cpu().numpy(), added.cpu().numpy()


@torch.inference_mode()
def score_effect(model: Transformer, ids: Sequence[int]) -> Float[np.ndarray, "n_heads n n"]:
    """Scores of the first layer with the model's positions, less the scores that the same weights give without any.

    scores = q k^T / sqrt(d_head) + bias; masked cells are NaN.
    """
    without = _first_scores(_without_positions(model), ids)
    return _first_scores(model, ids) - without


def alibi_penalties(n: int, n_heads: int) -> tuple[Float[np.ndarray, "n n"], float]:
    """(what ALiBi takes off each score of head 0 in a causal model, as a share of the most; the slope of that head).

    share_ij = m_0 (i - j) / (m_0 (n - 1)) for j <= i, and 0 in the masked cells of the future.
    """
    slopes = alibi_slopes(n_heads)
    taken = -alibi_bias(slopes, n, n)[0, 0].double().tril()
    found: Float[np.ndarray, "n n"] = (taken / taken.max().clamp(min=1e-9)).numpy()
    return found, float(slopes[0])


def _first_scores(model: Transformer, ids: Sequence[int]) -> Float[np.ndarray, "n_heads n n"]:
    trace, row = Trace(), _row(model, ids)
    if model.decoder is not None:
        model.decode(row, trace=trace)
    else:
        model.encode(row, trace=trace)
    record = trace[f"{'decoder' if model.decoder is not None else 'encoder'}.0.self"]
    scores = torch.stack([record.scores(head) for head in range(model.config.n_heads)]).double().cpu()
    if model.decoder is not None:
        scores[:, torch.ones(len(ids), len(ids)).triu(1).bool()] = torch.nan
    return scores.numpy()


def bucket_map(n: int, buckets: int, max_distance: int, *, both_sides: bool) -> Int[np.ndarray, "n n"]:
    """T5's bucket of every query and key of n tokens; without `both_sides` later keys count as distance 0."""
    return relative_buckets(relative_positions(n, n), buckets, max_distance, both_sides=both_sides).numpy()


def bias_by_distance(model: Transformer, furthest: int) -> Float[np.ndarray, "n_heads distances"]:
    """What the model adds to the score of a key 0..furthest positions before its query, head by head.

    Raises:
        ValueError: a model that adds nothing to its scores.
    """
    stack: Literal["encoder", "decoder"] = "decoder" if model.decoder is not None else "encoder"
    with torch.inference_mode():
        bias = model.position_bias(stack, furthest + 1)  # [1, n_heads, n, n]
    if bias is None:
        raise ValueError(f"positions={model.config.positions!r} adds nothing to the scores")
    return bias[0, :, -1].flip(-1).double().cpu().numpy()


# --- rotary positions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RotaryPair:
    """A query and a key of a head, turned by their positions."""

    # query, key: the chosen pair of numbers of each, before and after [2]
    query: tuple[Float[np.ndarray, " 2"], Float[np.ndarray, " 2"]]
    key: tuple[Float[np.ndarray, " 2"], Float[np.ndarray, " 2"]]
    part: float  # what this pair adds to q.k
    score: float  # q.k / sqrt(d_head), over all pairs


def rotary_pair(
    q: Float[np.ndarray, " d_head"],
    k: Float[np.ndarray, " d_head"],
    pair: int,
    at: tuple[int, int],
    theta: float = 10_000.0,
) -> RotaryPair:
    """A query and a key of `unturned`, turned as if they stood at the positions `at`; pair m is (m, m + d_head/2).

    score = R(at_0) q . R(at_1) k / sqrt(d_head): with rotations it depends on at_0 - at_1 only.

    Source: Su et al. 2021, "RoFormer", equations 13 to 16.
    """
    half = len(q) // 2
    step, chosen = position_terms.frequencies(theta, len(q)), [pair, pair + half]
    after = [position_terms.turn(row, place * step) for row, place in zip((q, k), at, strict=True)]
    products = (after[0] * after[1]).reshape(2, half).sum(axis=0)  # [half]
    return RotaryPair(
        (q[chosen], after[0][chosen]),
        (k[chosen], after[1][chosen]),
        float(products[pair]),
        float(products.sum() / np.sqrt(len(q))),
    )


@torch.inference_mode()
def unturned(
    model: Transformer, ids: Sequence[int]
) -> tuple[Float[np.ndarray, "n_heads n d_head"], Float[np.ndarray, "n_heads n d_head"]]:
    """Queries and keys of the first layer before any position turns them."""
    trace = Trace()
    _without_positions(model)(_row(model, ids), trace=trace)
    record = trace[f"{'decoder' if model.decoder is not None else 'encoder'}.0.self"]
    return record.q.double().cpu().numpy(), record.k.double().cpu().numpy()


def _without_positions(model: Transformer) -> Transformer:
    """A model without positional information that shares the weights of `model` in memory."""
    with without_memory():
        without = Transformer(replace(model.config, positions="none")).eval()
    without.load_state_dict(model.state_dict(), strict=False, assign=True)
    return without


def _row(model: Transformer, ids: Sequence[int]) -> torch.Tensor:
    """The ids as a tensor [1, n] on the model's device."""
    return torch.tensor([list(ids)], device=model.embedding.weight.device)


# --- a curve over the positions ---------------------------------------------------------------------------------------


def running_mean(curve: Float[np.ndarray, " n"], width: int, border: int) -> Float[np.ndarray, " n"]:
    """A running mean over `width` places (odd), over fewer at the ends and on both sides of `border`.

    Places before the border are not mixed with those from it on: what happens behind the trained length must not seem
    to begin before it.
    """
    sides = []
    for side in np.split(curve, [border]):
        sums = np.concatenate([[0.0], np.cumsum(side, dtype=np.float64)])
        places = np.arange(len(side))
        first, last = np.maximum(places - width // 2, 0), np.minimum(places + width // 2 + 1, len(side))
        sides.append((sums[last] - sums[first]) / (last - first))
    return np.concatenate(sides)


@torch.inference_mode()
def moved_scores(
    model: Transformer, query_id: int, key_id: int, distance: int, furthest: int
) -> Float[np.ndarray, "n_heads moves"]:
    """The score in the first layer of a token at place distance + s for another one at place s, for s = 0..furthest.

    score(s) = f_q(x_query, distance + s) . f_k(x_key, s) / sqrt(d_head) + bias.  In the first layer a query and a key
    depend on their own token and place alone, so that all places are read from two texts: one token, over and over.
    """
    n = furthest + distance + 1
    asks, answers = (_first_record(model, [id] * n) for id in (query_id, key_id))
    scores = []
    for head in range(asks.n_heads):
        q, k = asks.q[head].double(), answers.k[answers.kv_head(head)].double()
        score = (q[distance:] * k[: furthest + 1]).sum(-1) * asks.scale
        if asks.position_bias is not None:
            score = score + asks.position_bias[head].diagonal(-distance)
        scores.append(score)
    return torch.stack(scores).numpy()


def _first_record(model: Transformer, ids: Sequence[int]) -> AttentionRecord:
    trace = Trace()
    model.decode(torch.tensor([list(ids)]), trace=trace)
    return trace["decoder.0.self"]


# What can be measured of the sinusoidal code: its waves, how it turns from one position to the next, its products.


def frequencies(d_model: int) -> Float[np.ndarray, " pairs"]:
    """omega_i = 10000^(-2i/d_model), radians per position: pair i of dimensions (2i, 2i+1) turns by it every step.

    The wavelength is 2 pi / omega_i positions.  Source: Vaswani et al. 2017, section 3.5.
    """
    return 10_000.0 ** (-np.arange(0, d_model, 2) / d_model)


def wavelength(d_model: int, pair: int) -> float:
    """2 pi / omega_i: positions until the pair has turned once."""
    return float(2 * math.pi * 10_000.0 ** (2 * pair / d_model))


def waves(d_model: int, dims: Sequence[int], places: Float[np.ndarray, " n"]) -> Float[np.ndarray, "dims n"]:
    """The code's dimensions at any real position: sin(pos omega_i) where even, cos(pos omega_i) where odd."""
    angle = frequencies(d_model)[np.array(dims) // 2][:, None] * places  # [dims, n]
    odd = np.array([dim % 2 == 1 for dim in dims])[:, None]
    return np.where(odd, np.cos(angle), np.sin(angle))


def shift_matrix(k: int, d_model: int) -> Float[np.ndarray, "d_model d_model"]:
    """R(k) with PE(pos + k) = R(k) PE(pos) for every pos: one 2 x 2 rotation per pair, zeros elsewhere.

    [ sin((pos+k) w) ]   [  cos kw   sin kw ] [ sin(pos w) ]
    [ cos((pos+k) w) ] = [ -sin kw   cos kw ] [ cos(pos w) ]

    by the addition theorems.  Source: the remark in Vaswani et al. 2017, section 3.5, worked out.
    """
    turn = np.zeros((d_model, d_model))
    even = np.arange(0, d_model, 2)
    angle = k * frequencies(d_model)
    turn[even, even] = turn[even + 1, even + 1] = np.cos(angle)
    turn[even, even + 1], turn[even + 1, even] = np.sin(angle), -np.sin(angle)
    return turn


@dataclass(frozen=True)
class CodeFacts:
    """What the first n rows of the sinusoidal code have in common, measured on the rows themselves."""

    largest: float  # largest |entry|; never above 1
    norms: tuple[float, float]  # smallest and largest length of a row; both sqrt(d_model / 2)
    closest: tuple[float, int]  # smallest distance between two different rows, and how far apart these stand
    spread: float  # by how much PE(i).PE(j) differs at most among pairs with the same i - j
    asymmetry: float  # by how much PE(i).PE(j) and PE(j).PE(i) differ at most
    shift_error: float  # largest |PE(pos + k) - R(k) PE(pos)| over all pos, for the k asked for


def code_facts(n: int, d_model: int, k: int = 1) -> CodeFacts:
    """Measures the code of positions 0..n-1, at least 2, as the model adds it (float32 rows, float64 arithmetic)."""
    rows = sinusoidal_encoding(n, d_model).double().numpy()  # [n, d_model]
    products = rows @ rows.T  # [n, n]
    norms = np.sqrt(np.diag(products))
    squared = np.diag(products)[:, None] + np.diag(products)[None, :] - 2 * products
    np.fill_diagonal(squared, np.inf)
    i, j = np.unravel_index(int(squared.argmin()), squared.shape)
    spread = max(float(np.ptp(np.diag(products, apart))) for apart in range(n))
    k = min(k, n - 1)
    moved = rows[: n - k] @ shift_matrix(k, d_model).T
    return CodeFacts(
        largest=float(np.abs(rows).max()),
        norms=(float(norms.min()), float(norms.max())),
        closest=(float(np.linalg.norm(rows[i] - rows[j])), abs(int(i) - int(j))),
        spread=spread,
        asymmetry=float(np.abs(products - products.T).max()),
        shift_error=float(np.abs(rows[k:] - moved).max()),
    )


def product_by_distance(d_model: int, furthest: int) -> Float[np.ndarray, " distances"]:
    """PE(i).PE(j) for |i - j| = 0..furthest: the sum of cos(omega_i (i - j)) over the pairs."""
    return np.cos(np.arange(furthest + 1)[:, None] * frequencies(d_model)).sum(axis=1)


def code_products(n: int, d_model: int) -> Float[np.ndarray, "n n"]:
    """PE(i).PE(j) of positions 0..n-1, as the model adds them (float32 rows, float64 arithmetic)."""
    rows = sinusoidal_encoding(n, d_model).double().numpy()  # [n, d_model]
    return rows @ rows.T


def cosines(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
    """cos(x_i, x_j) = x_i.x_j / (|x_i| |x_j|) of all pairs of rows; none of them may be zero."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T
