"""Heads put together: at once where that is quick; of a longer text in a thread, watched from the page and stopped there."""

import streamlit as st

from vizformer.components.payload import HeadsPayload
from vizformer.web.catalogue import head_pictures
from vizformer.web.catalogue.long_work import WORK
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import Kind, Over, Without
from vizformer.web.widgets import watched_work
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_text

Call = tuple[Subject, Kind, Over, Without, int]

POLL = 0.5  # seconds between two looks at work that goes on
_BEGUN = "attention.together.begun"


def payload(call: Call, shape: tuple[int, int, int, int]) -> HeadsPayload | None:
    """What `head_pictures.together` packs; None while it goes on, and once it was stopped."""
    subject, kind, over, without, _layer = call
    looked_through = (over == "mean" or over == "max") and head_pictures.small_together.holds(
        subject, kind, over, without
    )
    if max(shape[2:]) <= head_pictures.QUICK or looked_through or head_pictures.together.holds(*call):
        return head_pictures.together(*call)
    going = WORK.look(head_pictures.together, call, watched_work.reader())
    if head_pictures.together.holds(*call):  # it came to its end just now
        return head_pictures.together(*call)
    if going is None and st.session_state.get(_BEGUN) != call:
        _begin(call)
    elif going is None:
        show_text("The heads are not put together: it was stopped, or there was no room to keep them.")
        st.button(
            _("Put the heads together"), type="primary", key="attention.together.begin", on_click=_begin, args=(call,)
        )
        return None
    st.fragment(guarded()(_watch), run_every=POLL)(call, shape[0])
    return None


def _begin(call: Call) -> None:
    """Begins it, and leaves what this reader wanted before."""
    if (before := st.session_state.get(_BEGUN)) is not None:
        WORK.leave(head_pictures.together, before, watched_work.reader())
    st.session_state[_BEGUN] = call
    WORK.begin(head_pictures.together, call, watched_work.reader())


def _watch(call: Call, layers: int) -> None:
    """How far it is, and the way to end it; drawn again and again while it goes on."""
    going = WORK.look(head_pictures.together, call, watched_work.reader())
    if going is None:
        st.rerun()
    done = going.done[0]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(done / layers, text=_("Putting the heads together: {done} of {n} layers", done=done, n=layers))
        leave = (head_pictures.together, call, watched_work.reader())
        st.button(_("Stop"), key="attention.together.stop", on_click=WORK.leave, args=leave)
