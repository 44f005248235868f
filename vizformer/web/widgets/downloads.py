"""Downloads of a picture: a file for a slide or a paper, its numbers, and a page that shows it without a server.

Beside it stands the picture for those who do not see it: what stands out in a sentence, and its numbers as a table.

    take_away(Picture("head", figure=lambda: ..., caption=caption(subject, "encoder.0.self, head 3")), key="heads")

Nothing is computed before somebody asks for it: of a picture that nobody downloads there are only the buttons.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.components import sortable
from vizformer.context_value import held
from vizformer.figures import files, sentences
from vizformer.figures import tables as table
from vizformer.figures.figure import Figure
from vizformer.figures.tables import Table
from vizformer.web.catalogue import sources
from vizformer.web.catalogue.bounded_cache import RESULTS
from vizformer.web.frame import sitemap
from vizformer.web.link import state
from vizformer.web.widgets import model_assumptions
from vizformer.web.widgets.folded_box import folded
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import SPEAKING, _, language, show_note, translate

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
    """The buttons; files and tables are offered once one is pressed."""
    told = [picture for picture in pictures if picture.can_be_told]
    codes = [picture.code for picture in pictures if picture.code is not None]
    with (on or st).container(key=f"takeaway-{key}", horizontal=True, gap="medium"):
        opened = st.popover(_("Download"), type="tertiary", key=f"take.{key}", on_change="rerun")
        read = st.popover(_("As a table"), type="tertiary", key=f"read.{key}", on_change="rerun") if told else None
        coded = st.popover(_("In Python"), type="tertiary", key=f"code.{key}", on_change="rerun") if codes else None
    if opened.open:
        with opened:
            for index, picture in enumerate(pictures):
                if picture.title:
                    st.markdown(f"**{plain(picture.title)}**")
                _files(picture, f"take.{key}.{index}")
            st.caption(plain(pictures[0].caption))
    if coded is not None and coded.open:
        with coded:
            _code(codes[0]())
    if read is not None and read.open:
        with read:
            _tables(told, f"read.{key}")


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
    return sentences.sentence(figure), table.table(figure)


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
        make,
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
    title, assumed = sources.title(view.model), model_assumptions.caption(view.model)
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
