"""Attention: every head for the typed sentence, the translation, and what the model expects next."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import attention, lines, tokens
from vizformer.web.catalogue import model_cache, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.view import PICTURES, written_query
from vizformer.web.widgets import model_suggestions, row_names
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.widgets.number_editor import what_changed
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vizformer.analysis import Kind
    from vizformer.text import Token


def page() -> None:
    subject = subject_box()
    if subject is None:
        return
    above(subject)
    guarded()(what_changed)(subject)
    heads(subject)
    next_token(subject)


def above(subject: Subject) -> None:
    """The translation, the site and the picture in one line, so that the picture is in sight without scrolling."""
    words_of, which, how = st.columns([5, 9, 3], vertical_alignment="center")
    with words_of:
        translation(subject)
    with which:
        site(subject)
    with how:
        picture()


@guarded()
def translation(subject: Subject) -> None:
    """What the model made of the sentence (or the target that it was given), in words."""
    if (made := subject.translation) is None:
        return
    given, bundled = bool(subject.target.strip()), not subject.model.is_from_elsewhere
    if given:
        caption = _("Given target") if model_suggestions.writes(subject.model) else _("What the decoder reads")
    else:  # a model that was opened may just as well have been trained to repair or to sum up
        caption = _("The model's translation") if bundled else _("What the model writes")
    st.caption(caption)
    st.text(made or _("(nothing: the model ended at once)"))
    if subject.is_cut_off:
        cut = _("Cut off: the model did not come to an end by itself.")
        known = _("Cut off: the model did not come to an end by itself. It knows short everyday sentences best.")
        st.caption(known if bundled else cut)


@guarded()
def site(subject: Subject) -> None:
    """Which attention to look at."""
    from vizformer.analysis import kinds

    known = kinds(subject.trace)
    state.fit(site=known)
    st.segmented_control(_("Site"), known, format_func=labels.kind_label, required=True, **state.bind("site"))


@guarded()
def picture() -> None:
    """How the heads are drawn."""
    names = {"map": _("Map"), "lines": _("Lines")}
    st.segmented_control(_("Picture"), PICTURES, format_func=names.__getitem__, required=True, **state.bind("picture"))


@dataclass(frozen=True)
class Heads:
    """The heads of the chosen site, and the tokens between which they attend."""

    subject: Subject
    kind: "Kind"
    shape: tuple[int, int, int, int]  # layers, heads, queries, keys
    queries: "Sequence[Token]"
    keys: "Sequence[Token]"

    @property
    def query_tokens(self) -> list[str]:
        return row_names.queries(self.subject, self.kind)

    @property
    def key_tokens(self) -> list[str]:
        return labels.texts(self.keys)


@st.fragment
@guarded()
def heads(subject: Subject) -> None:
    """All heads of the site: one of them as a large map, or several as lines."""
    kind = state.view().site
    queries, keys = (subject.trace.tokens[stack] for stack in labels.stacks(kind))
    config = model_cache.checkpoint(subject.model).model.config
    n_layers = config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers
    state.fit(layer=n_layers, head=config.n_heads, query=len(queries))
    shape = (n_layers, config.n_heads, len(queries), len(keys))
    (as_lines if state.view().picture == "lines" else as_map)(Heads(subject, kind, shape, queries, keys))
    view = state.view()
    row_names.caption(subject, kind, view.query_of(queries))
    there = "→ " + _(
        "Every number of head {head} in layer {layer}, for query {query}, step by step",
        head=view.head,
        layer=view.layer,
        query=view.query_of(queries),
    )
    if st.button(there, type="tertiary", key="attention.steps"):
        state.update(part="arithmetic")  # of the lesson, which begins with another part
        st.switch_page("pages/learn/qkv.py")


# The page keeps what a component returned and passes it again; a difference is the page's own wish.


def as_map(heads: Heads) -> None:
    view = state.view()
    last = st.session_state.get("attention.selection", attention.Selection())
    wanted = replace(last, layer=view.layer, head=view.head, query=view.query_of(heads.queries))
    shown = attention.peek(key="heads", selected=wanted)
    chosen = None if attention.fits(heads.shape) else (shown.layer, shown.head)
    selection = attention.mount(
        subject_cache.heads(heads.subject, heads.kind, chosen),
        query_tokens=heads.query_tokens,
        key_tokens=heads.key_tokens,
        selected=wanted,
        words=words(attention.ENGLISH),
        key="heads",
    )
    st.session_state["attention.selection"] = selection
    state.update(layer=selection.layer, head=selection.head, query=written_query(selection.query, heads.queries))


def as_lines(heads: Heads) -> None:
    if not lines.fits((1, *heads.shape[1:]), scored=False):
        st.info(_("The text is too long for lines. The map shows every head of it."))
        return
    wanted = wanted_lines(st.session_state.get("attention.lines"))
    layer = min(lines.peek(key="lines", selected=wanted).layer, heads.shape[0] - 1)
    selection = lines.mount(
        subject_cache.lines(heads.subject, heads.kind, None if lines.fits(heads.shape, scored=False) else layer),
        query_tokens=heads.query_tokens,
        key_tokens=heads.key_tokens,
        selected=wanted,
        words=words(lines.ENGLISH),
        key="lines",
    )
    st.session_state["attention.lines"] = selection
    view, shown, pinned = state.view(), selection.heads or (), selection.pinned
    state.update(
        layer=selection.layer,
        head=view.head if view.head in shown else shown[0],
        query=pinned.index if pinned is not None and pinned.side == "query" else view.query,
    )


def wanted_lines(last: lines.LineSelection | None) -> lines.LineSelection:
    """The lines as they were left, brought to the layer, head and query that are looked at now."""
    view = state.view()
    query = None if view.query is None else lines.Pin("query", view.query)
    if last is None:
        return lines.LineSelection(view.layer, (view.head,), query)
    shown = last.heads if last.heads and view.head in last.heads else (view.head,)
    pinned = query if query and last.pinned is not None and last.pinned.side == "query" else last.pinned
    return replace(last, layer=view.layer, heads=shown, pinned=pinned)


def usual_position(subject: Subject, sequence: "Sequence[Token]") -> int:
    """Where a prediction says most: after the text, after the start of a translation, at the first [MASK]."""
    config = model_cache.options(subject.model)
    if config.architecture == "decoder-only":
        return len(sequence) - 1
    masked = (i for i, token in enumerate(sequence) if config.mask_id is not None and token.id == config.mask_id)
    return next(masked, 0) if config.architecture == "encoder-only" else 0


@st.fragment
@guarded()
def next_token(subject: Subject) -> None:
    """The most probable next tokens after a position of the last stack."""
    if not model_cache.predicts(subject.model):
        st.caption(
            _(
                "This model's files hold no head that predicts tokens, so there is no prediction to show: its attention "
                "and its arithmetic are all there."
            )
        )
        return
    trace = subject.trace
    stack = "decoder" if "decoder" in trace.tokens else "encoder"
    sequence = trace.tokens[stack]
    st.subheader(_("What comes next?") if stack == "decoder" else _("What stands here?"), anchor=False)
    chosen, usual = state.fit(position=len(sequence)).position, usual_position(subject, sequence)
    position = tokens.mount(
        labels.chips(sequence),
        selected=usual if chosen is None else chosen,
        label=_("Choose a position: the model predicts the token after it")
        if stack == "decoder"
        else _("Choose a position: the model says what may stand there"),
        words=words(tokens.ENGLISH),
        key="next",
    )
    position = usual if position is None else position
    state.update(position=None if position == usual else position)
    best = subject_cache.predictions(subject, position)
    st.plotly_chart(
        figures.next_token_bars(
            [p.token.text for p in best],
            np.array([p.probability for p in best], dtype=np.float32),
            title=_("Most probable after position {position}", position=position)
            if stack == "decoder"
            else _("Most probable at position {position}", position=position),
            words=words(figures.ENGLISH),
        ),
        config={"displayModeBar": False},
        key="next.bars",
    )


page()
