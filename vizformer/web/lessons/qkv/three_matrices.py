"""The laboratory Why three matrices: the scores with one matrix for both sides beside the learned ones."""

import streamlit as st
from numpy import ndarray

from vizformer import analysis, figures
from vizformer.analysis import Asymmetry, CellQuestion, Kind, kinds
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.config import ModelConfig
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, chart, lesson, map_words, proof_badge
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.lab import Laboratory, aside, controls
from vizformer.web.words import labels

lab = Laboratory("qkv", "three", wide=True)
PRINTED_UP_TO = 9  # tokens: two maps side by side with more numbers are slow to paint and too small to read


forms = of_run(analysis.score_forms)


@cached
def asymmetries(subject: Subject, site: str) -> list[dict[str, Asymmetry]]:
    """How far each way to score is from being symmetric, for every head of a site."""
    found = [forms(subject, site, head) for head in range(subject.trace[site].n_heads)]
    ways = ("identity", "shared", "learned")
    return [{way: analysis.asymmetry(getattr(one, way)) for way in ways} for one in found]


bilinear = of_run(analysis.bilinear)


@cached
def asked_cell(subject: Subject, kind: Kind) -> CellQuestion | None:
    return analysis.cell_question(subject.trace, kind, LARGEST)


@lab.draws
def draw_three_matrices(subject: Subject) -> None:
    st.html(table.style())
    with controls():
        way = lab.buttons("matrices", ("identity", "shared"))
        why = attention_selector.choose(subject, cross=False, query=False)
    view, site = state.view(), attention_selector.site()
    scores, every = forms(subject, site, view.head), asymmetries(subject, site)
    of_head, S = every[view.head], scores.learned
    for column, one in zip(st.columns(2), (way, "learned"), strict=True):
        with column:
            _picture(subject, one, getattr(scores, one), of_head[one])
    aside(why)
    lesson.ask(three_matrices_question(subject, view.kind))
    (i, j), record = of_head["learned"].pair, subject.trace[site]
    d_head, divides = record.q.shape[2], abs(record.scale - record.q.shape[2] ** -0.5) <= 1e-9
    scaled = f"/ math.sqrt({d_head})" if divides else f"* {record.scale!r}  # {d_head} ** -0.5 where scores are divided"
    lesson.formula(
        scores_formula(subject.config),
        live=rf"S_{{{i},{j}}} - S_{{{j},{i}}} = {S[i, j]:.4f} - ({S[j, i]:.4f}) = {S[i, j] - S[j, i]:.4f}",
        code=f"S = q @ k.T {scaled}\nlargest = (S - S.T).max()",
        given={"q": record.q[view.head], "k": record.k[record.kv_head(view.head)]},
    )
    rows = [
        Row(
            lab.text("head", head=head),
            one["learned"].largest,
            Number(one["learned"].share, f"{one['learned'].share:.0%}"),
            one["shared"].largest,
            kind="marked" if head == view.head else "",
        )
        for head, one in enumerate(every)
    ]
    columns = lab.columns("learned", "share", "shared")
    st.html(table.to_html(("", *columns), rows, bar=2, caption=lab.text("heads")))
    _product(subject)


@lab.asks("side")
def three_matrices_question(subject: Subject, kind: Kind | None = None) -> lesson.CellChoice | None:
    kind = kind or kinds(subject.trace)[0]
    if (asked := asked_cell(subject, kind)) is None:  # a single token
        return None
    tokens = subject.trace.tokens[labels.stacks(kind)[0]][:LARGEST]
    numbered, weights, cell = labels.numbered(tokens), asked.weights, (asked.query, asked.key)
    values = {
        "query": numbered[asked.query],
        "key": numbered[asked.key],
        "weight": f"{weights[cell]:.3f}",
        "mirrored": f"{weights[cell[::-1]]:.3f}",
    }
    said = lab.asked("side", subject, kind, layer=asked.layer, head=asked.head, **values)
    return lesson.CellChoice(grid=lesson.Grid(labels.texts(tokens), labels.texts(tokens), weights), answer=cell, **said)


def _picture(subject: Subject, way: str, scores: ndarray, found: Asymmetry) -> None:
    """The scores of one way, and the pair of tokens for which they differ most."""
    kind = state.view().kind
    tokens = labels.texts(subject.trace.tokens[labels.stacks(kind)[0]])
    rows, title = map_words.queries(subject, kind), lab.text(f"matrices.{way}")
    picture = figures.attention_heatmap(scores, rows, tokens, kind="scores", title=title)
    if len(tokens) > PRINTED_UP_TO:
        picture.update_traces(texttemplate=None)
    chart.show(picture, key=f"qkv.scores.{way == 'learned'}")
    if found.largest < 1e-9:
        lab.say("symmetric", value=f"{found.largest:.1g}")
        return
    i, j = found.pair
    there, back = (matrix.number(scores[cell], 2) for cell in ((i, j), (j, i)))
    lab.say("different", first=tokens[i], second=tokens[j], there=there, back=back)


def _product(subject: Subject) -> None:
    """The scores know only W_Q W_K^T, and its rank is at most d_head."""
    config, form = subject.config, "turned" if subject.config.positions == "rope" else "plain"
    found = bilinear(subject, attention_selector.site(), state.view().head)
    entries, thin = f"{config.d_model**2:,}", f"{2 * config.d_model * found.bound:,}"
    values = {"d": config.d_model, "entries": entries, "rank": found.rank, "bound": found.bound, "thin": thin}
    st.markdown(lab.text("product", **values))
    if found.biased:
        st.markdown(lab.text("biases", form=form))
    if found.proof is None:
        lab.note("normed")
        return
    agrees = lab.text("agrees", form=form, difference=f"{found.proof.difference:.1g}")
    proof_badge.show(found.proof, agrees, edited=bool(subject.edited))


def scores_formula(config: ModelConfig) -> str:
    """The scores of a head over all pairs of rows, with the model's biases, rotation or factor; LaTeX."""
    b_Q, b_K = (" + b_Q", " + b_K") if config.qkv_bias else ("", "")
    own = config.attention_scale
    start, end = (r"\frac{", r"}{\sqrt{d_\mathrm{head}}}") if own is None else (r"c\,", "")
    last = "" if own is None else rf", \quad c = {own:g}"
    if config.positions == "rope":  # R(i)^T R(j) is one rotation, by the distance
        lines = [rf"S_{{ij}} &= {start}(x_i W_Q{b_Q})\,R_{{j-i}}\,(x_j W_K{b_K})^\top{end}{last}"]
    else:
        lines = [rf"S &= {start}(X W_Q{b_Q})(X W_K{b_K})^\top{end}"]
        alone = r" + X W_Q\,b_K^\top + b_Q\,(X W_K)^\top + b_Q b_K^\top" if config.qkv_bias else ""
        lines.append(rf"&= {start}X\,(W_Q W_K^\top)\,X^\top{alone}{end}{last}")
    same = "W_Q = W_K" + (r",\ b_Q = b_K" if config.qkv_bias else "")
    lines.append(rf"{same} \;&\Rightarrow\; S_{{ij}} = S_{{ji}}")
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"
