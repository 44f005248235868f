"""Figures on a page."""

import base64
import html
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.figures import sentences
from vizformer.figures.figure import Figure
from vizformer.figures.svg import svg
from vizformer.figures.svg.ink import FAINT, LETTERS
from vizformer.web.frame import presenting
from vizformer.web.inside_streamlit import get_script_run_ctx
from vizformer.web.widgets.downloads import Picture, on_page, take_away
from vizformer.web.words.i18n import _

MOST_TOLD = 1 << 16
"""Values of a figure up to which its sentence is made at once, in less than a millisecond; of more in its table alone."""

N_FIRST, STAND_IN_S, MOST_DRAWN, MOST_SQUARES = 2, 10.0, 1 << 15, 150
"""How many figures of a page have an image first, for how many seconds from the first of all on, of how many values, and
from how many cells on a map is a picture: so an image takes at most some 10 ms and 40 kB."""
WIDTH = 795.0  # px of a figure in a lesson on a screen of 1280
_THEME = f"""<style>
:root {{ color-scheme: light dark; }}
:root > rect[fill="white"] {{ fill: none; }}
[fill="{LETTERS}"] {{ fill: light-dark({LETTERS}, #e6edf3); }}
[stroke="{LETTERS}"] {{ stroke: light-dark({LETTERS}, #e6edf3); }}
[stroke="{FAINT}"] {{ stroke: light-dark({FAINT}, #3c4a58); }}
</style>"""  # a file is for a white page
_FIRST = "_first figures"  # in the session: when the first one of all was shown, and the keys of those of each page

LARGER, TALLER = 1.5, 1.25  # letters and heights of figures at a projector
_LETTERS = 12  # px, where a figure names no size
_CONFIG = {"displayModeBar": False}


def show(
    figure: Figure,
    *,
    key: str,
    on: DeltaGenerator | None = None,
    title_above: bool = False,
    code: Callable[[], Mapping[str, str]] | None = None,
    chooses: Callable[[int], object] | None = None,
) -> None:
    """Draws a figure, here or in the container `on`, without Plotly's checks of every property; it can be taken away.

    `code`: makes the same in Python, as `Picture.code`.
    `chooses`: told which point of the first trace was clicked, by its number; a second click on it tells it again.
    `title_above`: a long title stands above the figure, as text that is broken into lines on a narrow page; Plotly would
    cut it.
    """
    drawn = spec(figure)
    if title_above:
        (on or st).html(f"<strong>{figure.title}</strong>")  # (escaped by `figures.figure.frame`)
        drawn["layout"] = {name: value for name, value in drawn["layout"].items() if name != "title"}
        drawn["layout"]["margin"] = {**drawn["layout"]["margin"], "t": 20}
    if presenting.is_on():
        enlarge(drawn)
    drawn["layout"]["template"] = _template()
    made = _unchecked()(drawn)
    with (on or st).container(key=f"chart.{key}"):
        image = _image(figure, drawn["layout"].get("height", 450)) if _is_awaited(key) else ""
        with st.container(key=f"first.{key}" if image else None):  # there also without one: the chart keeps its place
            if image:
                st.html(image)
        on_click: Any = {}
        if chooses is not None:
            on_click = {"on_select": lambda: _clicked(key, chooses), "selection_mode": "points"}
        st.plotly_chart(made, config=_CONFIG, key=key, alt=_said(figure) or None, **on_click)
    take_away(Picture(key, on_page(html.unescape(figure.title)), lambda: figure, code=code), key=key, on=on)


def _clicked(key: str, chooses: Callable[[int], object]) -> None:
    """A click on a point that is selected takes it away from the selection: it is meant all the same."""
    points = [one["point_index"] for one in st.session_state[key]["selection"]["points"] if one["curve_number"] == 0]
    last = f"_last of {key}"
    st.session_state[last] = found = points[0] if points else st.session_state.get(last)
    if found is not None:
        chooses(found)


def _is_awaited(key: str) -> bool:
    """Whether Plotly's script may not be there yet, and this is one of the first figures of its page."""
    context = get_script_run_ctx()
    begun, first = st.session_state.setdefault(_FIRST, (time.monotonic(), {}))
    keys = first.setdefault(context.page_script_hash if context else "", set())
    if presenting.is_on() or time.monotonic() - begun > STAND_IN_S:
        return False
    if len(keys) < N_FIRST:
        keys.add(key)
    return key in keys


def _image(figure: Figure, height: int) -> str:
    """The figure as an image for the same place, which Plotly's covers as soon as it is drawn (app.css); or nothing."""
    if _n_values(figure) > MOST_DRAWN:
        return ""
    try:
        drawn = svg(figure, width=WIDTH, most_cells=MOST_SQUARES)
    except ValueError:  # something that a file does not know
        return ""
    packed = base64.b64encode(drawn.replace("</svg>", f"{_THEME}</svg>").encode()).decode("ascii")
    return f'<img class="vf-stand-in" alt="" height="{height}" src="data:image/svg+xml;base64,{packed}">'


def _n_values(figure: Figure) -> int:
    return sum(np.asarray(trace.get("z", trace.get("y", ()))).size for trace in figure.parts[0])


def _said(figure: Figure) -> str:
    """What a screen reader says in the place of the picture: its title, and what stands out."""
    title = html.unescape(figure.title)
    if _n_values(figure.told_by or figure) > MOST_TOLD:
        return title
    told = sentences.sentence(figure)
    return _("{title}: {sentence}", title=title, sentence=told) if title else told


def enlarge(drawn: dict[str, Any]) -> None:
    """Makes the letters of what is drawn larger, and room for them: a figure does not grow with the page."""
    layout = drawn["layout"]
    layout["font"] = {"size": _LETTERS, **layout.get("font", {})}
    _enlarge_letters(drawn)
    if "height" in layout:
        layout["height"] = round(layout["height"] * TALLER)


def _enlarge_letters(part: object) -> None:
    if isinstance(part, list | tuple):
        for one in part:
            _enlarge_letters(one)
    elif isinstance(part, dict):
        for name, one in part.items():
            if name.endswith("font") and isinstance(one, dict) and isinstance(one.get("size"), int | float):
                part[name] = {**one, "size": round(one["size"] * LARGER)}
            else:
                _enlarge_letters(one)


def spec(figure: Figure) -> dict[str, Any]:
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


@cache
def _template() -> dict[str, Any]:
    """Streamlit's, whose colours the browser replaces by those of the light or dark theme."""
    import plotly.io

    found: dict[str, Any] = plotly.io.templates["streamlit"].to_plotly_json()
    return found
