"""The sinusoidal code as clock hands, in the lesson Positions, and the rotation that leads k positions on."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import matrix
from vizformer.figures import clocks
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions import computations
from vizformer.web.lessons.positions.code_choice import position, rounded, whose, width
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

CLOCKS = 8


@laboratory
def clock(subject: Subject) -> None:
    """Pairs as clock hands, and the rotation that leads k positions on."""
    st.html(matrix.style())
    d = width(subject)
    pair = st.slider(_("Pair i"), 0, d // 2 - 1, **lesson.setting("positions.pair", 1, range(d // 2)))
    pos = position()
    k = st.slider(_("Steps on, k"), 0, 32, **lesson.setting("positions.k", 3, range(33)))
    lesson.ask(rotation_question(d, max(k, 1)))
    rows = computations.code(computations.ROWS, d)
    shown = shown_pairs(d, pair)
    pairs = rows.reshape(len(rows), -1, 2)[:, shown]
    chart.show(
        figures.position_clocks(
            pairs[pos],
            [_("pair {pair}", pair=i) + f"\nλ = {rounded(computations.wavelength(d, i))}" for i in shown],
            pos,
            moved=(pairs[pos + k], pos + k),
            words=words(clocks.ENGLISH),
        ),
        key="positions.clocks",
    )
    tokens = subject.tokens
    if pos < len(tokens):
        st.text(_("At position {position} of your sentence stands “{token}”.", position=pos, token=tokens[pos].text))
    else:
        st.text(_("Your sentence ends before position {position}; the code goes on.", position=pos))
    whose(subject, d)
    rotation(d, pair, pos, k, rows)


def shown_pairs(d: int, pair: int) -> list[int]:
    """Pairs from the fastest to the slowest, in equal steps; the chosen one instead of its nearest."""
    steps = set(np.linspace(0, d // 2 - 1, min(CLOCKS, d // 2)).round().astype(int).tolist())
    if pair not in steps:
        steps = steps - {min(steps, key=lambda other: abs(other - pair))} | {pair}
    return sorted(steps)


def rotation(d: int, pair: int, pos: int, k: int, rows: np.ndarray) -> None:
    """PE(pos + k) = R(k) PE(pos): one block with its numbers, the matrix, and the check over all positions."""
    turn, even = computations.shift(d, k), 2 * pair
    block, before, after = turn[even : even + 2, even : even + 2], rows[pos, even : even + 2], rows[pos + k]

    def column(values: np.ndarray) -> str:
        return rf"\begin{{bmatrix}} {values[0]:.3f} \\ {values[1]:.3f} \end{{bmatrix}}"

    square = " \\\\ ".join(f"{a:.3f} & {b:.3f}" for a, b in block)
    lesson.formula(
        r"\underbrace{\begin{bmatrix} \sin((p{+}k)\omega_i) \\ \cos((p{+}k)\omega_i) \end{bmatrix}}"
        r"_{\mathrm{PE}(p+k)} = \underbrace{\begin{bmatrix} \cos(k\omega_i) & \sin(k\omega_i) \\"
        r" -\sin(k\omega_i) & \cos(k\omega_i) \end{bmatrix}}_{R(k)} \underbrace{\begin{bmatrix} \sin(p\,\omega_i) \\"
        r" \cos(p\,\omega_i) \end{bmatrix}}_{\mathrm{PE}(p)}",
        live=rf"{column(after[even : even + 2])} = \begin{{bmatrix}} {square} \end{{bmatrix}} {column(before)}",
        code=f"p, k, i, d = {pos}, {k}, {pair}, {d}\n"
        "omega = 10000.0 ** (-2 * i / d)\n\n"
        "def hand(pos):  # pair i of PE(pos)\n"
        "    return torch.tensor([math.sin(pos * omega), math.cos(pos * omega)])\n\n"
        "cos, sin = math.cos(k * omega), math.sin(k * omega)\n"
        "R = torch.tensor([[cos, sin], [-sin, cos]])\n"
        "moved = R @ hand(p)  # which is hand(p + k)",
    )
    whole = matrix.to_html(turn, caption=_("R({k}), the same at every position", k=k), digits=2)
    st.html(f'<div class="vf-compact">{whole}</div>')
    error = computations.facts(d, k).shift_error
    st.success(
        _(
            "Checked for every position up to {last}: R({k}) PE(pos) and PE(pos + {k}) differ by {error} at most.",
            last=computations.ROWS - 1 - k,
            k=k,
            error=f"{error:.1e}",
        )
    )


def rotation_question(d: int, steps: int) -> lesson.Choice:
    """Does the rotation depend on where it begins?"""
    before, on = 3, 40
    error = computations.facts(d, steps).shift_error
    return lesson.Choice(
        "positions",
        "rotation",
        _(
            "A matrix R turns the code of position {first} into that of position {second}. Which matrix turns the code of "
            "position {third} into that of position {fourth}?",
            first=before,
            second=before + steps,
            third=on,
            fourth=on + steps,
        ),
        [
            _("the same R"),
            _("another one: every position has its own"),
            _("R, {times} times one after the other", times=on - before),
            _("none: only neighbours can be led on so"),
        ],
        0,
        _(
            "Each hand turns by the same angle on every step, so R depends on the {steps} steps alone. For a code of width "
            "{d}, R times the code differs from the true one by {error} at most, over all positions up to {last}.",
            steps=steps,
            d=d,
            error=f"{error:.1e}",
            last=computations.ROWS - 1 - steps,
        ),
    )
