"""A text cut into tokens in several ways, one row above the other, every row in step with the bytes of the text.

Plain HTML, no script: it can stand in a page, a notebook or a file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

COLOURS = 5  # that follow each other along a row, in cuts.css


@dataclass(frozen=True)
class Cut:
    text: str
    # start, end: the bytes of the text that it covers
    start: int
    end: int
    hint: str = ""
    unknown: bool = False  # hatched: its text is lost
    continues: bool = False  # dotted on its left: it continues a word
    marked: bool = False  # framed: it is what the words beside the rows are about


@dataclass(frozen=True)
class Row:
    """A way to cut the text: its name, what is to be said about it, and its tokens in order."""

    name: str
    note: str
    cuts: Sequence[Cut]


def style() -> str:
    """The style sheet that the rows need once per page."""
    return f"<style>{(Path(__file__).parent / 'cuts.css').read_text(encoding='utf-8')}</style>"


def to_html(rows: Sequence[Row], *, width: int, label: str = "") -> str:
    """The rows over the first `width` bytes of the text; tokens that begin behind them are left out."""
    return (
        f'<div class="vf-cuts" role="group" aria-label="{escape(label)}" tabindex="0">'
        f"{''.join(_row(row, width) for row in rows)}</div>"
    )


def _row(row: Row, width: int) -> str:
    cells = "".join(
        _cell(cut, index, min(cut.end, width)) for index, cut in enumerate(row.cuts) if cut.start < min(cut.end, width)
    )
    bad = [cut for cut in row.cuts if cut.end < cut.start]
    if bad:
        raise ValueError(f"token {bad[0].text!r} ends at byte {bad[0].end}, before it begins at {bad[0].start}")
    # As wide as the page allows, as long as a byte stays legible and a short text does not look blown up.
    columns = f"grid-template-columns:repeat({width},clamp(0.84rem,{100 / max(1, width):.4f}cqw,1.5rem))"
    return (
        f'<div class="vf-cuts-name"><b>{escape(row.name)}</b> {escape(row.note)}</div>'
        f'<div class="vf-cuts-row" style="{columns}">{cells}</div>'
    )


def _cell(cut: Cut, index: int, end: int) -> str:
    kinds = [f"vf-cut vf-cut-{index % COLOURS}"]
    kinds += [
        name for name, on in (("unknown", cut.unknown), ("continues", cut.continues), ("marked", cut.marked)) if on
    ]
    narrow = " vf-cut-byte" if cut.end - cut.start == 1 and len(cut.text) > 1 else ""
    text = "".join(f"<span>{escape(digit)}</span>" for digit in cut.text) if narrow else escape(cut.text)
    return (
        f'<div class="{" vf-cut-".join(kinds)}{narrow}" style="grid-column:{cut.start + 1}/{end + 1}"'
        f' title="{escape(cut.hint)}">{text}</div>'
    )
