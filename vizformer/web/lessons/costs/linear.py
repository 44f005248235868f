"""The laboratory Linear attention: the same queries, keys and values without the softmax, bracketed both ways."""

import numpy as np
import streamlit as st

from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.explain.attention_without_softmax import LinearAttention, bracketing
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import computations, wording
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, lesson, proof_badge
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.i18n import _

SHOWN = 12  # keys, those with the largest weights
CODE = """phi = lambda x: F.elu(x) + 1
q, k, v = phi(torch.randn({n}, {d})), phi(torch.randn({n}, {d})), torch.randn({n}, {d})
weights = q @ k.T  # [n, n]
through_weights = weights @ v / weights.sum(-1, keepdim=True)
state, total = k.T @ v, k.sum(0)  # [d, d], [d]
through_state = q @ state / (q @ total)[:, None]
same = torch.allclose(through_weights, through_state, atol=1e-4)"""
CAUSAL = """phi = lambda x: F.elu(x) + 1
q, k, v = phi(torch.randn({n}, {d})), phi(torch.randn({n}, {d})), torch.randn({n}, {d})
weights = (q @ k.T).tril()  # [n, n]
through_weights = weights @ v / weights.sum(-1, keepdim=True)
state, total, rows = torch.zeros({d}, {d}), torch.zeros({d}), []
for q_i, k_i, v_i in zip(q, k, v):  # a recurrent network: its state is a matrix
    state, total = state + torch.outer(k_i, v_i), total + k_i
    rows.append(q_i @ state / (q_i @ total))
same = torch.allclose(through_weights, torch.stack(rows), atol=1e-4)"""


@laboratory
def linear(subject: Subject) -> None:
    """One head with phi in the place of the softmax: equal both ways, different from the softmax."""
    st.html(table.style() + matrix.style())
    lesson.ask(bracket_question(subject))
    attention_selector.choose(subject, cross=False)
    site, head, query = attention_selector.site(), state.view().head, attention_selector.query(subject)
    found = computations.linear_attention(subject, site, head)
    keys = labels.texts(subject.trace.tokens[labels.stacks(state.view().kind)[1]])
    _weights(found, query, keys)
    proof_badge.show(
        found.proof,
        _(
            "Both ways of bracketing give the same: they differ by at most {difference} (compared with (φ(Q) φ(K)ᵀ) V in "
            "PyTorch).",
            difference=f"{found.proof.difference:.1g}",
        ),
    )
    st.html(
        matrix.to_html(
            np.stack([found.z[query], found.own[query]]),
            rows=[_("linear"), _("the head's own")],
            caption=_("z of this query"),
        )
    )
    apart = found.apart
    st.warning(
        _(
            "It is another function than the softmax: z of this query differs from the head's own z by {own} of its "
            "length; averaged over all queries, by {mean}. A model has to be trained with it.",
            own=f"{apart[query]:.0%}",
            mean=f"{apart.mean():.0%}",
        )
    )
    if found.causal:
        st.html(
            matrix.to_html(
                computations.linear_state(subject, site, head, query),
                caption=_("the state S of this query: the sum of φ(k)ᵀ v of the keys up to it"),
            )
        )
    _costs(subject)
    _formula(found, len(keys), subject.config.d_head)
    lesson.ask(product_question())


def product_question() -> lesson.Choice:
    return lesson.Choice(
        "costs",
        "product",
        _("Which of these, in the place of e^(q·k), would also let the brackets be moved?"),
        ["|q·k|", "(q·k)²", "e^(−|q − k|²)"],
        1,
        _(
            "(q·k)² is the sum of (q_a q_b)(k_a k_b) over all pairs of columns: φ(q)·φ(k), each with d² columns. No φ with "
            "finitely many columns makes such a product of the other two: they need q and k together."
        ),
    )


def _weights(found: LinearAttention, query: int, keys: list[str]) -> None:
    own, other = found.softmax[query], found.weights[query]
    seen = np.flatnonzero((own > 0) | (other > 0))
    shown = sorted(seen[np.argsort(-own[seen], kind="stable")][:SHOWN])
    rows = [
        Row(
            (
                f"{j} · {keys[j]}",
                Number(float(own[j]), labels.percent(float(own[j]))),
                Number(float(other[j]), labels.percent(float(other[j]))),
            )
        )
        for j in shown
    ]
    columns = (_("key"), _("softmax: the head's own weight"), _("linear: φ(q)·φ(k) / sum"))
    st.html(table.to_html(columns, rows, bar=2))
    if len(seen) > len(shown):
        st.caption(_("Of {n} keys, the {shown} with the largest weights are shown.", shown=len(shown), n=len(seen)))


def _costs(subject: Subject) -> None:
    n, d = wording.length("costs.long", len(subject.tokens)), subject.config.d_head
    found = bracketing(n, d)
    rows = [
        Row(
            (
                "(φ(Q) φ(K)ᵀ) V",
                f"2n²d = {found.through_weights:,}",
                _("{n} (the n × n weights)", n=f"{found.weights_held:,}"),
            ),
            "marked" if n < d else "",
        ),
        Row(
            (
                "φ(Q) (φ(K)ᵀ V)",
                f"2nd² = {found.through_state:,}",
                _("{n} (the d × d state and d sums)", n=f"{found.state_held:,}"),
            ),
            "marked" if n > d else "",
        ),
    ]
    columns = (_("one head, n = {n}, d = {d}", n=f"{n:,}", d=d), _("multiplications"), _("numbers held"))
    st.html(table.to_html(columns, rows))


def _formula(found: LinearAttention, n: int, d: int) -> None:
    symbols = (
        r"\begin{aligned} z_i &= \frac{\phi(q_i) \sum_{j \le i} \phi(k_j)^\top v_j}{\phi(q_i) \cdot \sum_{j \le i} "
        r"\phi(k_j)} \\ S_i &= S_{i-1} + \phi(k_i)^\top v_i, \quad u_i = u_{i-1} + \phi(k_i) \end{aligned}"
        if found.causal
        else r"\begin{aligned} (\phi(Q)\, \phi(K)^\top)\, V &= \phi(Q)\, (\phi(K)^\top V) \\ \phi(x) &= "
        r"\mathrm{elu}(x) + 1 \end{aligned}"
    )
    sign = "<" if n < d else ">" if n > d else "="
    lesson.formula(
        symbols,
        live=rf"2 n^2 d = {wording.tex(2 * n * n * d)} {sign} {wording.tex(2 * n * d * d)} = 2 n d^2",
        code=(CAUSAL if found.causal else CODE).format(n=n, d=d),
    )


def bracket_question(subject: Subject) -> lesson.Number:
    n, d = 10 * len(subject.tokens), subject.config.d_head  # the table below has the numbers of the text itself
    found = bracketing(n, d)
    return lesson.Number(
        "costs",
        "bracket",
        _(
            "A head of your model is d = {d} wide. How many multiplications does φ(Q) (φ(K)ᵀ V) take for a text ten times "
            "as long as yours, {tokens}, without the denominators?",
            tokens=counts.tokens(n),
            d=d,
        ),
        found.through_state,
        _(
            "φ(K)ᵀ V takes n·d·d, and φ(Q) times that as many again: 2nd² = {state}. The other way takes 2n²d = "
            "{weights}: the two are equal at n = d = {d}.",
            state=f"{found.through_state:,}",
            weights=f"{found.through_weights:,}",
            d=d,
        ),
        about=f"{subject.model} {subject.text}",
    )
