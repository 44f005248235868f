"""A table that is sorted by a click on a heading, or by the keyboard: what a picture shows, without looking at it.

    mount(["query", "key", "weight"], [(0, 0, 1.0), (1, 0, 0.25)], caption="Layer 0, head 2", key="table")

It is an HTML table: a screen reader goes from cell to cell and says the headings, and the browser finds a text in it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from vizformer.components import _mount
from vizformer.word_tables import words_of

LARGEST = 2000  # rows that are shown: a browser needs a second for more

ENGLISH: Mapping[str, str] = words_of(__file__)

Cell = str | float | int

_COMPONENT = _mount.Component("sortable", ENGLISH)


def mount(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, caption: str = "", key: str) -> None:
    """Shows the table, of at most `LARGEST` rows, on a Streamlit page."""
    _COMPONENT.mount(_data(columns, rows, caption), key=key)


def to_html(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, caption: str = "") -> _mount.Html:
    return _COMPONENT.page(_data(columns, rows, caption), title=caption or "Table")


def _data(columns: Sequence[str], rows: Sequence[Sequence[Cell]], caption: str) -> dict[str, Any]:
    if len(rows) > LARGEST:
        raise ValueError(f"{len(rows)} rows are more than the {LARGEST} that are shown")
    if wrong := next((row for row in rows if len(row) != len(columns)), None):
        raise ValueError(f"{len(wrong)} cells do not fit {len(columns)} columns")
    return {"headings": list(columns), "rows": [list(row) for row in rows], "caption": caption}
