"""The laboratory State space: two tokens by hand, token by token with a state, and at once with a map."""

import streamlit as st

from vizformer import figures
from vizformer.components import matrix, table
from vizformer.components.table import Row
from vizformer.explain import latex
from vizformer.explain.mixers_by_hand import VALUES, TwoSteps, two_steps
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.mixers.delta import in_a_row, numbers, two_tokens
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls

lab = Laboratory("mixers", "space")
CODE = """a = torch.exp(-rate * steps)
S, read = torch.zeros(2, 2), []
for i in range(2):  # token by token
    S = a[i] * S + torch.outer(keys[i], steps[i] * values[i])
    read.append(S.T @ keys[i] + skip * values[i])
read = torch.stack(read)
L = torch.tensor([[1.0, 0.0], [a[1], 1.0]])  # at once
M = L * (keys @ keys.T) * steps + skip * torch.eye(2)
same = M @ values"""


@lab.draws
def draw_state_space(subject: Subject) -> None:
    """The map; below it how it is made, the state on its way, and what both give."""
    picture = st.container()  # above what can be turned
    with controls():
        angle = lab.slider("angle", 0, 180, 60, 15)
        step = lab.slider("step", 0.0, 2.0, 1.0, 0.25)
        rate = lab.slider("rate", 0.0, 2.0, 0.5, 0.25)
        skip = lab.slider("skip", -1.0, 1.0, 0.0, 0.25)
    found, tokens = two_steps(angle, step, rate, skip), two_tokens(subject)
    drawn = figures.attention_heatmap(found.map, tokens, tokens, kind="scores", title=lab.text("picture"))
    drawn.update_traces(texttemplate="%{z:.2f}")
    with picture:
        chart.show(drawn, key="mixers.space", title_above=True)
    st.html(matrix.style() + table.style())
    _parts(found, tokens)
    rows = [
        Row(name, *(numbers(of[at]) for of in (VALUES, found.read, found.map @ VALUES)))
        for at, name in enumerate(tokens)
    ]
    st.html(table.to_html(lab.columns("token", "value", "state", "map"), rows))
    lesson.ask(entry(subject))
    lesson.ask(nothing(subject))
    lesson.formula(
        r"\begin{aligned} S_i &= a_i\,S_{i-1} + b_i\,(\Delta_i v_i)^\top \\ o_i &= S_i^\top c_i + D\,v_i \\ "
        r"M &= L \odot (C B^\top)\,\mathrm{diag}(\Delta) + D\,I \end{aligned}",
        live=rf"M_{{2,1}} = a_2 \cdot (c_2 \cdot b_1) \cdot \Delta_1 = {latex.number(found.keep)} \cdot "
        rf"{latex.factor(found.scores[1, 0])} \cdot 1 = {latex.number(found.map[1, 0])}",
        code=CODE,
        given={"keys": found.keys, "values": VALUES, "steps": found.steps, "rate": float(rate), "skip": float(skip)},
    )


@lab.asks("entry")
def entry(subject: Subject) -> lesson.Number:
    said = lab.asked("entry", wrong={"kept": 1, "step": 0.125, "score": 0.5})
    return lesson.Number(answer=0.25, tolerance=0.01, written="{:.3g}".format, **said)


@lab.asks("nothing")
def nothing(subject: Subject) -> lesson.Number:
    return lesson.Number(answer=1, **lab.asked("nothing", wrong={"all": 0}))


def _parts(found: TwoSteps, tokens: tuple[str, str]) -> None:
    """Draws the factors of the map, and the state after each token."""
    parts = {"left": found.left, "scores": found.scores, "first": found.states[0], "second": found.states[1]}
    first, second = tokens
    in_a_row({lab.text(f"line.{name}", first=first, second=second): value for name, value in parts.items()})
