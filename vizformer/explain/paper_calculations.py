"""Calculations for paper: small numbers drawn from a seed, for the tokens of a sentence, each with its answer.

Two classes with different seeds get different numbers for the same questions; the answers are rounded to the digits that
are asked for.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain.arrays import float64, softmax
from vizformer.explain.examples import paper_attention
from vizformer.messages import N_, Message
from vizformer.model.positions import sinusoidal_encoding

TOKENS = 3  # the number of tokens of the sentence that are used
SEEDS = range(1, 1000)


@dataclass(frozen=True)
class Table:
    """A named row or matrix; `rows` are the names of its rows, where these are tokens."""

    symbol: str
    value: Float[ndarray, "..."]
    rows: tuple[str, ...] = ()
    digits: int = 0


@dataclass(frozen=True)
class Problem:
    """A question with the numbers it is about, and the answer."""

    key: str
    lesson: str  # the address of the lesson that it belongs to
    text: Message  # the question
    formula: str  # LaTeX
    # given, answer: numbers; those of the answer are the key
    given: tuple[Table, ...]
    answer: tuple[Table, ...]
    working: str  # the calculation of the answer's first number, LaTeX


def worksheet(tokens: Sequence[str], seed: int) -> tuple[Problem, ...]:
    """The questions for the first tokens of a sentence (at least one)."""
    draw = np.random.default_rng(seed)
    names = tuple(tokens[:TOKENS])
    n = len(names)
    q = draw.choice([-2.0, -1.0, 1.0, 2.0, 3.0], size=(1, 2))
    K, V = (draw.integers(-2, 4, size=(n, 2)).astype(float) for _ in range(2))
    again = np.random.default_rng(
        [seed, n]
    )  # a random stream of its own, so that the other questions of a version stay as they were printed
    while len(np.unique(K, axis=0)) < n:
        K = again.integers(-2, 4, size=(n, 2)).astype(float)
    paper = paper_attention(q, K, V)
    scores, weights, z = paper.scores, paper.weights, paper.output
    e = " + ".join(f"e^{{{score:.2f}}}" for score in scores[0])
    attention = (
        Problem(
            "scores",
            "qkv",
            N_("A query and its keys, n = {n}. Work out the scores, to two decimals.", n=n),
            r"s_j = q \cdot k_j / \sqrt 2",
            (Table("q", q), Table("K", K, names)),
            (Table("s", scores, digits=2),),
            rf"s_0 = ({_g(q[0, 0])} \cdot {_g(K[0, 0])} + {_g(q[0, 1])} \cdot {_g(K[0, 1])}) / \sqrt 2 = {scores[0, 0]:.2f}",
        ),
        Problem(
            "weights",
            "qkv",
            N_("The softmax of these scores, to two decimals. Check that the weights sum to 1."),
            r"a_j = e^{s_j} / \textstyle\sum_k e^{s_k}",
            (),
            (Table("a", weights, digits=2),),
            rf"a_0 = \frac{{e^{{{scores[0, 0]:.2f}}}}}{{{e}}} = {weights[0, 0]:.2f}",
        ),
        Problem(
            "z",
            "qkv",
            N_("Mix the values by these weights."),
            r"z = \textstyle\sum_j a_j v_j",
            (Table("V", V, names),),
            (Table("z", z, digits=2),),
            "z_0 = "
            + " + ".join(rf"{a:.2f} \cdot {_g(v)}" for a, v in zip(weights[0], V[:, 0], strict=True))
            + rf" = {z[0, 0]:.2f}",
        ),
    )
    return (*attention, *_masked(names, draw), _positions(names), _norm(draw), _loss(draw), _count(draw))


def choice_order(name: str, count: int, seed: int) -> tuple[int, ...]:
    """The order in which a version prints the choices of the question `name`: order[place] is the index of a choice."""
    draw = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return tuple(int(index) for index in draw.permutation(count))


def _masked(names: tuple[str, ...], draw: np.random.Generator) -> tuple[Problem, ...]:
    if len(names) < 2:
        return ()
    scores = draw.integers(-2, 4, size=(len(names), len(names))).astype(float)
    hidden = np.where(np.triu(np.ones_like(scores), 1) > 0, -np.inf, scores)
    weights = softmax(hidden)
    a, b = scores[1, 0], scores[1, 1]
    return (
        Problem(
            "masked",
            "masks",
            N_("The scores of a decoder's head. Work out the weights of all rows with the causal mask."),
            r"A = \mathrm{softmax}(S + M), \quad M_{ij} = -\infty \;\; (j > i)",
            (Table("S", scores, names),),
            (Table("A", weights, names, digits=2),),
            rf"A_{{1,0}} = \frac{{e^{{{a:g}}}}}{{e^{{{a:g}}} + e^{{{b:g}}}}} = {weights[1, 0]:.2f}",
        ),
    )


def _positions(names: tuple[str, ...]) -> Problem:
    table = float64(sinusoidal_encoding(len(names), 4))
    last = len(names) - 1
    return Problem(
        "positions",
        "positions",
        N_("The position vectors of these tokens for d = 4, to three decimals (angles in radians)."),
        r"P_{pos,2i} = \sin(pos / 10000^{2i/4}), \quad P_{pos,2i+1} = \cos(pos / 10000^{2i/4})",
        (),
        (Table("P", table, names, digits=3),),
        rf"P_{{{last},2}} = \sin({last} / 100) = {table[last, 2]:.3f}",
    )


def _norm(draw: np.random.Generator) -> Problem:
    x = draw.permutation(np.arange(-3, 6))[:4].astype(float)
    mean, deviation = float(x.mean()), float(x.std())
    y = (x - mean) / deviation
    return Problem(
        "norm",
        "block",
        N_("LayerNorm of this row, with γ = 1, β = 0 and without ε, to two decimals."),
        r"y = (x - \mu) / \sigma, \quad \sigma^2 = \tfrac14 \textstyle\sum_i (x_i - \mu)^2",
        (Table("x", x),),
        (Table("y", y, digits=2),),
        rf"\mu = {mean:.2f}, \; \sigma = {deviation:.2f}, \; y_0 = ({x[0]:g} {_minus(mean)}) / {deviation:.2f} = {y[0]:.2f}",
    )


def _loss(draw: np.random.Generator) -> Problem:
    p = draw.choice([0.5, 0.25, 0.2, 0.1, 0.05, 0.8], size=3, replace=False)
    losses = -np.log(p)
    mean = float(losses.mean())
    return Problem(
        "loss",
        "training",
        N_("Three right tokens had these probabilities. Work out their losses, the mean, and the perplexity."),
        r"L = -\ln p, \quad \overline{L}, \quad e^{\overline{L}}",
        (Table("p", p, digits=2),),
        (Table("L", losses, digits=2), Table("L̄, e^L̄", np.array([mean, np.exp(mean)]), digits=2)),
        rf"L_0 = -\ln {p[0]:g} = {losses[0]:.2f}, \quad e^{{{mean:.2f}}} = {np.exp(mean):.2f}",
    )


def _count(draw: np.random.Generator) -> Problem:
    d, ratio = int(draw.choice([8, 16, 32, 64])), int(draw.choice([2, 4]))
    f = ratio * d
    parts = np.array([4 * d * d + 4 * d, 2 * d * f + f + d, 4 * d])
    return Problem(
        "count",
        "block",
        N_(
            "How many parameters does an encoder layer with d = {d} and d_ff = {f} have, biases "
            "included? Attention, feed-forward, both norms, and the sum.",
            d=d,
            f=f,
        ),
        r"4 d^2 + 4 d, \quad 2 d\, d_{ff} + d_{ff} + d, \quad 2 \cdot 2 d",
        (),
        (Table("n", np.array([*parts, parts.sum()], dtype=float)),),
        rf"4 \cdot {d}^2 + 4 \cdot {d} = {parts[0]}",
    )


def _g(value: float) -> str:
    """A factor, in brackets if it is negative."""
    return f"({value:g})" if value < 0 else f"{value:g}"


def _minus(value: float) -> str:
    """A subtrahend with its sign."""
    return f"+ {-value:.2f}" if value < 0 else f"- {value:.2f}"
