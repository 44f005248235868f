"""A table of words and numbers as HTML, one column of which may carry bars.  No script; every text is escaped.

to_html(["key", "weight"], [Row("cat", 0.9), Row("sat", 0.1)], bar=1)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

from vizformer.components.matrix import number


@dataclass(frozen=True)
class Number:
    """A number with the text that stands for it: "1,024", "3.1 KiB"; it is set like a number, and can have a bar."""

    value: float
    text: str


class Filled(str):
    """A text whose cell is filled."""


class Row:
    """A row: texts as they are, numbers with four digits (or written by the caller as `Number`).

    `kind`: "marked" stands out, "faint" steps back, "sum" is set apart from the rows above it.
    """

    def __init__(self, *cells: str | float | Number, kind: Literal["", "marked", "faint", "sum"] = "") -> None:
        self.cells, self.kind = cells, kind


def numbers(spec: str, *values: float) -> tuple[Number, ...]:
    """Cells of numbers that are written alike, by a format: ",", ".1%", "+.4f"."""
    return tuple(Number(float(value), f"{value:{spec}}".replace("-", "−")) for value in values)


def style() -> str:
    """The style sheet that the tables need once per page."""
    return f"<style>{(Path(__file__).parent / 'table.css').read_text(encoding='utf-8')}</style>"


def to_html(columns: Sequence[str], rows: Sequence[Row], *, bar: int | None = None, caption: str = "") -> str:
    """The table; the numbers of the column `bar`, shares of 1, are drawn as bars behind them."""
    if wrong := [row for row in rows if len(row.cells) != len(columns)]:
        raise ValueError(f"{len(wrong[0].cells)} cells do not fit {len(columns)} columns")
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f'<tr class="vf-{row.kind or "plain"}">'
        + "".join(_cell(cell, bar=index == bar) for index, cell in enumerate(row.cells))
        + "</tr>"
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="vf-table"><table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: str | float | Number, *, bar: bool) -> str:
    if isinstance(cell, str):
        filled = " vf-filled" if isinstance(cell, Filled) else ""
        return f'<td class="vf-text{filled}">{escape(cell)}</td>'
    value, text = (cell.value, escape(cell.text)) if isinstance(cell, Number) else (cell, number(cell))
    if not bar:
        return f"<td>{text}</td>"
    width = min(1.0, max(0.0, value)) if value == value else 0.0  # NaN has no bar
    return f'<td class="vf-bar" style="background-size:{100 * width:.1f}% 100%">{text}</td>'
