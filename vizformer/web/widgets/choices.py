"""Choices of a page's line of settings: each is tied to its part of the link, and the rest folds into "More"."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

import numpy as np
import streamlit as st
from numpy import ndarray
from streamlit.delta_generator import DeltaGenerator

from vizformer.analysis import Kind
from vizformer.web.link import state
from vizformer.web.link.link_settings import Setting
from vizformer.web.widgets import lesson
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

BESIDE = (2, 1)  # widths of the picture and of the words beside it


def line() -> DeltaGenerator:
    """One line of settings; on a narrow page it is broken into several."""
    return st.container(horizontal=True, vertical_alignment="bottom")


def more() -> DeltaGenerator:
    return st.popover(_("More"))


def one_of(
    label: str,
    name: str,
    names: Mapping[Setting, str] | Collection[Setting],
    *,
    labelled: bool = True,
) -> Setting:
    """Which of a few values a setting of the link has; the first one where it says none; labels are `names`."""
    options = list(names)
    called = names if isinstance(names, Mapping) else {value: str(value) for value in options}
    st.segmented_control(
        label,
        options,
        format_func=called.__getitem__,
        required=True,
        label_visibility="visible" if labelled else "collapsed",
        **lesson.setting(name, options[0], options),
    )
    return lesson.value(name, options[0], options)


def box(
    label: str,
    name: str,
    names: Mapping[Setting, str],
    usual: Setting | None = None,
    *,
    labelled: bool = True,
    width: int | Literal["stretch"] = 280,
) -> Setting:
    """Draws a select box for a setting of the link; its default is `usual`, or the first value."""
    options = list(names)
    usual = options[0] if usual is None else usual
    st.selectbox(
        label,
        options,
        format_func=names.__getitem__,
        label_visibility="visible" if labelled else "collapsed",
        width=width,
        **lesson.setting(name, usual, options),
    )
    return lesson.value(name, usual, options)


def kind_of_attention(usable: Sequence[Kind], label: str = "", names: Mapping[str, str] | None = None) -> Kind:
    """The kind of attention that is looked at; asked for where there are several."""
    state.fit(kind=usable)
    if len(usable) > 1:
        st.segmented_control(
            label or _("Kind of attention"),
            usable,
            format_func=names.__getitem__ if names else labels.kind_button,
            required=True,
            label_visibility="visible" if label else "collapsed",
            **state.bind("kind"),
        )
    return state.view().kind


def kind_of_the_largest(usable: Sequence[Kind], values: Callable[[Kind], ndarray]) -> Kind:
    """The chosen kind of attention, as `kind_of_attention`; by default the one with the largest of these values."""
    state.suggest(kind=max(usable, key=lambda kind: float(np.nanmax(values(kind)))))
    return kind_of_attention(usable)
