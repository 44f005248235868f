"""The steps of rotary positions: the query and the keys are rotated pair by pair, by angles that depend on their
positions.
"""

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.explain import latex
from vizformer.explain.attention_numbers import AttentionNumbers, HeadNumbers
from vizformer.explain.position_terms import Rotation, turn
from vizformer.explain.step import Made, Operand, Proof, Step, filled
from vizformer.explain.sublayer import KEYS_OF_HEADS, QUERIES_OF_HEADS, ROWS
from vizformer.messages import N_

_ANGLE = N_("the angle of each pair, in radians")
# q or k -> title, text, what is turned
_WORDS = {
    "q": (
        N_("Turn the query by its position"),
        N_(
            "Nothing was added to the embeddings for the position. Instead the {pairs} pairs of numbers of the query, "
            "m and m + {pairs}, are each turned like a clock hand: pair 0 by {position} radians at position {position}, "
            "later pairs ever more slowly."
        ),
        N_("the query before"),
    ),
    "k": (
        N_("Turn every key by its position"),
        N_(
            "Each key is turned by its own position. The dot product of a turned query and a turned key depends only on "
            "how far apart the two stand: turning both by the same angle changes nothing."
        ),
        N_("the keys before, one row each"),
    ),
}


def rotation_steps(o: HeadNumbers) -> list[Step]:
    """The steps that rotate the query and the keys; none without rotary positions."""
    turned, i = o.all.rotation, o.query
    if turned is None:
        return []
    angles, pairs = turned.angles, turned.angles.shape[1]
    hat, given = (r"\hat ", "_normed") if o.site.attention.q_norm is not None else ("", "")
    j = min(1, o.n_k - 1)  # key 1, as the angles of key 0 are all 0
    steps = []
    for name, index, at, symbol, before_symbol, angle, place in (
        ("q", "i", i, rf"q'_{{{i}}}", rf"{hat}q_{{{i}}}", Operand(r"\phi", _ANGLE, angles[i]), str(i)),
        (
            "k",
            "j",
            j,
            "K'",
            f"{hat}K",
            Operand(r"\Phi", _ANGLE, angles, o.axes("k")),
            f"torch.arange({o.n_k})[:, None]",
        ),
    ):
        title, text, what = _WORDS[name]
        before, row = o.after_step(name, "_normed"), o.part(name, o.all.after_step(name, "_normed"))
        row = row if name == "q" else row[j]
        values = {"pairs": pairs, "position": i} if name == "q" else {}
        half = (
            _live(f"{name}'_{{{at},0}}", row, angles[at], 0),
            _live(f"{name}'_{{{at},{pairs}}}", row, angles[at], pairs),
        )
        steps.append(
            Step(
                f"{name}_turned",
                title,
                filled(text, **values),
                _formula(f"{hat}{name}", name, index, turned),
                r", \qquad ".join(half),
                symbol,
                o.after_step(name, "_turned"),
                f"{_angle_code(turned, place)}\n"
                f"first, second = {name}{given}.chunk(2, dim=-1)\n"
                f"{name}_turned = torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)",
                o.proof(name, "_turned"),
                (Operand(before_symbol, what, before, o.axes(name)), angle, *_slowing_operands(turned)),
                axes=o.axes(name),
                inputs=_divisor_input(turned),
            )
        )
    return steps


def layer_step(at: AttentionNumbers, proof: Proof) -> Step:
    """The rotation of all heads and positions at once."""
    turned = at.rotation
    assert turned is not None
    hat, last, half = r"\hat " * (at.attention.q_norm is not None), len(at.x) - 1, turned.angles.shape[1]
    q, k = (at.after_step(name, "_turned") for name in "qk")
    return Step(
        at.key("turned"),
        N_("Turn queries and keys by their positions"),
        N_(
            "In every head, pair m of row i (numbers m and m + {half}) is turned by an angle that grows with i and "
            "shrinks with m.",
            half=half,
        ),
        _formula(f"{hat}q", "q", "i", turned),
        _live(rf"Q'_{{0,{last},0}}", at.after_step("q", "_normed")[0, -1], turned.angles[-1], 0),
        "Q'",
        q,
        f"{_angle_code(turned, f'torch.arange({len(at.x)})[:, None]')}\n"
        "q, k = (torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1) "
        "for a, b in (t.chunk(2, dim=-1) for t in (q, k)))",
        proof,
        operands=(Operand(r"\Phi", _ANGLE, turned.angles, ROWS), *_slowing_operands(turned)),
        axes=QUERIES_OF_HEADS,
        inputs=_divisor_input(turned),
        also=(Made("k", Operand("K'", N_("the keys, turned"), k, KEYS_OF_HEADS)),),
        meaning=N_("the queries, turned"),
    )


def _angle_code(turned: Rotation, position: str) -> str:
    """The code of the angles at a position (a number, or a column of them), and of their cosines and sines."""
    slower, pairs = "" if turned.slowed is None else " / c", turned.angles.shape[1]
    return (
        f"m = torch.arange({pairs}, dtype=torch.float64)  # pair m: numbers m and m + {pairs}\n"
        f"phi = {position} * {turned.theta!r} ** (-2 * m / {2 * pairs}){slower}\n"
        "cos, sin = phi.cos().float(), phi.sin().float()"
    )


def _divisor_input(turned: Rotation) -> dict[str, Tensor]:
    return {} if turned.slowed is None else {"c": torch.from_numpy(turned.slowed)}


def _slowing_operands(turned: Rotation) -> tuple[Operand, ...]:
    if turned.slowed is None:
        return ()
    by = N_("by what each pair's angle is divided, to reach texts longer than those of the first training")
    return (Operand("c", by, turned.slowed),)


def _formula(before: str, letter: str, position: str, turned: Rotation) -> str:
    """The formula of the rotation of pair m of a query or key, and of its angle."""
    first, second = f"{before}_m", f"{before}_{{m + d/2}}"
    by = "" if turned.slowed is None else " / c_m"
    return (
        rf"\begin{{aligned}} {letter}'_m &= {first} \cos\phi_m - {second} \sin\phi_m \\"
        rf" {letter}'_{{m + d/2}} &= {first} \sin\phi_m + {second} \cos\phi_m \\"
        rf" \phi_m &= {position}\,\theta^{{-2m/d_\mathrm{{head}}}}{by} \end{{aligned}}"
    )


def _live(symbol: str, row: Float[ndarray, " d_head"], angles: Float[ndarray, " pairs"], number: int) -> str:
    """The rotation of the first pair, with its numbers: that of `number`, the first or the second of the pair."""
    pairs = len(angles)
    first, second = latex.number(row[0]), latex.factor(row[pairs])
    cos, sin = latex.factor(np.cos(angles[0])), latex.factor(np.sin(angles[0]))
    sums = rf"{first} \cdot {sin} + {second} \cdot {cos}" if number else rf"{first} \cdot {cos} - {second} \cdot {sin}"
    return rf"{symbol} = {sums} = {latex.number(turn(row, angles)[number])}"
