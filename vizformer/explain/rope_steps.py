"""The steps of rotary positions: the query and the keys are rotated pair by pair, by angles that depend on their
positions.
"""

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.explain import latex
from vizformer.explain.operands import Operands
from vizformer.explain.proof_anchors import recorded_head
from vizformer.explain.rope import turn
from vizformer.explain.step import Axis, Made, Operand, Proof, Step
from vizformer.explain.sublayer import ROWS, Sublayer
from vizformer.messages import N_, Message


def rotation_steps(o: Operands) -> list[Step]:
    """The steps that rotate the query and the keys; none without rotary positions."""
    if o.angles is None:
        return []
    i, pairs = o.query, o.angles.shape[1]
    query_text = N_(
        "Nothing was added to the embeddings for the position. Instead the {pairs} pairs of numbers of the query, "
        "m and m + {pairs}, are each turned like a clock hand: pair 0 by {position} radians at position {position}, "
        "later pairs ever more slowly.",
        pairs=pairs,
        position=i,
    )
    keys_text = N_(
        "Each key is turned by its own position. The dot product of a turned query and a turned key depends only on "
        "how far apart the two stand: turning both by the same angle changes nothing."
    )
    hat, given = (r"\hat ", "_normed") if o.site.attention.q_norm is not None else ("", "")
    keys: tuple[Axis, ...] = ("keys", "features")
    before_q = Operand(rf"{hat}q_{{{i}}}", N_("the query before"), o.q_normed)
    before_k = Operand(f"{hat}K", N_("the keys before, one row each"), o.k_normed, keys)
    angle = N_("the angle of each pair, in radians")

    def step(
        letter: str, title: Message, text: Message, index: str, live: str, symbol: str, at: str, *operands: Operand
    ) -> Step:
        recomputed, recorded = (
            (o.q_recomputed, o.record.q[o.head, i]) if letter == "q" else (o.k_recomputed, o.record.k[o.kv_head])
        )
        return Step(
            f"{letter}_turned",
            title,
            text,
            formula(f"{hat}{letter}", letter, index, o.slowed),
            live,
            symbol,
            recomputed,
            f"{angle_code(o.theta, pairs, at, o.slowed)}\n{_code(letter, given)}",
            Proof.compare(recorded_head(letter, o), recomputed, recorded),
            operands=(*operands, *slowing_operands(o.slowed)),
            axes=operands[0].axes,
            inputs=divisor_input(o.slowed),
        )

    title, live = N_("Turn the query by its position"), _live("q", i, o.q_normed, o.angles[i])
    query = step(
        "q", title, query_text, "i", live, rf"q'_{{{i}}}", str(i), before_q, Operand(r"\phi", angle, o.angles[i])
    )
    j = min(1, o.n_k - 1)  # key 1, as the angles of key 0 are all 0
    title, live = N_("Turn every key by its position"), _live("k", j, o.k_normed[j], o.angles[j])
    angles, at = Operand(r"\Phi", angle, o.angles, keys), f"torch.arange({o.n_k})[:, None]"
    return [query, step("k", title, keys_text, "j", live, "K'", at, before_k, angles)]


def angle_code(theta: float, pairs: int, position: str, slowed: Float[ndarray, " pairs"] | None) -> str:
    """The code of the angles at a position (a number, or a column of them), and of their cosines and sines."""
    slower = "" if slowed is None else " / c"
    return (
        f"m = torch.arange({pairs}, dtype=torch.float64)  # pair m: numbers m and m + {pairs}\n"
        f"phi = {position} * {theta!r} ** (-2 * m / {2 * pairs}){slower}\n"
        "cos, sin = phi.cos().float(), phi.sin().float()"
    )


def divisor_input(slowed: Float[ndarray, " pairs"] | None) -> dict[str, Tensor]:
    """The input of `angle_code`: the divisors of the angles, if there are any."""
    return {} if slowed is None else {"c": torch.from_numpy(slowed)}


def slowing_operands(slowed: Float[ndarray, " pairs"] | None) -> tuple[Operand, ...]:
    """The divisors of the angles as an operand; none if the model has none."""
    if slowed is None:
        return ()
    by = N_("by what each pair's angle is divided, to reach texts longer than those of the first training")
    return (Operand("c", by, slowed),)


def formula(before: str, letter: str, position: str, slowed: Float[ndarray, " pairs"] | None) -> str:
    """The formula of the rotation of pair m of a query or key, and of its angle."""
    first, second = f"{before}_m", f"{before}_{{m + d/2}}"
    by = "" if slowed is None else " / c_m"
    return (
        rf"\begin{{aligned}} {letter}'_m &= {first} \cos\phi_m - {second} \sin\phi_m \\"
        rf" {letter}'_{{m + d/2}} &= {first} \sin\phi_m + {second} \cos\phi_m \\"
        rf" \phi_m &= {position}\,\theta^{{-2m/d_\mathrm{{head}}}}{by} \end{{aligned}}"
    )


def _code(letter: str, given: str) -> str:
    return (
        f"first, second = {letter}{given}.chunk(2, dim=-1)\n"
        f"{letter}_turned = torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)"
    )


def _live(letter: str, position: int, row: Float[ndarray, " d_head"], angle: Float[ndarray, " pairs"]) -> str:
    """The rotation of the first pair, with its numbers."""
    half = len(angle)
    first, second, turned = row[0], row[half], turn(row, angle)
    cos, sin = latex.factor(np.cos(angle[0])), latex.factor(np.sin(angle[0]))
    return (
        rf"{letter}'_{{{position},0}} = {latex.number(first)} \cdot {cos} - {latex.factor(second)} \cdot {sin} = "
        rf"{latex.number(turned[0])}, \qquad "
        rf"{letter}'_{{{position},{half}}} = {latex.number(first)} \cdot {sin} + {latex.factor(second)} \cdot {cos} = "
        rf"{latex.number(turned[half])}"
    )


def layer_step(
    at: Sublayer,
    given: Float[ndarray, "h n d_head"],
    turned: tuple[ndarray, ndarray],
    angles: Float[ndarray, "n pairs"],
    theta: float,
    slowed: Float[ndarray, " pairs"] | None,
    proof: Proof,
    *,
    normed: bool,
) -> Step:
    """The rotation of all heads and positions at once: `given` are the queries before it, `turned` queries and keys
    after.

    `theta` is the base of the angles, `slowed` their divisors for longer texts; `normed` says whether
    queries and keys were normalised before.
    """
    n_q, half = given.shape[1], angles.shape[1]
    cos, sin, last = latex.factor(np.cos(angles[-1, 0])), latex.factor(np.sin(angles[-1, 0])), n_q - 1
    hat = r"\hat " if normed else ""
    return Step(
        at.key("turned"),
        N_("Turn queries and keys by their positions"),
        N_(
            "In every head, pair m of row i (numbers m and m + {half}) is turned by an angle that grows with i and "
            "shrinks with m.",
            half=half,
        ),
        formula(f"{hat}q", "q", "i", slowed),
        rf"Q'_{{0,{last},0}} = {latex.number(given[0, -1, 0])} \cdot {cos} - {latex.factor(given[0, -1, half])} \cdot "
        rf"{sin} = {latex.number(turn(given[0, -1], angles[-1])[0])}",
        "Q'",
        turned[0],
        angle_code(theta, half, f"torch.arange({n_q})[:, None]", slowed)
        + "\n"
        + "q, k = (torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1) "
        "for a, b in (t.chunk(2, dim=-1) for t in (q, k)))",
        proof,
        operands=(Operand(r"\Phi", N_("the angle of each pair, in radians"), angles, ROWS), *slowing_operands(slowed)),
        axes=("heads", "queries", "features"),
        inputs=divisor_input(slowed),
        also=(Made("k", Operand("K'", N_("the keys, turned"), turned[1], ("heads", "keys", "features"))),),
        meaning=N_("the queries, turned"),
    )
