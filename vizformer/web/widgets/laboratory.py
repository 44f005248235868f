"""A part of a page that runs by itself, without the page's frame."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

import streamlit as st

from vizformer.web.link import state
from vizformer.web.words.errors import guarded

Draw = TypeVar("Draw", bound=Callable[..., None])


def laboratory(draw: Draw) -> Draw:
    """Has what `draw` draws run alone where one of its own widgets changes; its errors stay in its place.

    A widget in it may choose another sentence, target or model, or set a number by hand: then the whole page runs, since
    all of it shows another subject.
    """

    @st.fragment
    @guarded()
    @wraps(draw)
    def alone(*args: object, **kwargs: object) -> None:
        if not state.is_drawn():
            st.rerun()
        draw(*args, **kwargs)
        state.drawn()

    return cast(Draw, alone)
