"""The laboratory Linear attention: the same queries, keys and values without the softmax, bracketed both ways."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import matrix, table
from vizformer.components.table import Row
from vizformer.explain import attention_without_softmax
from vizformer.explain.attention_without_softmax import LinearAttention, bracketing
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import sizes
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, chart, lesson, proof_badge
from vizformer.web.widgets.lab import Laboratory, aside
from vizformer.web.words import counts, labels

lab = Laboratory("costs", "linear")
SHOWN = 12  # keys, those with the largest weights
CODE = """phi = lambda x: F.elu(x) + 1
q, k, v = phi(torch.randn({n}, {d})), phi(torch.randn({n}, {d})), torch.randn({n}, {d})
weights = {weights}  # [n, n]
through_weights = weights @ v / weights.sum(-1, keepdim=True)
{state}
same = torch.allclose(through_weights, through_state, atol=1e-4)"""
BOTH = {
    "weights": "q @ k.T",
    "state": """state, total = k.T @ v, k.sum(0)  # [d, d], [d]
through_state = q @ state / (q @ total)[:, None]""",
}
CAUSAL = {
    "weights": "(q @ k.T).tril()",
    "state": """state, total, rows = torch.zeros({d}, {d}), torch.zeros({d}), []
for q_i, k_i, v_i in zip(q, k, v):  # a recurrent network: its state is a matrix
    state, total = state + torch.outer(k_i, v_i), total + k_i
    rows.append(q_i @ state / (q_i @ total))
through_state = torch.stack(rows)""",
}


@cached
def linear_attention(subject: Subject, site: str, head: int) -> LinearAttention:
    return attention_without_softmax.linear_attention(subject.trace[site], head)


@cached
def linear_state(subject: Subject, site: str, head: int, query: int) -> np.ndarray:
    return attention_without_softmax.state(subject.trace[site], head, query)


@lab.draws
def draw_linear_attention(subject: Subject) -> None:
    lesson.ask(bracket(subject))
    why = attention_selector.choose(subject, cross=False)
    site, head, query = attention_selector.site(), state.view().head, attention_selector.query(subject)
    found = linear_attention(subject, site, head)
    keys = labels.texts(subject.trace.tokens[labels.stacks(state.view().kind)[1]])
    st.html(table.style() + matrix.style())
    _weights(found, query, keys)
    aside(why)
    proof_badge.show(found.proof, lab.text("alike", difference=f"{found.proof.difference:.1g}"))
    rows = [lab.text("linear"), lab.text("own")]
    st.html(matrix.to_html(np.stack([found.z[query], found.own[query]]), rows=rows, caption=lab.text("z")))
    st.warning(lab.text("other", own=f"{found.apart[query]:.0%}", mean=f"{found.apart.mean():.0%}"))
    if found.causal:
        st.html(matrix.to_html(linear_state(subject, site, head, query), caption=lab.text("state")))
    _costs(subject)
    _formula(found, len(keys), subject.config.d_head)
    lesson.ask(product(subject))


@lab.asks("bracket")
def bracket(subject: Subject) -> lesson.Number:
    n, d = 10 * len(subject.tokens), subject.config.d_head  # the table below has the numbers of the text itself
    found = bracketing(n, d)
    wrong = {"order": found.through_weights, "one": n * d * d, "square": n * n}
    work = {"state": f"{found.through_state:,}", "weights": f"{found.through_weights:,}"}
    said = lab.asked("bracket", subject.model, subject.text, wrong=wrong, tokens=counts.tokens(n), d=d, **work)
    return lesson.Number(answer=found.through_state, **said)


@lab.asks("product")
def product(subject: Subject) -> lesson.Choice:
    return lesson.Choice(
        choices=["|q·k|", "(q·k)²", "e^(−|q − k|²)"], answer=1, **lab.asked("product", wrong={"size": 0, "distance": 2})
    )


def _weights(found: LinearAttention, query: int, keys: list[str]) -> None:
    own, other = found.softmax[query], found.weights[query]
    seen = np.flatnonzero((own > 0) | (other > 0))
    shown = sorted(seen[np.argsort(-own[seen], kind="stable")][:SHOWN])
    weights = np.stack([own[shown], other[shown]])
    names = [f"{j} · {keys[j]}" for j in shown]
    picture = figures.attention_heatmap(weights, [lab.text("own"), lab.text("linear")], names)
    chart.show(picture, key="costs.linear")
    if len(seen) > len(shown):
        lab.note("largest", shown=len(shown), n=len(seen))


def _costs(subject: Subject) -> None:
    n, d = sizes.length(lab, "long", len(subject.tokens)), subject.config.d_head
    found = bracketing(n, d)
    weights = ("(φ(Q) φ(K)ᵀ) V", f"2n²d = {found.through_weights:,}", lab.text("weights", n=f"{found.weights_held:,}"))
    states = ("φ(Q) (φ(K)ᵀ V)", f"2nd² = {found.through_state:,}", lab.text("sums", n=f"{found.state_held:,}"))
    rows = [Row(*weights, kind="marked" if n < d else ""), Row(*states, kind="marked" if n > d else "")]
    st.html(table.to_html(lab.columns("bracketed", "products", "held", n=f"{n:,}", d=d), rows))


def _formula(found: LinearAttention, n: int, d: int) -> None:
    symbols = (
        r"\begin{aligned} z_i &= \frac{\phi(q_i) \sum_{j \le i} \phi(k_j)^\top v_j}{\phi(q_i) \cdot \sum_{j \le i} "
        r"\phi(k_j)} \\ S_i &= S_{i-1} + \phi(k_i)^\top v_i, \quad u_i = u_{i-1} + \phi(k_i) \end{aligned}"
        if found.causal
        else r"\begin{aligned} (\phi(Q)\, \phi(K)^\top)\, V &= \phi(Q)\, (\phi(K)^\top V) \\ \phi(x) &= "
        r"\mathrm{elu}(x) + 1 \end{aligned}"
    )
    lines = CAUSAL if found.causal else BOTH
    lesson.formula(
        symbols,
        live=rf"2 n^2 d = {sizes.tex(2 * n * n * d)} {sizes.compared(n, d)} {sizes.tex(2 * n * d * d)} = 2 n d^2",
        code=CODE.replace("{weights}", lines["weights"]).replace("{state}", lines["state"]).format(n=n, d=d),
    )
