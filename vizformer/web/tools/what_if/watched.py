"""Work that takes many runs of the model: done at once where it is quick, else begun with a button, watched and stopped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import streamlit as st

from vizformer.web.catalogue.bounded_cache import Cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.words.i18n import _

Result = TypeVar("Result")

AT_ONCE = 2e10  # multiplications that a page does without being asked: about two seconds

HEARD: "ContextVar[Callable[[int, int], None] | None]" = ContextVar("heard", default=None)
"""Who is told how far the work of this thread is; what it raises ends the work."""


@contextmanager
def hearing(heard: Callable[[int, int], None]) -> Iterator[None]:
    """Has the work of this thread tell `heard` how far it is."""
    before = HEARD.set(heard)
    try:
        yield
    finally:
        HEARD.reset(before)


def cost(subject: Subject, runs: int) -> float:
    """Multiplications of some runs of the model over the texts of a subject, about."""
    from vizformer.model import count_parameters

    n = sum(len(tokens) for tokens in subject.trace.tokens.values())
    return float(runs) * n * count_parameters(subject.config)


def watched(
    work: "Cached[..., Result]", call: tuple[Any, ...], *, quick: bool, runs: int, begin: str, key: str
) -> "Result | None":
    """What `work(*call)` gives; None until it is wanted, and once it was stopped.

    Args:
        quick: it is done without being asked for.
        runs: of the model, in all.
        begin: on the button.
        key: of its widgets.
    """
    if work.holds(*call):
        return work(*call)
    room = st.empty()
    if not quick:
        with room.container():
            st.text(_("That takes {n} runs of the model. You can stop them.", n=f"{runs:,}"))
            wanted = st.button(begin, type="primary", key=key)
        if not wanted:
            return None
    with room.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, text=_("{done} of {n} runs", done=0, n=f"{runs:,}"))
        if not quick:
            st.button(_("Stop"), key=f"{key}.stop")
    with hearing(lambda done, n: bar.progress(done / n, text=_("{done} of {n} runs", done=f"{done:,}", n=f"{n:,}"))):  # type: ignore[arg-type]
        found = work(*call)
    room.empty()
    return found
