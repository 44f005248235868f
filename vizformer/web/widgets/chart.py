"""Figures on a page."""

import base64
import html
import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.components import sortable
from vizformer.context_value import held
from vizformer.figures import files, tables
from vizformer.figures import tables as table
from vizformer.figures.figure import Figure
from vizformer.figures.svg import svg
from vizformer.figures.svg.axes import FAINT, LETTERS
from vizformer.figures.tables import Table
from vizformer.web.catalogue import sources
from vizformer.web.catalogue.bounded_cache import RESULTS
from vizformer.web.frame import presenting, sitemap
from vizformer.web.inside_streamlit import get_script_run_ctx
from vizformer.web.link import state
from vizformer.web.turns import in_turn
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.laboratories import folded, is_open
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import SPEAKING, _, language, show_note, translate

# Downloads of a picture: a file for a slide or a paper, its numbers, and a page that shows it without a server.
#
# Beside it stands the picture for those who do not see it: what stands out in a sentence, and its numbers as a table.
#
# take_away(Picture("head", figure=lambda: ..., caption=caption(subject, "encoder.0.self, head 3")), key="heads")
#
# Nothing is computed before somebody asks for it: of a picture that nobody downloads there is only the button.

LONGEST_TEXT = 120  # characters of the sentence in a caption


@dataclass(frozen=True)
class Picture:
    """A picture that can be downloaded."""

    name: str  # of the files, without their ending
    caption: str  # stands below the picture in every file
    figure: Callable[[], Figure] | None = None  # makes the picture; None where there are only other files
    arrays: Callable[[], Mapping[str, Any]] | None = None  # make the numbers of an npz; default those of the figure
    # makes one HTML file that works without a server; default Plotly's of the figure
    page: Callable[[], str] | None = None
    title: str = ""  # above its files, where several pictures are offered together
    more: Mapping[tuple[str, str], Callable[[], bytes]] | None = None  # other files, (label, ending) -> what makes them
    code: Callable[[], Mapping[str, str]] | None = None  # makes the same in Python, by the package that it needs
    # makes a sentence and a table for those who do not see the picture; default those of the figure
    told: Callable[[], tuple[str, Table]] | None = None
    # what the figure is made of, texts and numbers by which its sentence and table are kept for all readers; None makes
    # them anew at every run while they are open
    content: Hashable | None = None

    @property
    def can_be_told(self) -> bool:
        return self.figure is not None or self.told is not None


def take_away(*pictures: Picture, key: str, on: DeltaGenerator | None = None) -> None:
    """One menu of files, of the numbers as a table and of the code; each is made once it is opened."""
    told = [picture for picture in pictures if picture.can_be_told]
    codes = [picture.code for picture in pictures if picture.code is not None]
    drawn: dict[str, Callable[[], object]] = {_("Download"): lambda: _all_files(pictures, f"take.{key}")}
    if told:
        drawn[_("As a table")] = lambda: _tables(told, f"read.{key}")
    if codes:
        drawn[_("In Python")] = lambda: _code(codes[0]())
    with (on or st).container(key=f"takeaway-{key}", horizontal=True):
        menu = st.popover(" · ".join(drawn), type="tertiary", key=f"take.{key}", on_change="rerun")
    if is_open(menu):
        with menu:
            for draw, tab in zip(drawn.values(), st.tabs([*drawn], key=f"tabs.{key}", on_change="rerun"), strict=True):
                with tab:
                    if is_open(tab):
                        draw()


def _all_files(pictures: Sequence[Picture], key: str) -> None:
    for index, picture in enumerate(pictures):
        if picture.title:
            st.markdown(f"**{plain(picture.title)}**")
        _files(picture, f"{key}.{index}")
    st.caption(plain(pictures[0].caption))


def _tables(pictures: Sequence[Picture], key: str) -> None:
    """Each picture as a sentence and a table; the second and those after it once their boxes are opened."""
    first, *others = pictures
    as_table(first, f"{key}.0")
    for index, picture in enumerate(others, 1):
        with folded(picture.title or picture.name, key=f"{key}.{index}") as is_open:
            if is_open:
                as_table(picture, f"{key}.{index}")


def as_table(picture: Picture, key: str) -> None:
    """What stands out in a picture, in a sentence, and its numbers as a table that can be sorted."""
    said, found = _told(picture)
    st.text(said)
    if not found.rows:
        return
    if found.total > len(found.rows):
        shown = {"shown": len(found.rows), "total": found.total}
        if picture.figure is None:
            show_note("The first {shown:,} of {total:,} rows.", **shown)
        else:
            show_note(
                "The {shown:,} values of {total:,} that are furthest from 0; the CSV and the NPZ hold all of them.",
                **shown,
            )
    about = picture.title or picture.caption
    sortable.mount(found.columns, found.rows, caption=about, key=f"{key}.table")


def _code(found: Mapping[str, str]) -> None:
    """Shows the Python code that draws the picture, by package, each with a button that copies it."""
    for package, code in found.items():
        show_note("With {package}", package=package)
        st.code(code, language="python", height=min(300, 24 * (3 + code.count("\n"))))


def _told(picture: Picture) -> tuple[str, Table]:
    if picture.told is not None:
        return picture.told()
    if picture.content is None:
        return _told_by_figure(picture)
    return RESULTS.get(("told", picture.content, language()), lambda: _told_by_figure(picture))


def _told_by_figure(picture: Picture) -> tuple[str, Table]:
    assert picture.figure is not None
    figure = picture.figure()
    return table.sentence(figure), table.table(figure)


def _files(picture: Picture, key: str) -> None:
    with st.container(horizontal=True, gap="small"):
        if (figure := picture.figure) is not None:
            for kind in ("svg", "png", "pdf"):
                missing = None if kind == "svg" or files.prints() else _PAPER()
                _button(kind.upper(), kind, _made(picture, kind), picture.name, key, missing=missing)
            too_many = None if files.fits_csv(figure()) else _TOO_MANY(files.MOST_ROWS)
            _button("CSV", "csv", _made(picture, "csv"), picture.name, key, missing=too_many)
        if figure is not None or picture.arrays is not None:
            _button("NPZ", "npz", _made(picture, "npz"), picture.name, key)
        if picture.page is not None or figure is not None:
            _button("HTML", "html", _made(picture, "html"), picture.name, key, missing=None)
        for (label, ending), make in (picture.more or {}).items():
            _button(label, ending, make, picture.name, key)


def _PAPER() -> str:  # noqa: N802  (a text in the reader's language)
    return _("PNG and PDF need `pip install vizformer[paper]` on this server. Any browser prints an SVG to PDF.")


def _TOO_MANY(rows: int) -> str:  # noqa: N802  (a text in the reader's language)
    return _("More than {rows:,} values are too many for a CSV. The NPZ holds all of them.", rows=rows)


def _button(
    label: str, ending: str, make: Callable[[], bytes], name: str, key: str, *, missing: str | None = None
) -> None:
    st.download_button(
        label,
        in_turn(make),
        f"{_safe(name)}.{ending}",
        files.MEDIA.get(ending, "application/octet-stream"),  # type: ignore[call-overload]
        key=f"{key}.{ending}",
        on_click="ignore",
        disabled=missing is not None,
        help=missing,
    )


def _made(picture: Picture, kind: Any) -> Callable[[], bytes]:
    """A function that makes the file later, outside of any run of a page."""
    about = getattr(picture.caption, "about", {"place": picture.caption})

    @held(SPEAKING, language())
    def make() -> bytes:
        if kind == "html" and picture.page is not None:
            return picture.page().encode()
        numbers = None if picture.arrays is None or kind != "npz" else picture.arrays()
        if picture.figure is None:
            return files.archive(numbers or {}, picture.caption, about)
        return files.as_file(picture.figure(), kind, caption=picture.caption, numbers=numbers, about=about)

    return make


def on_page(title: str) -> str:
    """The caption of a figure of which only its title is known: where it stood, and what the page was drawn for."""
    url = state.page()
    entry = sitemap.PAGES.get(url, sitemap.HOME)
    return caption(title, _("page “{title}”", title=translate(entry.title)))


class Caption(str):
    """A line below a picture, and what it says by name: the place, and the model and the sentence where there are any."""

    about: Mapping[str, str]


def caption(*said: str, model: bool = True, sentence: bool = True) -> Caption:
    """What a picture shows, in one line: what is `said`, then the model, the sentence of the page, and what is assumed."""
    view = state.view()
    text = view.text if len(view.text) <= LONGEST_TEXT else view.text[: LONGEST_TEXT - 1] + "…"
    title, assumed = sources.title(view.model), model_suggestions.caption(view.model)
    about = (title, " ".join(text.split()) if sentence else "", assumed) if model else ()
    found = Caption(" · ".join(one for one in (*said, *about, "VizFormer") if one))
    named = {"model": str(view.model)} if model else {}
    named |= {"text": view.text, "target": view.target} if model and sentence else {}
    found.about = {"place": " · ".join(said), **named}
    return found


def colours_said(colours: str) -> tuple[str, ...]:
    """The part of a caption about the colours of a map; empty where the scale ends at 1."""
    return (_("colours up to the largest of this map"),) if colours == "own" else ()


def _safe(name: str) -> str:
    """A name that every system takes for a file."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "vizformer"


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
    told = tables.sentence(figure)
    return _("{title}: {sentence}", title=title, sentence=told) if title else told


def enlarge(drawn: dict[str, Any]) -> None:
    """Makes the letters of what is drawn larger, and room for them: a figure does not grow with the page."""
    layout = drawn["layout"]
    layout["font"] = {"size": _LETTERS, **layout.get("font", {})}
    _enlarge_letters(drawn)
    if "height" in layout:
        layout["height"] = round(layout["height"] * TALLER)
    if "margin" in layout:
        layout["margin"] = {**layout["margin"], "t": round(layout["margin"]["t"] * LARGER)}


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
