"""Query, key, value: a look-up that is soft, its arithmetic, why three matrices and why the division by sqrt(d_k)."""

import streamlit as st

from vizformer import figures
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.messages import N_
from vizformer.web.catalogue import model_cache, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.qkv import computed, scaling
from vizformer.web.lessons.qkv import lookup as books
from vizformer.web.link import state
from vizformer.web.link.view import View
from vizformer.web.widgets import attention_selector, lesson, proof_badge, row_names
from vizformer.web.widgets.number_editor import head_editor, what_changed
from vizformer.web.widgets.step_view import walk
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

NO_BAR = {"displayModeBar": False}
PRINTED_UP_TO = 9  # tokens: two maps side by side with more numbers are slow to paint and too small to read
PLACE = ("site", "layer", "head", "query", "step")


def page() -> None:
    lesson.show(
        sitemap.QKV,
        [
            lesson.Part("lookup", N_("A soft look-up"), lookup),
            lesson.Part("arithmetic", N_("Step by step"), arithmetic, wide=True),
            lesson.Part("three", N_("Why three matrices"), three, wide=True),
            lesson.Part("scale", N_("Why ÷ √d"), scaling.scale, wide=True),
        ],
        terms=(
            "query",
            "key",
            "value",
            "soft-lookup",
            "attention-score",
            "attention-weight",
            "softmax",
            "temperature",
            "scaled-dot-product-attention",
            "d-k",
        ),
        unnamed=unnamed,
    )


def unnamed(view: View) -> str:
    """The part of a link without one: who has chosen a place in the model wants to see its numbers."""
    usual = View()
    return "arithmetic" if any(getattr(view, name) != getattr(usual, name) for name in PLACE) else "lookup"


# --- step by step -----------------------------------------------------------------------------------------------------


def arithmetic(subject: Subject) -> None:
    attention_selector.choose(subject)
    editing(subject)
    steps(subject)


@guarded()
def editing(subject: Subject) -> None:
    """Numbers set by hand.  Outside the fragment: they change the subject of the whole page."""
    head_editor(subject, attention_selector.site())
    what_changed(subject)


@st.fragment
@guarded()
def steps(subject: Subject) -> None:
    """The steps, one at a time or all at once."""
    view = state.view()
    if unnamed(view) != "arithmetic":
        state.update(**lesson.held())  # back at the first step of the first head: the link must still lead here
    chosen = attention_selector.site(), view.head, attention_selector.query(subject)
    found = subject_cache.steps(subject, *chosen)
    key_tokens = labels.texts(subject.trace.tokens[labels.stacks(view.site)[1]])
    before = subject_cache.steps(subject.unedited, *chosen) if subject.edited else None
    walk(found, lambda step: {"keys": key_tokens}, before)


# --- a soft look-up ---------------------------------------------------------------------------------------------------


@st.fragment
@guarded()
def lookup(subject: Subject) -> None:
    """Five notes that are searched softly, and the same in a head of the model."""
    st.html(table.style())
    temperature = scaling.temperature_slider(st)
    books.notes(temperature)
    st.divider()
    st.markdown(_("**The same in the model: your sentence is the table**"))
    attention_selector.choose(subject)
    books.sentence(subject, temperature)
    where(subject)


def where(subject: Subject) -> None:
    """The question: where does a query look?"""
    kind = state.view().site
    asked = computed.where_question(subject, kind)
    if asked is None:
        return
    queries, keys = row_names.numbered(subject, kind), labels.numbered(subject.trace.tokens[labels.stacks(kind)[1]])
    weights = ", ".join(f"{keys[key]}: {asked.weights[key]:.3f}" for key in asked.keys)
    lesson.ask(
        "qkv",
        "self",
        _(
            "Layer {layer}, head {head}: the query is “{query}”. From which token does most come back?",
            layer=asked.layer,
            head=asked.head,
            query=queries[asked.query],
        ),
        [keys[key] for key in asked.keys],
        asked.keys.index(asked.best),
        _(
            "The weights are {weights}. A head does not search for what is the same as the query, but for what its query "
            "matrix has learned to ask for.",
            weights=weights,
        ),
        about=f"{subject} {kind}",
    )


# --- why three matrices -----------------------------------------------------------------------------------------------


@st.fragment
@guarded()
def three(subject: Subject) -> None:
    """The scores with one matrix for both sides beside the learned ones."""
    st.html(table.style())
    names = {"identity": _("no matrices: X Xᵀ ÷ √d_model"), "shared": _("one matrix: W_K = W_Q")}
    kind = st.segmented_control(
        _("Compare with"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        **lesson.dial("qkv.matrices", "identity", names),
    )
    attention_selector.choose(subject, cross=False, query=False)
    view = state.view()
    tokens = labels.texts(subject.trace.tokens[labels.stacks(view.site)[0]])
    forms = computed.forms(subject, attention_selector.site(), view.head)
    every = computed.asymmetries(subject, attention_selector.site())
    of_head = dict(zip(("identity", "shared", "learned"), every[view.head], strict=True))
    for column, name, scores in zip(
        st.columns(2), (kind, "learned"), (getattr(forms, kind), forms.learned), strict=True
    ):
        title = names.get(name, _("learned W_Q and W_K"))
        found = of_head[name]
        with column:
            picture = figures.attention_heatmap(
                scores,
                row_names.queries(subject, view.site),
                tokens,
                kind="scores",
                title=title,
                words=words(figures.ENGLISH),
            )
            if len(tokens) > PRINTED_UP_TO:
                picture.update_traces(texttemplate=None)
            st.plotly_chart(picture, config=NO_BAR, key=f"qkv.scores.{name == 'learned'}")
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
    i, j = of_head["learned"].pair
    S, record = forms.learned, subject.trace[attention_selector.site()]
    lesson.formula(
        computed.scores_formula(model_cache.options(subject.model)),
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


def product(subject: Subject) -> None:
    """The scores know only W_Q W_K^T, and its rank is at most d_head."""
    config = model_cache.options(subject.model)
    found = computed.bilinear(subject, attention_selector.site(), state.view().head)
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
    if found.biased and config.positions == "rope":
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
        if config.positions == "rope"
        else _(
            "Computed through the product (and the biases), all scores agree with the model's to {difference}.",
            difference=difference,
        )
    )
    proof_badge.show(found.proof, agrees, edited=bool(subject.edited))


page()
