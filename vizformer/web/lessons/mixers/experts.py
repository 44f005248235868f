"""The laboratory Experts: two tokens through four small networks, of which a router chooses a few for each."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Row
from vizformer.explain import latex
from vizformer.explain.mixers_by_hand import ROUTER, W_IN, W_OUT, TwoRouted, two_routed
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.mixers.delta import numbers, two_tokens
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls

lab = Laboratory("mixers", "experts")
CODE = """p = torch.softmax(x @ W_r.T, dim=-1)
g, chosen = p.topk(k, dim=-1)
{divide}y = torch.zeros(2, 2)
for i in range(2):  # each token
    for weight, e in zip(g[i], chosen[i]):  # no other expert computes
        y[i] += weight * torch.relu(W_in[e] @ x[i]) * W_out[e]"""
DIVIDE = "g = g / g.sum(-1, keepdim=True)\n"


@lab.draws
def draw(subject: Subject) -> None:
    """Shares and weights of both tokens; below them the second token, expert by expert."""
    picture = st.container()  # above what can be turned
    with controls():
        k = lab.slider("k", 1, len(ROUTER), 2)
        turn = lab.slider("turn", 0, 345, 120, 15)
        renormalised = lab.toggle("divided", True)
    found, tokens = two_routed(turn, k, renormalised=renormalised), two_tokens(subject)
    drawn = figures.matrix_heatmap(
        np.stack([found.probabilities, found.weights], axis=1).reshape(4, -1),
        [lab.text(f"row.{name}", token=token) for token in tokens for name in ("share", "weight")],
        [str(expert) for expert in range(1, len(ROUTER) + 1)],
        column_title=lab.text("columns.expert"),
        title=lab.text("picture"),
    )
    drawn.update_traces(texttemplate="%{z:.3f}", showscale=False)
    with picture:
        chart.show(drawn, key="mixers.experts", title_above=True)
    _second_token(found, tokens[1])
    lab.note("cost", used=k * W_IN[0].size * 2, all=W_IN.size + W_OUT.size, router=ROUTER.size)
    lesson.ask(mixture(subject))
    lesson.ask(bill(subject))
    chosen = np.flatnonzero(found.weights[1])
    lesson.formula(
        r"\begin{aligned} p &= \mathrm{softmax}(W_r\,x), \qquad T = \text{top-}k(p) \\ g_e &= "
        + (r"p_e \,\big/ \sum_{e' \in T} p_{e'}" if renormalised else "p_e")
        + r" \\ y &= \sum_{e \in T} g_e\,\mathrm{FFN}_e(x) \\ "
        r"\mathrm{FFN}_e(x) &= \max(0,\, w_e \cdot x)\,u_e \end{aligned}",
        live=rf"y_1 = {latex.sum_of_products(found.weights[1, chosen], found.outputs[1, chosen, 0])} = "
        + latex.number(found.y[1, 0]),
        code=CODE.format(divide=DIVIDE if renormalised else ""),
        given={"x": found.x, "W_r": ROUTER, "W_in": W_IN, "W_out": W_OUT, "k": k},
    )


@lab.asks("mixture")
def mixture(subject: Subject) -> lesson.Number:
    said = lab.asked("mixture", wrong={"kept": 3.2, "mean": 6, "best": 2})
    return lesson.Number(answer=4, tolerance=0.01, written="{:g}".format, **said)


@lab.asks("bill")
def bill(subject: Subject) -> lesson.Choice:
    return lab.choice("bill", ("two", "apart", "eight"), "apart")


def _second_token(found: TwoRouted, token: str) -> None:
    """Score, share and weight of each expert, what the chosen ones give, and their sum."""
    rows = []
    for expert, weight in enumerate(found.weights[1]):
        shown = numbers(found.outputs[1, expert]) if weight else lab.text("unused")
        cells = (found.scores[1, expert], found.probabilities[1, expert], weight)
        rows.append(Row(str(expert + 1), *map(float, cells), shown, kind="marked" if weight else "faint"))
    total = float(found.weights[1].sum())
    rows.append(Row(lab.text("sum"), "", 1.0, total, numbers(found.y[1]), kind="sum"))
    names = lab.columns("expert", "score", "share", "weight", "output")
    st.html(
        table.style() + table.to_html(names, rows, caption=lab.text("caption", token=token, row=numbers(found.x[1])))
    )
