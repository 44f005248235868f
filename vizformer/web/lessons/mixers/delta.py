"""The laboratory Delta rule: two tokens and a state of four numbers, by hand, beside a state that just adds."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import matrix, table
from vizformer.components.table import Row
from vizformer.explain import latex
from vizformer.explain.mixers_by_hand import TwoWrites, two_writes
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("mixers", "delta")
CODE = """S, total = torch.zeros(2, 2), torch.zeros(2, 2)
for k, v in zip(keys, values):
    kept = keep * S  # forget
    held = kept.T @ k  # read what the key holds already
    S = kept + torch.outer(k, beta * (v - held))  # write the difference
    total = total + torch.outer(k, v)  # linear attention just adds
read, read_sum = keys @ S, keys @ total"""


def two_tokens(subject: Subject) -> tuple[str, str]:
    """Two of the sentence, one after the other; the same one twice where it has no other."""
    texts = labels.told_apart([token for token in subject.tokens if not token.special] or subject.tokens)
    return texts[0], texts[min(1, len(texts) - 1)] if len(texts) > 1 else f"{texts[0]} (2)"


@lab.draws
def draw_delta_rule(subject: Subject) -> None:
    """Draws the value read with each key after both tokens, and below it the update by the second token."""
    with controls():
        angle = lab.slider("angle", 0, 180, 30, 15)
        beta = lab.slider("beta", 0.0, 1.0, 1.0, 0.1)
        keep = lab.slider("keep", 0.0, 1.0, 1.0, 0.1)
    found, tokens = two_writes(angle, beta, keep), two_tokens(subject)
    _picture(found, tokens)
    st.html(matrix.style() + table.style())
    _second_token(found, tokens)
    rows = [
        Row(name, *(numbers(of[at]) for of in (found.values, found.read, found.read_sum)))
        for at, name in enumerate(tokens)
    ]
    st.html(table.to_html(lab.columns("key", "wanted", "delta", "sum"), rows))
    second, u = found.writes[1], found.writes[1].written
    lesson.ask(twice(subject))
    lesson.ask(left(subject))
    lesson.formula(
        r"u_i = \beta\,\big(v_i - (a\,S_{i-1})^\top k_i\big), \qquad S_i = a\,S_{i-1} + k_i\,u_i^\top",
        live=rf"u_2 = {beta:g} \cdot \left({latex.row(found.values[1])} - {latex.row(second.held)}\right) = {latex.row(u)}",
        code=CODE,
        given={"keys": found.keys, "values": found.values, "keep": float(keep), "beta": float(beta)},
    )


@lab.asks("twice")
def twice(subject: Subject) -> lesson.Number:
    said = lab.asked("twice", wrong={"sum": 8, "mean": 4, "first": 3})
    return lesson.Number(answer=5, **said)


@lab.asks("left")
def left(subject: Subject) -> lesson.Number:
    return lesson.Number(answer=1, **lab.asked("left", wrong={"once": 4, "four": 0.5, "nothing": 8}))


def _picture(found: TwoWrites, tokens: tuple[str, str]) -> None:
    """Values as points of the plane: those that were to be kept, and what each rule gives under the keys."""
    groups = {"wanted": found.values, "delta": found.read, "sum": found.read_sum}
    names = dict(zip(groups, lab.columns(*groups), strict=True))
    drawn = figures.named_points(
        {names[key]: [(tokens[i], float(at[i, 0]), float(at[i, 1])) for i in range(2)] for key, at in groups.items()},
        x_title=lab.text("number", n=0),
        y_title=lab.text("number", n=1),
        hover=lab.text("hover"),
        title=lab.text("picture"),
        rings=[names["wanted"]],
        ends=(-4.0, 5.0),
    )
    chart.show(drawn, key="mixers.plane", title_above=True)


def _second_token(found: TwoWrites, tokens: tuple[str, str]) -> None:
    """Forget, read, correct, write: the state on its way."""
    first, second = found.writes
    names = ("before", "forget", "held", "correct", "write", "sums")
    parts = (first.state, second.kept, second.held, second.written, second.state, found.total)
    in_a_row({lab.text(f"line.{name}", token=tokens[1]): of for name, of in zip(names, parts, strict=True)})


def in_a_row(matrices: dict[str, np.ndarray], digits: int = 2) -> None:
    """Draws matrices side by side, each below its caption."""
    tables = (matrix.to_html(np.atleast_2d(of), caption=name, digits=digits) for name, of in matrices.items())
    st.html(f'<div class="vf-row">{"".join(f"<div>{one}</div>" for one in tables)}</div>')


def numbers(values: np.ndarray, digits: int = 2) -> str:
    """Formats the numbers of a row, separated by commas."""
    return ", ".join(matrix.number(float(value), digits) for value in values)
