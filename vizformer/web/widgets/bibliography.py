"""The reading list: what to read, by whom, and why (assets/lessons/reading.toml)."""

import html
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import streamlit as st

from vizformer.assets import asset
from vizformer.web.frame.numbering import numbered
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
    """Draws items, one row each."""
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in (_("Title"), _("Authors"), _("Why")))
    rows = "".join(
        f"<tr><td><b>{html.escape(item.title)}</b><br>{html.escape(f'{item.year} · {item.where}')}</td>"
        f"<td>{html.escape(item.authors)}</td><td>{html.escape(item.why)}</td></tr>"
        for item in listed
    )
    st.html(f'<table class="vf-list"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>')
