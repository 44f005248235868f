"""The laboratory of Why ÷ √d in the lesson Query, key, value: random vectors first, then a head of the model."""

import streamlit as st

from vizformer import figures
from vizformer.analysis import Kind, kinds
from vizformer.analysis.heads import score_scaling
from vizformer.components import table
from vizformer.components.table import Row
from vizformer.figures import scaling as scaling_figures
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.qkv import computations
from vizformer.web.lessons.qkv.temperature import temperature_slider
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, chart, lesson, row_names
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


@laboratory
def scale(subject: Subject) -> None:
    """Random vectors first, then a head of the model."""
    st.html(table.style())
    width, warmth, again = st.columns([2, 2, 1], vertical_alignment="bottom")
    d = width.select_slider(
        _("d, the width of q and k"), score_scaling.WIDTHS, **lesson.setting("qkv.d", 64, score_scaling.WIDTHS)
    )
    temperature = temperature_slider(warmth)
    seed = lesson.value("qkv.seed", 0, range(1000))
    again.button(_("Draw again"), on_click=lesson.change, args=("qkv.seed", (seed + 1) % 1000, 0), key="qkv.again")
    measured, curves = computations.variances(seed), computations.saturation(seed)
    variance = float(measured[score_scaling.WIDTHS.index(d)])
    marks = [(_("not divided"), d**0.5 / temperature), (_("divided by √d"), 1.0 / temperature)]
    left, right = st.columns(2)
    chart.show(
        figures.variance_growth(
            score_scaling.WIDTHS,
            measured,
            at=d,
            title=_("{n} random pairs of every width", n=f"{score_scaling.PAIRS:,}"),
            words=words(scaling_figures.ENGLISH),
        ),
        key="qkv.variance",
        on=left,
    )
    chart.show(
        figures.saturation_curves(
            curves.deviations,
            curves.largest,
            curves.slopes,
            marks=marks,
            title=_("Softmax over {n} random scores", n=score_scaling.KEYS),
            words=words(scaling_figures.ENGLISH),
        ),
        key="qkv.saturation",
        on=right,
    )
    for name, deviation in marks:
        largest, slope = curves.at(deviation)
        st.text(
            _(
                "{name}: the scores spread by {deviation}; a typical query gives {largest} to one of {n} keys, and "
                "Σ p(1−p) = {slope} is left to learn from.",
                name=name,
                deviation=f"{deviation:.3g}",
                largest=labels.percent(largest),
                slope=f"{slope:.2g}",
                n=score_scaling.KEYS,
            )
        )
    lesson.formula(
        r"\begin{aligned} \mathrm{Var}(q \cdot k) &= \sum_{m=0}^{d-1} \mathrm{Var}(q_m k_m) = d, &"
        r"\mathrm{Var}\!\left(\tfrac{q \cdot k}{\sqrt{d}}\right) &= 1 \\"
        r"\frac{\partial p_i}{\partial s_j} &= p_i\,(\delta_{ij} - p_j) & & \end{aligned}",
        live=rf"\widehat{{\mathrm{{Var}}}}(q \cdot k) = {variance:.1f} \approx {d}, \qquad "
        rf"\frac{{{variance:.1f}}}{{{d}}} = {variance / d:.2f}",
        code=f"q, k = torch.randn(2, {score_scaling.PAIRS}, {d})\nvariance = (q * k).sum(-1).var()",
    )
    if subject.config.plain_scores:
        lesson.ask(scale_question(subject, state.fit(kind=kinds(subject.trace)).kind))
    real_head(subject)


def scale_question(subject: Subject, kind: Kind) -> lesson.Choice | None:
    """The question: what does the largest weight become without the division?"""
    asked = computations.scale_question(subject, kind)
    if asked is None:
        return None
    queries, keys = row_names.numbered(subject, kind), labels.numbered(subject.trace.tokens[labels.stacks(kind)[1]])
    values = (asked.undivided, asked.divided, asked.divided / asked.divisor, asked.even)
    choices = sorted({labels.percent(value): value for value in values}.items(), key=lambda item: item[1])
    texts = [text for text, __ in choices]
    return lesson.Choice(
        "qkv",
        "scale",
        _(
            "Layer {layer}, head {head}: query “{query}” gives “{key}” its largest weight, {weight}. What does the "
            "largest weight become if we forget to divide by √{d} = {divisor}?",
            layer=asked.layer,
            head=asked.head,
            query=queries[asked.query],
            key=keys[asked.key],
            weight=labels.percent(asked.divided),
            d=f"{asked.divisor**2:.0f}",
            divisor=f"{asked.divisor:.3g}",
        ),
        texts,
        texts.index(labels.percent(asked.undivided)),
        _(
            "Every score is then {divisor} times as large, and so is every gap between two scores. Softmax turns gaps "
            "into ratios of weights, so the leader takes {weight}.",
            divisor=f"{asked.divisor:.3g}",
            weight=labels.percent(asked.undivided),
        ),
        about=f"{subject} {kind}",
    )


def real_head(subject: Subject) -> None:
    """The same measures in a head of the model."""
    st.markdown(_("**A head of the model**"))
    attention_selector.choose(subject, query=False)
    view = state.view()
    head = computations.score_scale(subject, attention_selector.site(), view.head)
    d_head = subject.config.d_head
    columns = (
        _("scores"),
        _("standard deviation"),
        _("largest weight, mean over the queries"),
        _("Σ p(1−p), mean over the queries"),
    )
    names = {
        False: _("q·k, not divided"),
        True: _("q·k ÷ √{d} = q·k ÷ {divisor}", d=d_head, divisor=f"{head.divisor:.4g}"),
    }
    rows = [Row((name, *head.means(divided=divided))) for divided, name in names.items()]
    st.html(
        table.to_html(
            columns, rows, caption=_("Layer {layer}, head {head}, your sentence", layer=view.layer, head=view.head)
        )
    )
    st.caption(
        _(
            "√{d} is what random vectors of this width would spread by. Training is free to make them spread more or "
            "less; here q·k spreads by {deviation}.",
            d=d_head,
            deviation=f"{head.dots:.3g}",
        )
    )
    own = subject.config.attention_scale
    if own is not None:
        st.caption(
            _(
                "This model does not divide: its scores are q·k times {scale}, and it was trained with them. The row "
                "with the division shows what it would do.",
                scale=f"{own:g}",
            )
        )
