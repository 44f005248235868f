"""Work that takes long, as many runs of the model: done at once where it is quick, else begun with a button, watched and
stopped.
"""

import secrets
from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import Cached
from vizformer.web.catalogue.long_work import WORK, hearing
from vizformer.web.catalogue.subject import Subject
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _

Result = TypeVar("Result")

AT_ONCE = 2e10  # multiplications that a page does without being asked: about two seconds
RECORDED = 2e8  # that take as long as to record a run, 20 ms
MOST = 4e12  # that a page takes on: some minutes
POLL = 0.5  # seconds between two looks at work that goes on
_READER = "vizformer.reader"
_FAILED = "vizformer.failed"  # what went wrong while it was watched, for the run of the page that says it


def cost(subject: Subject, runs: int, length: int | None = None) -> float:
    """Multiplications of some runs of the model over the texts of a subject, or over so many tokens, about."""
    n = sum(len(tokens) for tokens in subject.trace.tokens.values()) if length is None else length
    return float(runs) * n * model_cache.n_parameters(subject.model) + beside(subject, runs)


def beside(subject: Subject, runs: int) -> float:
    """Multiplications that take as long as what a run takes beside them: of recorded code each call is looked at."""
    return RECORDED * runs if model_cache.is_recorded(subject.model) else 0.0


Said = Callable[[int, int], str]  # how far it is, in words: done, of how many


def runs_said(done: int, n: int) -> str:
    """How far work is that runs the model many times."""
    return _("{done} of {n} runs", done=f"{done:,}", n=f"{n:,}")


def watched(
    work: Cached[..., Result],
    call: tuple[Any, ...],
    *,
    quick: bool,
    runs: int,
    begin: str,
    key: str,
    said: Said = runs_said,
    takes: str | None = None,
) -> Result | None:
    """What `work(*call)` gives; None until it is wanted, while it goes on, and once it was stopped.

    Args:
        quick: it is done without being asked for.
    """
    if work.holds(*call):
        return work(*call)
    if quick:
        bar = st.progress(0.0, text=said(0, runs))
        try:
            with hearing(lambda done, n: _show(bar, done, n, said)):
                return work(*call)
        finally:
            bar.empty()
    failed = st.session_state.pop(_FAILED, None)
    if failed is not None and failed[:2] == (work, call):
        raise failed[2]
    going = WORK.look(work, call, reader())
    if work.holds(*call):  # it came to its end just now
        return work(*call)
    if going is None:
        st.text(takes or _("That takes {n} runs of the model. You can stop them.", n=f"{runs:,}"))
        st.button(begin, type="primary", key=key, on_click=_begin, args=(work, call))
        return None
    st.fragment(guarded()(_watch), run_every=POLL)(work, call, runs, f"{key}.stop", said)
    return None


def bounded(
    work: Cached[..., Result], call: tuple[Any, ...], *, cost: float, too_long: str, **given: Any
) -> Result | None:
    """Like `watched`, quick where `cost` (in multiplications) is small; above MOST it shows `too_long` and returns None."""
    if cost > MOST:
        st.info(too_long)
        return None
    return watched(work, call, quick=cost < AT_ONCE, **given)


def reader() -> str:
    if _READER not in st.session_state:
        st.session_state[_READER] = secrets.token_hex(8)
    return str(st.session_state[_READER])


def _begin(work: Cached[..., Any], call: tuple[Any, ...]) -> None:
    WORK.begin(work, call, reader())


def _watch(work: Cached[..., Any], call: tuple[Any, ...], runs: int, key: str, said: Said) -> None:
    """Draws the progress of the work and the button that ends it, again and again while it runs."""
    try:
        going = WORK.look(work, call, reader())
    except Exception as error:  # (said here, it would be gone with the next look)
        st.session_state[_FAILED] = work, call, error
        going = None
    if going is None:
        st.rerun()
    done, n = going.done if going.done[0] else (0, runs)
    with st.container(horizontal=True, vertical_alignment="center"):
        _show(st.progress(0.0), done, n, said)
        st.button(_("Stop"), key=key, on_click=WORK.leave, args=(work, call, reader()))


def _show(bar: Any, done: int, n: int, said: Said) -> None:
    bar.progress(done / n, text=said(done, n))
