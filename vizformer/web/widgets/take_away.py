"""Take away: a picture as a file for a slide or a paper, its numbers, and the page that shows it without a server.

    take_away(Picture("head", figure=lambda: ..., caption=caption(subject, "encoder.0.self, head 3")), key="heads")

Nothing is computed before somebody asks for a file: of a picture that nobody takes away there is only the button.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from vizformer.web.catalogue import sources
from vizformer.web.frame import sitemap
from vizformer.web.link import state
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, translate

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from vizformer.figures.figure import Figure

LONGEST_TEXT = 120  # characters of the sentence in a caption


@dataclass(frozen=True)
class Picture:
    """What can be taken away.

    Attributes:
        name: of the files, without their ending.
        caption: stands below the picture in every file.
        figure: makes the picture; None where there are only other files.
        arrays: make the numbers of an npz; default those of the figure.
        page: makes one HTML file that works without a server; default Plotly's of the figure.
        title: above its files, where several pictures are offered together.
        more: other files, (label, ending) -> what makes them.
    """

    name: str
    caption: str
    figure: "Callable[[], Figure] | None" = None
    arrays: "Callable[[], Mapping[str, Any]] | None" = None
    page: Callable[[], str] | None = None
    title: str = ""
    more: "Mapping[tuple[str, str], Callable[[], bytes]] | None" = None


def take_away(*pictures: Picture, key: str, on: "DeltaGenerator | None" = None) -> None:
    """The button; the files are offered once it is pressed."""
    with (on or st).container(key=f"takeaway-{key}"):
        opened = st.popover(_("Take away"), type="tertiary", key=f"take.{key}", on_change="rerun")
    if not opened.open:
        return
    with opened:
        for index, picture in enumerate(pictures):
            if picture.title:
                st.markdown(f"**{plain(picture.title)}**")
            _files(picture, f"take.{key}.{index}")
        st.caption(plain(pictures[0].caption))


def _files(picture: Picture, key: str) -> None:
    from vizformer.figures import files

    with st.container(horizontal=True, gap="small"):
        if (figure := picture.figure) is not None:
            for kind in ("svg", "png", "pdf"):
                missing = None if kind == "svg" or files.prints() else _PAPER()
                _button(kind.upper(), kind, _made(picture, kind), picture.name, key, missing=missing)
            _button("CSV", "csv", _made(picture, "csv"), picture.name, key)
        if figure is not None or picture.arrays is not None:
            _button("NPZ", "npz", _made(picture, "npz"), picture.name, key)
        if picture.page is not None or figure is not None:
            _button("HTML", "html", _made(picture, "html"), picture.name, key, missing=None)
        for (label, ending), make in (picture.more or {}).items():
            _button(label, ending, make, picture.name, key)


def _PAPER() -> str:  # noqa: N802  (a text in the reader's language)
    return _(
        "This server lacks what makes PNG and PDF: `pip install vizformer[paper]`. An SVG can be printed to PDF from any "
        "browser."
    )


def _button(
    label: str, ending: str, make: Callable[[], bytes], name: str, key: str, *, missing: str | None = None
) -> None:
    from vizformer.figures import files

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
    """What makes a file, later and outside of any run."""

    def make() -> bytes:
        from vizformer.figures import files

        if kind == "html" and picture.page is not None:
            return picture.page().encode()
        numbers = None if picture.arrays is None or kind != "npz" else picture.arrays()
        if picture.figure is None:
            return files.archive(numbers or {}, picture.caption)
        return files.as_file(picture.figure(), kind, caption=picture.caption, numbers=numbers)

    return make


def on_page(title: str) -> str:
    """The caption of a figure of which only its title is known: where it stood, and what the page was drawn for."""
    url = state.page()
    entry = next((e for __, entries in sitemap.SECTIONS for e in entries if e.url == url), sitemap.HOME)
    return caption(title, _("page “{title}”", title=translate(entry.title)))


def caption(*said: str, model: bool = True) -> str:
    """What a picture shows, in one line: what is `said`, then the model and the sentence of the page."""
    view = state.view()
    text = view.text if len(view.text) <= LONGEST_TEXT else view.text[: LONGEST_TEXT - 1] + "…"
    about = (sources.title(view.model), " ".join(text.split())) if model else ()
    return " · ".join(one for one in (*said, *about, "VizFormer") if one)


def _safe(name: str) -> str:
    """A name that every system takes for a file."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "vizformer"
