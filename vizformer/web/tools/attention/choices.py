"""What stands above the heads: what the model wrote, what was checked of it, and which attention is drawn how."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import streamlit as st

from vizformer.analysis import Kind, kinds
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.view import PICTURES
from vizformer.web.tools.attention import trust
from vizformer.web.widgets import model_suggestions
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _


def above(subject: Subject) -> None:
    """The translation, the kind of attention and the picture in one line, so that the heads are in sight at once."""
    known = kinds(subject.trace)
    state.fit(kind=known)
    elsewhere = subject.model.is_from_elsewhere
    if len(known) == 1:  # nothing to choose, nor anything that was translated
        place: AbstractContextManager[object] = nullcontext()
        if elsewhere:
            place, checked = st.columns([2, 5], vertical_alignment="bottom")
            with checked:
                trust.line(subject)
        with place, st.container(key="bar-place-picture"):
            picture()
        return
    words_of, which, how = st.columns([4, 9, 4], vertical_alignment="center")
    with words_of:
        translation(subject)
    with which, st.container(key="bar-place-kind"):
        kind(known)
    with how, st.container(key="bar-place-picture"):
        picture()
    if elsewhere:
        trust.line(subject)


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
    with st.container(horizontal=True, vertical_alignment="center", key="cut-off" if subject.is_cut_off else None):
        st.caption(caption, width="content")
        st.text(made or _("(nothing: the model ended at once)"), width="content")
    if subject.is_cut_off:
        cut = _("Cut off: the model did not come to an end by itself.")
        known = _("Cut off: the model did not come to an end by itself. It knows short everyday sentences best.")
        st.caption(known if bundled else cut)


@guarded()
def kind(known: Sequence[Kind]) -> None:
    st.segmented_control(
        _("Kind of attention"), known, format_func=labels.kind_button, required=True, **state.bind("kind")
    )


@guarded()
def picture() -> None:
    names = {"map": _("Map"), "lines": _("Lines"), "text": _("Text")}
    st.segmented_control(_("Picture"), PICTURES, format_func=names.__getitem__, required=True, **state.bind("picture"))
