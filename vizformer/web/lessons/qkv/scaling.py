"""The laboratory of Why ÷ √d in the lesson Query, key, value: random vectors first, then a head of the model."""

import streamlit as st

from vizformer import analysis, figures
from vizformer.analysis import Kind, kinds
from vizformer.analysis.scores import score_scaling
from vizformer.analysis.scores.score_scaling import KEYS, PAIRS, WIDTHS
from vizformer.components import table
from vizformer.components.table import Row
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.lessons.qkv.lookup import TEMPERATURES
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, chart, lesson, map_words
from vizformer.web.widgets.lab import Laboratory, aside, controls, wrong_line
from vizformer.web.words import labels

lab = Laboratory("qkv", "scale", wide=True)


variances = cached(score_scaling.variances)
saturation = cached(score_scaling.saturation)
score_scale = of_trace(analysis.score_scale)
undivided = of_trace(analysis.scale_question)


@lab.draws
def draw_scaling(subject: Subject) -> None:
    st.html(table.style())
    seed = lesson.value("qkv.seed", 0, range(1000))
    with controls():
        d, temperature = lab.steps("d", WIDTHS, 64), lab.steps("t", TEMPERATURES, 1.0)
        st.button(lab.text("again"), on_click=lesson.change, args=("qkv.seed", (seed + 1) % 1000, 0), key="qkv.again")
    measured, curves = variances(seed), saturation(seed)
    marks = [(lab.text("plain"), d**0.5 / temperature), (lab.text("divided"), 1.0 / temperature)]
    left, right = st.columns(2)
    title = lab.text("pairs", n=f"{PAIRS:,}")
    chart.show(figures.variance_growth(WIDTHS, measured, at=d, title=title), key="qkv.variance", on=left)
    title, lines = lab.text("softmax", n=KEYS), (curves.deviations, curves.largest, curves.slopes)
    chart.show(figures.saturation_curves(*lines, marks=marks, title=title), key="qkv.saturation", on=right)
    for name, deviation in marks:
        largest, slope = curves.at(deviation)
        values = {"deviation": f"{deviation:.3g}", "largest": labels.percent(largest), "slope": f"{slope:.2g}"}
        lab.say("spread", name=name, n=KEYS, **values)
    variance = float(measured[WIDTHS.index(d)])
    lesson.formula(
        r"\begin{aligned} \mathrm{Var}(q \cdot k) &= \sum_{m=0}^{d-1} \mathrm{Var}(q_m k_m) = d, &"
        r"\mathrm{Var}\!\left(\tfrac{q \cdot k}{\sqrt{d}}\right) &= 1 \\"
        r"\frac{\partial p_i}{\partial s_j} &= p_i\,(\delta_{ij} - p_j) & & \end{aligned}",
        live=rf"\widehat{{\mathrm{{Var}}}}(q \cdot k) = {variance:.1f} \approx {d}, \qquad "
        rf"\frac{{{variance:.1f}}}{{{d}}} = {variance / d:.2f}",
        code=f"q, k = torch.randn(2, {PAIRS}, {d})\nvariance = (q * k).sum(-1).var()",
    )
    lesson.ask(scaling_question(subject, state.fit(kind=kinds(subject.trace)).kind))
    _real_head(subject)
    lesson.ask(line(subject), folded=True)


@lab.asks("scale")
def scaling_question(subject: Subject, kind: Kind | None = None) -> lesson.Choice | None:
    kind = kind or kinds(subject.trace)[0]
    if subject.config.attention_scale is not None or (asked := undivided(subject, kind)) is None:
        return None
    wrong = {"same": asked.divided, "share": asked.divided / asked.divisor, "even": asked.even}
    return lab.options(
        "scale",
        asked.undivided,
        {name: share for name, share in wrong.items() if labels.percent(share) != labels.percent(asked.undivided)},
        subject,
        kind,
        written=labels.percent,
        layer=asked.layer,
        head=asked.head,
        query=map_words.numbered(subject, kind)[asked.query],
        key=labels.numbered(subject.trace.tokens[labels.stacks(kind)[1]])[asked.key],
        weight=labels.percent(asked.divided),
        d=f"{asked.divisor**2:.0f}",
        divisor=f"{asked.divisor:.3g}",
        undivided=labels.percent(asked.undivided),
    )


@lab.asks("line")
def line(subject: Subject) -> lesson.Choice:
    return wrong_line(lab, "scale")


def _real_head(subject: Subject) -> None:
    """Draws the measures of softmax for a head of the model."""
    st.markdown(lab.text("model"))
    why = attention_selector.choose(subject, query=False)
    view, d_head, own = state.view(), subject.config.d_head, subject.config.attention_scale
    head = score_scale(subject, attention_selector.site(), view.head)
    names = {False: lab.text("row.plain"), True: lab.text("row.divided", d=d_head, divisor=f"{head.divisor:.4g}")}
    rows = [Row(name, *head.means(divided=divided)) for divided, name in names.items()]
    columns = lab.columns("scores", "deviation", "largest", "slope")
    st.html(table.to_html(columns, rows, caption=lab.text("place", layer=view.layer, head=view.head)))
    aside(why)
    lab.note("trained", d=d_head, deviation=f"{head.dots:.3g}")
    if own is not None:
        lab.note("undivided", scale=f"{own:g}")
