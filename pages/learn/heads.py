"""Many heads: split, attend, concatenate, mix; all heads of the sentence; what heads cost; shared keys and values."""

from dataclasses import replace

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import attention, table
from vizformer.components.table import Number, Row
from vizformer.figures import head_split
from vizformer.messages import N_
from vizformer.web.catalogue import model_cache, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.heads import computed, costs
from vizformer.web.link import state
from vizformer.web.link.view import written_query
from vizformer.web.widgets import attention_selector, lesson, proof_badge, row_names
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

NO_BAR = {"displayModeBar": False}


def page() -> None:
    lesson.show(
        sitemap.HEADS,
        [
            lesson.Part("split", N_("Split, attend, mix"), split, wide=True),
            lesson.Part("all", N_("All heads"), every, wide=True),
            lesson.Part("cost", N_("What heads cost"), cost),
            lesson.Part("groups", N_("Shared keys and values"), groups),
        ],
        terms=(
            "head",
            "d-k",
            "multi-head-attention",
            "concatenation",
            "output-projection",
            "head-contribution",
            "effective-keys",
            "grouped-query-attention",
            "multi-query-attention",
            "kv-cache",
        ),
    )


# --- split, attend, concatenate, mix ----------------------------------------------------------------------------------


@st.fragment
@guarded()
def split(subject: Subject) -> None:
    """Where each head's slice goes, and what each head adds."""
    from vizformer.explain import latex

    st.html(table.style())
    attention_selector.choose(subject)
    view, query, config = state.view(), attention_selector.query(subject), model_cache.options(subject.model)
    found = computed.contributions(subject, attention_selector.site(), query)
    cut = found.slices
    token = subject.trace.tokens[labels.stacks(view.site)[0]][query].text
    rows = [
        (_("x: what goes in"), cut.x, 0),
        (_("q: the queries"), cut.q, config.n_heads),
        (_("k: its keys"), cut.k, config.kv_heads),
        (_("v: its values"), cut.v, config.kv_heads),
        (_("z: the heads' results"), cut.z, config.n_heads),
        (_("out = z W_O"), cut.out, 0),
    ]
    shown = [(name, row, slices) for name, row, slices in rows if row is not None]
    st.plotly_chart(
        figures.head_slices(
            [row for __, row, ___ in shown],
            [name for name, *__ in shown],
            [slices for *__, slices in shown],
            chosen=view.head,
            title=_("The vectors of token {query}, “{token}”", query=query, token=token),
            words=words(head_split.ENGLISH),
        ),
        config=NO_BAR,
        key="heads.slices",
    )
    names = [_("head {head}: length {norm}", head=head, norm=f"{norm:.2f}") for head, norm in enumerate(found.norms)]
    parts = [*found.parts]
    if found.bias is not None:
        names.append(_("bias b_O: length {norm}", norm=f"{np.linalg.norm(found.bias):.2f}"))
        parts.append(found.bias)
    st.plotly_chart(
        figures.head_parts(
            np.stack([*parts, cut.out]),
            [*names, _("their sum: out")],
            title=_("What each head adds to the {d} columns", d=config.d_model),
            words=words(head_split.ENGLISH),
        ),
        config=NO_BAR,
        key="heads.parts",
    )
    proof_badge.show(found.proof, edited=bool(subject.edited))
    shares = [*found.shares, *([found.bias_share] if found.bias is not None else [])]
    lengths = [float(np.linalg.norm(part)) for part in parts]
    kinds = [_("head {head}", head=head) for head in range(config.n_heads)] + [_("bias b_O")]
    st.html(
        table.to_html(
            ("", _("length"), _("share of the sum")),
            [
                Row(
                    (kinds[i], lengths[i], Number(share, f"{share:.1%}".replace("-", "−"))),
                    "marked" if i == view.head else "",
                )
                for i, share in enumerate(shares)
            ],
            bar=2,
            caption=_("How far each part goes in the direction of the sum"),
        )
    )
    lesson.formula(
        r"\mathrm{out} = [z_0; \dots; z_{h-1}]\, W_O + b_O = \sum_{h} z_h W_O^{(h)} + b_O"
        if found.bias is not None
        else r"\mathrm{out} = [z_0; \dots; z_{h-1}]\, W_O = \sum_{h} z_h W_O^{(h)}",
        live=rf"\mathrm{{out}}_0 = {latex.sum_of(np.array(parts)[:, 0])} = {cut.out[0]:.4f}",
        code=f"parts = [z[h] @ W_O[h * {config.d_head} : (h + 1) * {config.d_head}] for h in range({config.n_heads})]\n"
        "out = sum(parts)" + (" + b_O" if found.bias is not None else ""),
        given={
            "z": cut.z.reshape(config.n_heads, config.d_head),
            **computed.output_matrix(subject, attention_selector.site()),
        },
    )


# --- all heads --------------------------------------------------------------------------------------------------------


@st.fragment
@guarded()
def every(subject: Subject) -> None:
    """All heads side by side, the chosen one large, and what each of its layer does."""
    from vizformer.analysis import kinds

    st.html(table.style())
    trace, config = subject.trace, model_cache.options(subject.model)
    usable = kinds(trace)
    kind = state.fit(site=usable).site
    if len(usable) > 1:
        st.segmented_control(_("Site"), usable, format_func=labels.kind_label, required=True, **state.bind("site"))
    queries, keys = (trace.tokens[stack] for stack in labels.stacks(kind))
    n_layers = config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers
    view = state.fit(layer=n_layers, head=config.n_heads, query=len(queries))
    last = st.session_state.get("heads.selection", attention.Selection())
    wanted = replace(last, layer=view.layer, head=view.head, query=view.query_of(queries))
    seen = attention.peek(key="heads.grid", selected=wanted)
    shape = (n_layers, config.n_heads, len(queries), len(keys))
    chosen = None if attention.fits(shape) else (seen.layer, seen.head)
    selection = attention.mount(
        subject_cache.heads(subject, kind, chosen),
        query_tokens=row_names.queries(subject, kind),
        key_tokens=labels.texts(keys),
        selected=wanted,
        words=words(attention.ENGLISH),
        key="heads.grid",
    )
    st.session_state["heads.selection"] = selection
    state.update(layer=selection.layer, head=selection.head, query=written_query(selection.query, queries))
    row_names.caption(subject, kind, selection.query)
    doings(subject, selection.layer, selection.head)
    importance(subject)


def doings(subject: Subject, layer: int, chosen: int) -> None:
    """A sentence for every head of a layer, from measures of this sentence."""
    found = computed.habits(subject, state.view().site)
    rows = [
        Row(
            (
                _("head {head}", head=head),
                computed.habit(found, layer, head),
                Number(float(found.effective[layer, head]), f"{found.effective[layer, head]:.1f}"),
            ),
            "marked" if head == chosen else "",
        )
        for head in range(found.effective.shape[1])
    ]
    columns = ("", _("in this sentence"), _("keys that it reads from"))
    st.html(table.to_html(columns, rows, caption=_("The heads of layer {layer}", layer=layer)))
    st.caption(
        _(
            "Keys that it reads from: exp of the entropy of its weights, averaged over the queries. A query here sees "
            "{visible} keys on average.",
            visible=f"{found.visible[layer]:.1f}",
        )
    )


def importance(subject: Subject) -> None:
    """The key with the largest weight beside the key from which most arrives."""
    view, query = state.view(), attention_selector.query(subject)
    names = labels.numbered(subject.trace.tokens[labels.stacks(view.site)[1]])
    found = computed.key_contributions(subject, attention_selector.site(), view.head, query)
    top = np.argsort(-found.weights, kind="stable")[:4]
    rows = [
        Row(
            (
                names[j],
                Number(found.weights[j], f"{found.weights[j]:.4f}"),
                found.norms[j],
                found.norms[j] / found.weights[j] if found.weights[j] > 0 else 0.0,
            ),
            "marked" if j == int(found.norms.argmax()) else "",
        )
        for j in top
    ]
    columns = (_("token (key)"), _("weight a"), _("length of a · v W_O"), _("length of v W_O"))
    caption = _(
        "Layer {layer}, head {head}, query {query}: the largest weights and what they bring",
        layer=view.layer,
        head=view.head,
        query=query,
    )
    st.html(table.to_html(columns, rows, bar=1, caption=caption))


# --- what heads cost, and shared keys and values ----------------------------------------------------------------------


@st.fragment
@guarded()
def cost(subject: Subject) -> None:
    """The same width in few heads or many."""
    st.html(table.style())
    costs.layer(subject)


@st.fragment
@guarded()
def groups(subject: Subject) -> None:
    """Fewer key/value heads than query heads."""
    st.html(table.style())
    costs.sharing(subject)


page()
