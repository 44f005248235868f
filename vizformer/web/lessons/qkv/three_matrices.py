"""The laboratory Why three matrices: the scores with one matrix for both sides beside the learned ones."""

import streamlit as st

from vizformer import figures
from vizformer.analysis import Kind
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.config import ModelConfig
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.qkv import computations
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, chart, lesson, proof_badge, row_names
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

PRINTED_UP_TO = 9  # tokens: two maps side by side with more numbers are slow to paint and too small to read


@laboratory
def three(subject: Subject) -> None:
    """The scores with one matrix for both sides beside the learned ones."""
    st.html(table.style())
    names = {"identity": _("no matrices: X Xᵀ ÷ √d_model"), "shared": _("one matrix: W_K = W_Q")}
    kind = st.segmented_control(
        _("Compare with"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        **lesson.setting("qkv.matrices", "identity", names),
    )
    attention_selector.choose(subject, cross=False, query=False)
    view = state.view()
    tokens = labels.texts(subject.trace.tokens[labels.stacks(view.kind)[0]])
    forms = computations.forms(subject, attention_selector.site(), view.head)
    every = computations.asymmetries(subject, attention_selector.site())
    of_head = dict(zip(("identity", "shared", "learned"), every[view.head], strict=True))
    for column, name, scores in zip(
        st.columns(2), (kind, "learned"), (getattr(forms, kind), forms.learned), strict=True
    ):
        title = names.get(name, _("learned W_Q and W_K"))
        found = of_head[name]
        with column:
            picture = figures.attention_heatmap(
                scores,
                row_names.queries(subject, view.kind),
                tokens,
                kind="scores",
                title=title,
                words=words(figures.ENGLISH),
            )
            if len(tokens) > PRINTED_UP_TO:
                picture.update_traces(texttemplate=None)
            chart.show(picture, key=f"qkv.scores.{name == 'learned'}")
            if found.largest < 1e-9:
                st.text(_("Symmetric: the largest |S_ij − S_ji| is {value}.", value=f"{found.largest:.1g}"))
            else:
                i, j = found.pair
                st.text(
                    _(
                        "Not symmetric: “{first}” → “{second}” scores {there}, “{second}” → “{first}” scores {back}.",
                        first=tokens[i],
                        second=tokens[j],
                        there=matrix.number(scores[i, j], 2),
                        back=matrix.number(scores[j, i], 2),
                    )
                )
    lesson.ask(side_question(subject, state.view().kind))
    i, j = of_head["learned"].pair
    S, record = forms.learned, subject.trace[attention_selector.site()]
    lesson.formula(
        scores_formula(subject.config, _layer()),
        live=rf"S_{{{i},{j}}} - S_{{{j},{i}}} = {S[i, j]:.4f} - ({S[j, i]:.4f}) = {S[i, j] - S[j, i]:.4f}",
        code=f"S = q @ k.T * {record.scale!r}  # {record.q.shape[2]} ** -0.5 where scores are divided\n"
        "largest = (S - S.T).max()"
        if abs(record.scale - record.q.shape[2] ** -0.5) > 1e-9
        else f"S = q @ k.T / math.sqrt({record.q.shape[2]})\nlargest = (S - S.T).max()",
        given={"q": record.q[view.head], "k": record.k[record.kv_head(view.head)]},
    )
    columns = (
        "",
        _("learned: largest |S_ij − S_ji|"),
        _("learned: antisymmetric share, |(S − Sᵀ)/2|² ÷ |S|²"),
        _("W_K = W_Q: largest |S_ij − S_ji|"),
    )
    rows = [
        Row(
            (
                _("head {head}", head=head),
                learned.largest,
                Number(learned.share, f"{learned.share:.0%}"),
                shared.largest,
            ),
            "marked" if head == view.head else "",
        )
        for head, (__, shared, learned) in enumerate(every)
    ]
    st.html(table.to_html(columns, rows, bar=2, caption=_("Every head of this layer")))
    product(subject)


def side_question(subject: Subject, kind: Kind) -> lesson.CellChoice | None:
    """Which of two mirrored cells holds a weight?"""
    asked = computations.cell_question(subject, kind, LARGEST)
    if asked is None:  # a single token
        return None
    tokens = subject.trace.tokens[labels.stacks(kind)[0]][:LARGEST]
    numbered, weights = labels.numbered(tokens), asked.weights
    return lesson.CellChoice(
        "qkv",
        "side",
        _(
            "Layer {layer}, head {head}: “{query}” asks, and “{key}” answers. Which cell holds the weight that the first "
            "gives to the second?",
            layer=asked.layer,
            head=asked.head,
            query=numbered[asked.query],
            key=numbered[asked.key],
        ),
        lesson.Grid(labels.texts(tokens), labels.texts(tokens), weights),
        (asked.query, asked.key),
        _(
            "Who asks is the row, who answers is the column: {weight}. The mirrored cell, in which “{key}” asks “{query}”, "
            "holds {mirrored}. With one matrix for both sides the two would have the same score before the mask.",
            weight=f"{weights[asked.query, asked.key]:.3f}",
            mirrored=f"{weights[asked.key, asked.query]:.3f}",
            query=numbered[asked.query],
            key=numbered[asked.key],
        ),
        about=f"{subject} {kind}",
    )


def product(subject: Subject) -> None:
    """The scores know only W_Q W_K^T, and its rank is at most d_head."""
    config = subject.config
    found = computations.bilinear(subject, attention_selector.site(), state.view().head)
    st.markdown(
        _(
            "How two rows $x_i$ and $x_j$ meet in a score is decided by the product $W_Q W_K^\\top$ alone. It is {d} × "
            "{d}, {entries} numbers, but its rank is {rank}: no more than $d_\\mathrm{{head}}$ = {bound}. Two thin "
            "matrices hold it in {thin} numbers.",
            d=config.d_model,
            entries=f"{config.d_model**2:,}",
            rank=found.rank,
            bound=found.bound,
            thin=f"{2 * config.d_model * found.bound:,}",
        )
    )
    if found.biased and config.turns(_layer()):
        st.markdown(_("This model has biases besides, which add terms of their own to every score."))
    elif found.biased:
        st.markdown(
            _(
                "This model has biases besides: $b_Q$ times each key is a number for each key, the same for every "
                "query, and can raise or lower a key's weight by itself. $b_K$ times each query adds one number to a "
                "whole row, which softmax takes off again."
            )
        )
    if found.proof is None:
        st.caption(_("In this model a norm comes between the matrices and the scores, so that the product is not all."))
        return
    difference = f"{found.proof.difference:.1g}"
    agrees = (
        _(
            "With rotary positions every distance has a product of its own; this one, for distance 0, gives the model's "
            "scores on the diagonal to {difference}.",
            difference=difference,
        )
        if config.turns(_layer())
        else _(
            "Computed through the product (and the biases), all scores agree with the model's to {difference}.",
            difference=difference,
        )
    )
    proof_badge.show(found.proof, agrees, edited=bool(subject.edited))


def _layer() -> int:
    """The layer whose attention is looked at."""
    return int(attention_selector.site().split(".")[1])


def scores_formula(config: ModelConfig, layer: int) -> str:
    """The scores of a head of this layer over all pairs of rows, with the model's biases, rotation or factor; LaTeX."""
    b_Q, b_K = (" + b_Q", " + b_K") if config.qkv_bias else ("", "")
    own = config.attention_scale
    start, end = (r"\frac{", r"}{\sqrt{d_\mathrm{head}}}") if own is None else (r"c\,", "")
    last = "" if own is None else rf", \quad c = {own:g}"
    if config.turns(layer):  # R(i)^T R(j) is one rotation, by the distance
        lines = [rf"S_{{ij}} &= {start}(x_i W_Q{b_Q})\,R_{{j-i}}\,(x_j W_K{b_K})^\top{end}{last}"]
    else:
        lines = [rf"S &= {start}(X W_Q{b_Q})(X W_K{b_K})^\top{end}"]
        alone = r" + X W_Q\,b_K^\top + b_Q\,(X W_K)^\top + b_Q b_K^\top" if config.qkv_bias else ""
        lines.append(rf"&= {start}X\,(W_Q W_K^\top)\,X^\top{alone}{end}{last}")
    same = "W_Q = W_K" + (r",\ b_Q = b_K" if config.qkv_bias else "")
    lines.append(rf"{same} \;&\Rightarrow\; S_{{ij}} = S_{{ji}}")
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"
