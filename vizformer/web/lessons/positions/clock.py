"""A laboratory of the lesson Positions: the sinusoidal code as clock hands, and the rotation that leads k positions on."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.positions import shift_matrix
from vizformer.components import matrix
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions.sinusoid import ROWS, code, facts, length, position, say_whose, width
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls

lab = Laboratory("positions", "clock")
CLOCKS = 8
WIDTH, STEPS = 64, 3  # of the code of the question; positions led on


@cached
def rotation(d_model: int, k: int) -> np.ndarray:
    """R(k), which leads the code k positions on [d_model, d_model]."""
    return shift_matrix(k, d_model)


@lab.draws
def draw_clock(subject: Subject) -> None:
    with controls():
        d = width(lab, subject)
        pair, pos, k = lab.slider("pair", 0, d // 2 - 1, 1), position(lab), lab.slider("k", 0, 32, 3)
    lesson.ask(clock_question(subject, d, max(k, 1)))
    rows, shown = code(ROWS, d), _shown_pairs(d, pair)
    pairs = rows.reshape(len(rows), -1, 2)[:, shown]
    chart.show(
        figures.position_clocks(
            pairs[pos],
            [lab.text("hand", pair=i) + f"\nλ = {length(d, i)}" for i in shown],
            pos,
            moved=(pairs[pos + k], pos + k),
        ),
        key="positions.clocks",
    )
    inside = pos < len(subject.tokens)
    lab.say("at", form="token" if inside else "none", position=pos, token=subject.tokens[pos].text if inside else "")
    say_whose(lab, subject, d)
    _rotation(d, pair, pos, k, rows)


@lab.asks("rotation")
def clock_question(subject: Subject, d: int = WIDTH, steps: int = STEPS) -> lesson.Choice:
    before, on = 3, 40
    positions = {"first": before, "second": before + steps, "third": on, "fourth": on + steps, "times": on - before}
    checked = {"steps": steps, "d": d, "error": f"{facts(d, steps).shift_error:.1e}", "last": ROWS - 1 - steps}
    return lab.choice("rotation", ("same", "own", "power", "none"), "same", **positions, **checked)


def _shown_pairs(d: int, pair: int) -> list[int]:
    """Pairs from the fastest to the slowest, in equal steps; the chosen one instead of its nearest."""
    steps = set(np.linspace(0, d // 2 - 1, min(CLOCKS, d // 2)).round().astype(int).tolist())
    if pair not in steps:
        steps = steps - {min(steps, key=lambda other: abs(other - pair))} | {pair}
    return sorted(steps)


def _rotation(d: int, pair: int, pos: int, k: int, rows: np.ndarray) -> None:
    """PE(pos + k) = R(k) PE(pos): one block with its numbers, the matrix, and the check over all positions."""
    turn, hand = rotation(d, k), slice(2 * pair, 2 * pair + 2)

    def column(values: np.ndarray) -> str:
        return rf"\begin{{bmatrix}} {values[0]:.3f} \\ {values[1]:.3f} \end{{bmatrix}}"

    square = " \\\\ ".join(f"{a:.3f} & {b:.3f}" for a, b in turn[hand, hand])
    lesson.formula(
        r"\underbrace{\begin{bmatrix} \sin((p{+}k)\omega_i) \\ \cos((p{+}k)\omega_i) \end{bmatrix}}"
        r"_{\mathrm{PE}(p+k)} = \underbrace{\begin{bmatrix} \cos(k\omega_i) & \sin(k\omega_i) \\"
        r" -\sin(k\omega_i) & \cos(k\omega_i) \end{bmatrix}}_{R(k)} \underbrace{\begin{bmatrix} \sin(p\,\omega_i) \\"
        r" \cos(p\,\omega_i) \end{bmatrix}}_{\mathrm{PE}(p)}",
        live=rf"{column(rows[pos + k, hand])} = \begin{{bmatrix}} {square} \end{{bmatrix}} {column(rows[pos, hand])}",
        code=f"p, k, i, d = {pos}, {k}, {pair}, {d}\n"
        "omega = 10000.0 ** (-2 * i / d)\n\n"
        "def hand(pos):  # pair i of PE(pos)\n"
        "    return torch.tensor([math.sin(pos * omega), math.cos(pos * omega)])\n\n"
        "cos, sin = math.cos(k * omega), math.sin(k * omega)\n"
        "R = torch.tensor([[cos, sin], [-sin, cos]])\n"
        "moved = R @ hand(p)  # which is hand(p + k)",
    )
    whole = matrix.to_html(turn, caption=lab.text("matrix", k=k), digits=2)
    st.html(f'{matrix.style()}<div class="vf-compact">{whole}</div>')
    st.success(lab.text("checked", last=ROWS - 1 - k, k=k, error=f"{facts(d, k).shift_error:.1e}"))
