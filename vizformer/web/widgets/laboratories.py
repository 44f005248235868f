"""A part of a page that runs by itself, without the page's frame; and what a lesson has as its parts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.context_value import held
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.words.errors import guarded

Draw = TypeVar("Draw", bound=Callable[..., None])
_joins: ContextVar[DeltaGenerator | None] = ContextVar("joins", default=None)
_beside: ContextVar[DeltaGenerator | None] = ContextVar("beside", default=None)


class Shown(Protocol):
    """A part of a lesson: its `key` in links and words, its `name` on the tab, and what draws it, a fragment.

    Where it is `wide` its laboratory needs the whole width: the words go below it.
    """

    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def wide(self) -> bool: ...
    @property
    def draw(self) -> Callable[[Subject], None]: ...


Parts = Sequence[Shown]


def laboratory(draw: Draw) -> Draw:
    """Has what `draw` draws run alone where one of its own widgets changes; its errors stay in its place.

    A widget in it may choose another sentence, target or model, or set a number by hand: then the whole page runs, since
    all of it shows another subject.
    """

    @guarded()
    @wraps(draw)
    def guarded_draw(place: DeltaGenerator | None, *args: object, **kwargs: object) -> None:
        if not state.is_drawn():
            st.rerun()
        with held(_joins, None), held(_beside, place):
            draw(*args, **kwargs)
        state.drawn()

    alone = st.fragment(guarded_draw)

    @wraps(draw)
    def drawn(*args: object, **kwargs: object) -> None:
        place = _joins.get()
        (alone if place is None else guarded_draw)(place, *args, **kwargs)

    return cast(Draw, drawn)


def beside_others(place: DeltaGenerator) -> AbstractContextManager[None]:
    """Has a laboratory that is drawn inside run together with the one around it, which gives it a `place` beside it.

    A part that runs alone can put widgets into no container of another one.
    """
    return held(_joins, place)


def place_beside() -> AbstractContextManager[object]:
    """The place beside the laboratory that is being drawn; where it has none, where it stands itself."""
    place = _beside.get()
    return nullcontext() if place is None else place


def is_open(place: Any) -> bool:
    """Whether a tab or a menu is open: what is in it is made only then."""
    return bool(place.open)


@contextmanager
def folded(label: str, *, key: str) -> Iterator[bool]:
    """The box, and whether it is open: `with folded(_("More"), key="page.more") as is_open: ...`.

    Opening it runs the fragment again in which it stands, or else the page.
    """
    box = st.expander(label, key=key, on_change="rerun")
    with box:
        yield is_open(box)
