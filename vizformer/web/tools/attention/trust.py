"""Whether the numbers of a reader's model are right: what was checked of it, in one line above its heads."""

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from vizformer.checkpoints.agreement_check import is_possible
from vizformer.errors import VizformerError
from vizformer.messages import Message
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.long_work import LongWork
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets.watched_work import reader
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, translate

POLL = 2.0  # seconds
COMPARING = LongWork(away=5 * POLL, at_once=1)  # a process with two copies of a model; who has left does not want it
LONGEST = 24  # characters of the text that was compared
_TEXT = "vizformer.trust"  # model -> the text that it opened on, which is compared


@guarded()
def line(subject: Subject) -> None:
    """What was checked of a model from elsewhere, and how far it agrees with transformers on the text that it opened on."""
    model = subject.model
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
        st.fragment(guarded()(_watch), run_every=POLL)(model, text)


def _watch(model: ModelRef, text: str) -> None:
    """Begins the comparison when the page has been looked at for a while, and looks whether it is there."""
    key, call = f"vizformer.trust.{model}", (model, text)
    state = st.session_state.get(key)
    if state is None:
        if _has_time_passed():  # the first run is the page's own: its picture comes first
            st.session_state[key] = "begun"
            COMPARING.begin(model_cache.agreement, call, reader())
    else:
        try:
            going = COMPARING.look(model_cache.agreement, call, reader())
        except VizformerError as error:
            st.session_state[key] = error.message
            st.rerun()
        if going is None:
            del st.session_state[key]  # (it begins again, should it have been left)
            st.rerun()
    _say(model, _("Comparing with transformers …"))


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
    with st.container(horizontal=True, vertical_alignment="center", key="trust"):
        st.caption(f"{checked} {compared}", width="stretch")
        st.page_link(sitemap.REPORT.file, label=translate(sitemap.REPORT.title), width="content")
