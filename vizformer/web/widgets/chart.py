"""Figures on a page."""

import html
from functools import cache
from typing import TYPE_CHECKING, Any

import streamlit as st

from vizformer.web.widgets.take_away import Picture, on_page, take_away

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from vizformer.figures.figure import Figure

_CONFIG = {"displayModeBar": False}


def show(figure: "Figure", *, key: str, on: "DeltaGenerator | None" = None) -> None:
    """Draws a figure, here or in the container `on`, without Plotly's checks of every property; it can be taken away."""
    made = _unchecked()(_themed(spec(figure)))
    (on or st).plotly_chart(made, config=_CONFIG, key=key, alt=figure.title or None)
    take_away(Picture(key, on_page(html.unescape(figure.title)), lambda: figure), key=key, on=on)


def spec(figure: "Figure") -> dict[str, Any]:
    """What the browser draws; the tests hold it against Plotly's schema."""
    return figure.to_dict()


@cache
def _unchecked() -> Any:
    """The class of figures that Streamlit takes as they are: of any other object it makes a checked one first."""
    from plotly.basedatatypes import BaseFigure

    class Unchecked(BaseFigure):  # type: ignore[misc]  # (Plotly has no types)
        def __init__(self, drawn: dict[str, Any]) -> None:
            object.__setattr__(self, "drawn", drawn)

        def to_dict(self) -> dict[str, Any]:
            found: dict[str, Any] = self.drawn
            return found

    return Unchecked


def _themed(drawn: dict[str, Any]) -> dict[str, Any]:
    """With Streamlit's template, whose colours the browser replaces by those of the light or dark theme."""
    drawn["layout"]["template"] = _template()
    return drawn


@cache
def _template() -> dict[str, Any]:
    import plotly.io

    found: dict[str, Any] = plotly.io.templates["streamlit"].to_plotly_json()
    return found
