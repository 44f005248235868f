"""The reading list: what to read, by whom, and why (assets/lessons/reading.toml)."""

import base64
import html
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import streamlit as st

from vizformer.assets import asset
from vizformer.web.frame.sitemap import number, numbered
from vizformer.web.link.languages import SOURCE
from vizformer.web.words.i18n import _


@dataclass(frozen=True)
class Item:
    """A paper or a tutorial: title, authors, year, where it appeared, and why to read it, in one language."""

    kind: str
    title: str
    authors: str
    year: int
    where: str
    why: str


@cache
def items(code: str) -> tuple[Item, ...]:
    """The list in the language `code` (the reasons and kinds of publication; titles stay as they were published)."""
    with asset("lessons", "reading.toml").open("rb") as file:
        listed = tomllib.load(file)["item"]
    return tuple(
        Item(
            e["kind"],
            e["title"],
            e["authors"],
            e["year"],
            e.get(f"where_{code}", e["where"]),
            numbered(e.get(code, e[SOURCE])),
        )
        for e in listed
    )


def table(listed: Sequence[Item]) -> None:
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in (_("Title"), _("Authors"), _("Why")))
    rows = "".join(
        f"<tr><td><b>{html.escape(item.title)}</b><br>{html.escape(f'{item.year} · {item.where}')}</td>"
        f"<td>{html.escape(item.authors)}</td><td>{html.escape(item.why)}</td></tr>"
        for item in listed
    )
    st.html(f'<table class="vf-list"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>')


def beyond() -> None:
    """What the course only mentions: pictures and text in one space, and other fields; a paragraph and a drawing."""
    st.subheader(_("Beyond text"), anchor=False)
    words, drawing = st.columns([3, 2], gap="medium")
    words.markdown(
        _(
            "**Pictures and text in one space.** CLIP (Radford et al. 2021) trains two encoders together. One reads a "
            "picture as patches (lesson {tokens}), the other one its caption, and each gives one vector. In a batch the dot "
            "product of a picture with its own caption is made large, and that with all others small: a softmax over the "
            "batch, as over keys (lesson {qkv}). Afterwards a text finds pictures, and a picture is sorted by the text that "
            "lies nearest.\n\n"
            "**Other fields.** Whatever can be written as rows of numbers can be read. Whisper reads sound; in AlphaFold 2 "
            "the residues of a protein attend to one another; the Decision Transformer reads states, actions and rewards as "
            "tokens. The layers are those of this course. This app has no such model: the papers are in the list.",
            tokens=number("tokens"),
            qkv=number("qkv"),
        )
    )
    told = [html.escape(text) for text in (_("a picture"), _("its caption"), _("encoder"), _("one space"))]
    source = base64.b64encode(_two_encoders(*told).encode()).decode()
    about = f"{told[0]}, {told[1]} → {told[2]} → {told[3]}"
    drawing.html(f'<img src="data:image/svg+xml;base64,{source}" alt="{about}" style="width:100%;max-width:26rem">')


def _two_encoders(picture: str, caption: str, encoder: str, space: str) -> str:
    """Two encoders whose vectors lie in one space, each picture near its caption, on a ground of its own."""
    ink, blue, orange = "#10161d", "#0072b2", "#d55e00"
    dot, square = f'<circle r="6" fill="{blue}"/>', f'<rect x="-6" y="-6" width="12" height="12" fill="{orange}"/>'
    boxes = ((10, 20, picture), (10, 130, caption), (110, 20, encoder), (110, 130, encoder))
    pairs, marks = ((258, 45), (310, 75), (262, 120), (316, 155)), ((24, 66, dot), (24, 176, square))
    drawn = [
        f'<rect x="{x}" y="{y}" width="74" height="60" rx="4" fill="none" stroke="{ink}"/>'
        f'<text x="{x + 37}" y="{y + 34}" text-anchor="middle">{name}</text>'
        for x, y, name in boxes
    ]
    drawn += [f'<g transform="translate({x} {y})">{mark}</g>' for x, y, mark in marks]
    for x, y in pairs:
        drawn += [
            f'<g transform="translate({x + 18 * i} {y + 8 * i})">{mark}</g>' for i, mark in enumerate((dot, square))
        ]
    for path in ("M84 50h20", "M84 160h20", "M184 50L224 80", "M184 160L224 125"):
        drawn.append(f'<path d="{path}" stroke="{ink}" stroke-width="2"/>')
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 216" font-size="14" font-family="sans-serif">'
        f'<rect width="360" height="216" rx="8" fill="#f2f5f9"/>'
        f'<g fill="{ink}"><rect x="230" y="10" width="120" height="180" rx="8" fill="none" stroke="{ink}"/>'
        f'<text x="290" y="208" text-anchor="middle">{space}</text>{"".join(drawn)}</g></svg>'
    )
