"""What stands above the heads: what the model wrote, what was checked of it, and which attention is drawn how."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import streamlit as st

from vizformer.analysis import Kind, kinds
from vizformer.checkpoints.agreement_check import is_possible
from vizformer.errors import VizformerError
from vizformer.messages import Message
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import Cached
from vizformer.web.catalogue.long_work import LongWork
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.inside_streamlit import get_script_run_ctx
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import PICTURES
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.watched_work import reader
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, translate

POLL = 2.0  # seconds
COMPARING = LongWork(away=5 * POLL, at_once=1)  # a process with two copies of a model; who has left does not want it
LONGEST = 24  # characters of the text that was compared
_TEXT = "vizformer.trust"  # model -> the text that it opened on, which is compared


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
                line(subject)
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
        line(subject)


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
        cut = _("Cut off: the model wrote no end mark.")
        known = _("Cut off: the model wrote no end mark. It works best with short everyday sentences.")
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


@guarded()
def line(subject: Subject) -> None:
    """Draws the checks of a model from elsewhere, and its agreement with transformers on the text that it opened on."""
    model = subject.model
    if model_cache.is_recorded(model):
        _recorded(model)
        return
    text = st.session_state.setdefault(_TEXT, {}).setdefault(model, subject.text)
    if model_cache.glance(model).format != "hugging-face":
        _say(model, _("Files of this kind are compared with no other program."))
    elif not is_possible():
        _say(model, _("Not compared with transformers, which is not installed here."))
    elif model_cache.agreement.holds(model, text):
        _say(model, _compared(model, text))
    elif isinstance(failed := st.session_state.get(f"vizformer.trust.{model}"), Message):
        _say(model, _("Not compared with transformers: {reason}", reason=plain(translate(failed))))
    else:
        begun = partial(_say, model, _("Comparing with transformers …"))
        st.fragment(guarded()(_watch), run_every=POLL)(model_cache.agreement, (model, text), begun)


def _recorded(model: ModelRef) -> None:
    """Whether what is recorded of the model's own code is all there is to say, once that has been tried."""
    if model_cache.checks.holds(model):
        _beside_report(_tried(model))
    elif isinstance(failed := st.session_state.get(f"vizformer.trust.{model}"), Message):
        _beside_report(_("Recorded from the model's own code, not checked: {reason}", reason=plain(translate(failed))))
    else:
        begun = partial(_beside_report, _("Recorded from the model's own code; the recording is being checked …"))
        st.fragment(guarded()(_watch), run_every=POLL)(model_cache.checks, (model,), begun)


def _tried(model: ModelRef) -> str:
    try:
        found = model_cache.checks(model)
    except VizformerError as error:
        return _("Recorded from the model's own code, not checked: {reason}", reason=plain(translate(error.message)))
    if found.exact and found.whole and found.tokenwise:
        return _(
            "Recorded from the model's own code: exact and complete (tested with {n} tokens).",
            n=", ".join(map(str, found.lengths)),
        )
    wrong = "; ".join(translate(one, plain) for one in found.said)
    return "**" + _("Recorded from the model's own code, but not complete: {wrong}.", wrong=wrong) + "**"


def _watch(work: Cached[..., Any], call: tuple[Any, ...], begun: Callable[[], None]) -> None:
    """Begins work when the page has been looked at for a while, and looks whether it is there; `begun` says so."""
    key = f"vizformer.trust.{call[0]}"
    state = st.session_state.get(key)
    if state is None:
        if _has_time_passed():  # the first run is the page's own: its picture comes first
            st.session_state[key] = "begun"
            COMPARING.begin(work, call, reader())
    else:
        try:
            going = COMPARING.look(work, call, reader())
        except VizformerError as error:
            st.session_state[key] = error.message
            st.rerun()
        if going is None:
            del st.session_state[key]  # (it begins again, should it have been left)
            st.rerun()
    begun()


def _has_time_passed() -> bool:
    """Whether only this part runs, as it does by itself after a while."""
    context = get_script_run_ctx()
    return context is not None and bool(context.fragment_ids_this_run)


def _compared(model: ModelRef, text: str) -> str:
    try:
        found = model_cache.agreement(model, text)
    except VizformerError as error:
        return _("Not compared with transformers: {reason}", reason=plain(translate(error.message)))
    values = dict(
        version=found.version,
        text=plain(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"),
        apart=f"{found.largest:.0e}",
    )
    if found.holds:
        return _("As in transformers {version} to {apart}, on “{text}”.", **values)
    return "**" + _("Not as in transformers {version}: {apart} apart, on “{text}”.", **values) + "**"


def _say(model: ModelRef, compared: str) -> None:
    report = model_cache.glance(model)
    checked = _(
        "{n} of {total} tensors used, no NaN or infinity.", n=len(report.with_fate("used")), total=len(report.tensors)
    )
    _beside_report(f"{checked} {compared}")


def _beside_report(said: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="trust"):
        st.caption(said, width="stretch")
        st.page_link(sitemap.REPORT.file, label=translate(sitemap.REPORT.title), width="content")
