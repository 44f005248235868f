"""Attention: every head for the typed sentence, the translation, and what the model expects next."""

from dataclasses import replace

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import attention, tokens
from vizformer.web import labels, models, state
from vizformer.web.errors import guarded
from vizformer.web.i18n import _
from vizformer.web.subject import Subject, subject_box
from vizformer.web.words import words


def page() -> None:
    subject = subject_box()
    if subject is None:
        return
    translation(subject)
    site(subject)
    heads(subject)
    next_token(subject)


@guarded()
def translation(subject: Subject) -> None:
    """What the model made of the sentence (or the target that it was given), in words."""
    if (made := subject.translation) is None:
        return
    with st.container(border=True):
        st.caption(_("Given target") if subject.target.strip() else _("The model's translation"))
        st.text(made or _("(nothing: the model ended at once)"))


@guarded()
def site(subject: Subject) -> None:
    """Which attention to look at."""
    from vizformer.analysis import kinds

    known = kinds(subject.trace)
    state.fit(site=known)
    st.segmented_control(_("Site"), known, format_func=labels.kind_label, required=True, **state.bind("site"))


@st.fragment
@guarded()
def heads(subject: Subject) -> None:
    """All heads of the site, one of them large."""
    trace, kind = subject.trace, state.view().site
    query_tokens, key_tokens = (trace.tokens[stack] for stack in labels.stacks(kind))
    config = models.checkpoint(subject.model).model.config
    n_layers = config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers
    view = state.fit(layer=n_layers, head=config.n_heads, query=len(query_tokens))
    # The page keeps what the component returned and passes it again; a difference is the page's own wish.
    last = st.session_state.get("attention.selection", attention.Selection())
    wanted = replace(last, layer=view.layer, head=view.head, query=view.query)
    shown = attention.peek(key="heads", selected=wanted)
    small = n_layers * config.n_heads * len(query_tokens) * len(key_tokens) * 6 < 6_000_000
    payload = models.heads(*subject.key, kind, None if small else (shown.layer, shown.head))
    selection = attention.mount(
        payload,
        query_tokens=labels.texts(query_tokens),
        key_tokens=labels.texts(key_tokens),
        selected=wanted,
        words=words(attention.ENGLISH),
        key="heads",
    )
    st.session_state["attention.selection"] = selection
    state.update(layer=selection.layer, head=selection.head, query=selection.query)
    st.page_link(
        "pages/learn/qkv.py",
        label=_("Every number of head {head} in layer {layer}, for query {query}, step by step",
                head=selection.head, layer=selection.layer, query=selection.query),
    )  # fmt: skip


@st.fragment
@guarded()
def next_token(subject: Subject) -> None:
    """The most probable next tokens after a position of the last stack."""
    trace = subject.trace
    stack = "decoder" if "decoder" in trace.tokens else "encoder"
    sequence = trace.tokens[stack]
    st.subheader(_("What comes next?") if stack == "decoder" else _("What stands here?"), anchor=False)
    view = state.fit(position=len(sequence))
    position = tokens.mount(
        labels.chips(sequence),
        selected=view.position,
        label=_("Choose a position: the model predicts the token after it"),
        words=words(tokens.ENGLISH),
        key="next",
    )
    position = 0 if position is None else position
    state.update(position=position)
    best = models.predictions(*subject.key, position)
    st.plotly_chart(
        figures.next_token_bars(
            [p.token.text for p in best],
            np.array([p.probability for p in best], dtype=np.float32),
            title=_("Most probable after position {position}", position=position),
            words=words(figures.ENGLISH),
        ),
        config={"displayModeBar": False},
        key="next.bars",
    )


page()
