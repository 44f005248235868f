"""A small matrix as an HTML table: signs and sizes tinted, long sides elided, labels escaped.

Plain HTML, no script: it can stand in a page, a notebook or a file.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SHOWN = 8  # longest side that is shown whole; longer ones show the first six, dots, and the last

POSITIVE, NEGATIVE = "0,114,178", "213,94,0"  # blue and vermillion: told apart by colour-blind eyes (Okabe & Ito)


def style() -> str:
    """The style sheet that the tables need once per page."""
    return f"<style>{(Path(__file__).parent / 'matrix.css').read_text(encoding='utf-8')}</style>"


def to_html(
    value: NDArray[np.floating | np.integer],
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    caption: str = "",
    blocked: NDArray[np.bool_] | None = None,
    blocked_hint: str = "",
    digits: int = 4,
    shown: int = SHOWN,
) -> str:
    """The table of a vector [n] (one row) or a matrix [m, n].

    `value`: the numbers; infinities are shown as symbols, integers (by dtype) without a point.
    `blocked`: columns that are struck out, with `blocked_hint` on hover.
    `shown`: longest side that is shown whole.
    """
    if np.issubdtype(np.asarray(value).dtype, np.integer):
        digits = 0
    value = np.asarray(value, dtype=np.float64)
    if value.ndim not in (1, 2):
        raise ValueError(f"a table needs 1 or 2 dimensions, not {value.ndim}")
    table = value[None] if value.ndim == 1 else value
    n_rows, n_columns = table.shape
    for name, labels, count in (("rows", rows, n_rows), ("columns", columns, n_columns)):
        if labels is not None and len(labels) != count:
            raise ValueError(f"{len(labels)} labels for {count} {name}")
    finite = np.abs(table[np.isfinite(table)])
    top = float(finite.max()) if finite.size else 0.0
    shown_columns, shown_rows = _elide(n_columns, shown), _elide(n_rows, shown)
    head = "".join("<th>…</th>" if c is None else _label(columns, c) for c in shown_columns)
    body = []
    for r in shown_rows:
        if r is None:
            body.append("<tr><th>⋮</th>" + "<td>⋮</td>" * len(shown_columns) + "</tr>")
            continue
        first = "" if value.ndim == 1 else _label(rows, r)
        cells = "".join(
            "<td>…</td>"
            if c is None
            else _cell(table[r, c], top, digits, blocked is not None and bool(blocked[c]), blocked_hint)
            for c in shown_columns
        )
        body.append(f"<tr>{first}{cells}</tr>")
    shape = " × ".join(map(str, value.shape))
    corner = "" if value.ndim == 1 else "<th></th>"
    return (
        f'<div class="vf-matrix"><table><caption>{escape(caption)} <span>[{shape}]</span></caption>'
        f"<thead><tr>{corner}{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def number(value: float, digits: int = 4) -> str:
    """A number for a table: infinities as symbols, tiny values in powers of ten, a real minus sign."""
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    if np.isnan(value):
        return "NaN"
    text = f"{value:.1e}" if value != 0 and abs(value) < 0.5 * 10**-digits else f"{value:.{digits}f}"
    return text.replace("-", "−")


def _elide(count: int, shown: int) -> list[int | None]:
    return list(range(count)) if count <= shown else [*range(shown - 2), None, count - 1]


def _label(labels: Sequence[str] | None, index: int) -> str:
    return f"<th>{index}</th>" if labels is None else f"<th><i>{index}</i>{escape(labels[index])}</th>"


def _cell(value: float, top: float, digits: int, blocked: bool, hint: str) -> str:
    if blocked:
        return f'<td class="vf-blocked" title="{escape(hint)}">{number(value, digits)}</td>'
    strength = 0.0 if top == 0 or not np.isfinite(value) else 0.45 * abs(value) / top
    colour = POSITIVE if value >= 0 else NEGATIVE
    return f'<td style="background-color:rgba({colour},{strength:.2f})">{number(value, digits)}</td>'
