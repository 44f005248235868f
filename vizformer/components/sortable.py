"""A table that is sorted by a click on a heading, or by the keyboard: what a picture shows, without looking at it.

    mount(["query", "key", "weight"], [(0, 0, 1.0), (1, 0, 0.25)], caption="Layer 0, head 2", key="table")

It is an HTML table: a screen reader goes from cell to cell and says the headings, and the browser finds a text in it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from vizformer.components import _mount
from vizformer.word_tables import words_of

LARGEST = 2000
"""Rows that are shown: a browser needs a second for more."""

ENGLISH: Mapping[str, str] = words_of(__file__)
"""Every text of the component; a page passes the same names in the reader's language."""

Cell = str | float | int

_COMPONENT = _mount.Component("sortable")


def mount(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    caption: str = "",
    words: Mapping[str, str] = ENGLISH,
    key: str,
) -> None:
    """Shows the table, of at most `LARGEST` rows, on a Streamlit page."""
    data = _data(columns, rows, caption, words)
    _COMPONENT.mount(key=key, data=data, columns={}, version=0, selected=None)


def to_html(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, caption: str = "", words: Mapping[str, str] = ENGLISH
) -> _mount.Html:
    data = _data(columns, rows, caption, words)
    return _COMPONENT.page(data=data, columns={}, selected=None, title=caption or "Table")


def _data(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], caption: str, words: Mapping[str, str]
) -> dict[str, Any]:
    if len(rows) > LARGEST:
        raise ValueError(f"{len(rows)} rows are more than the {LARGEST} that are shown")
    if wrong := next((row for row in rows if len(row) != len(columns)), None):
        raise ValueError(f"{len(wrong)} cells do not fit {len(columns)} columns")
    return {
        "headings": list(columns),
        "rows": [list(row) for row in rows],
        "caption": caption,
        "words": {**ENGLISH, **words},
    }
