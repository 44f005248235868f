"""A plain table of texts and numbers, one row set off, and words written as rows of symbols.

Plain HTML, no script: it can stand in a page, a notebook or a file.
"""

from collections.abc import Sequence
from html import escape

Cell = str | int | float
_STYLE = """<style>
.vf-listing { overflow-x: auto; margin: 0 0 0.5rem; }
.vf-listing table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.875rem; margin: 0; }
.vf-listing caption { caption-side: top; text-align: start; font-weight: 600; padding: 0.125rem 0; color: inherit; }
.vf-listing th, .vf-listing td { padding: 0.25rem 0.5rem; border-bottom: 1px solid rgba(128, 128, 128, 0.3); text-align: start; white-space: nowrap; }
.vf-listing th { font-weight: 500; opacity: 0.8; }
.vf-listing .vf-n { text-align: end; }
.vf-listing .vf-chosen td { background: rgba(230, 159, 0, 0.28); font-weight: 700; }
.vf-listing .vf-bar { min-width: 7rem; width: 30%; }
.vf-listing .vf-bar div { height: 0.75rem; min-width: 2px; border-radius: 2px; background: rgba(0, 114, 178, 0.75); }
.vf-symbols { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; margin: 0 0 0.75rem; min-height: 2.5rem; align-items: center; }
.vf-symbols b { font-weight: 400; border: 1px solid rgba(128, 128, 128, 0.6); border-radius: 4px; padding: 0.125rem 0.25rem; margin-right: 2px; display: inline-block; white-space: pre; background: rgba(0, 114, 178, 0.12); }
.vf-symbols b.vf-new { font-weight: 700; border: 2px solid currentColor; background: rgba(230, 159, 0, 0.28); }
.vf-symbols i { font-style: normal; opacity: 0.75; font-variant-numeric: tabular-nums; margin-left: 0.25rem; }
</style>"""  # noqa: E501 (a rule stays on its line)


def style() -> str:
    """The style sheet that tables and words need once per page."""
    return _STYLE


def to_html(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    caption: str = "",
    chosen: int | None = None,
    bar: int | None = None,
) -> str:
    """The table.

    `rows`: texts stand on the left of their cells, numbers on the right; `chosen` is set off.
    `bar`: the column of numbers that is drawn as bars, longest for the largest; its numbers are not printed.
    """
    if bad := [row for row in rows if len(row) != len(head)]:
        raise ValueError(f"{len(bad[0])} cells for {len(head)} columns")
    top = max((float(row[bar]) for row in rows), default=0.0) if bar is not None else 0.0
    # A column of numbers has its name above them.
    numeric = [bool(rows) and all(not isinstance(row[c], str) for row in rows) for c in range(len(head))]
    names = "".join(
        f'<th{_kind(number, c == bar)} scope="col">{escape(name)}</th>'
        for c, (name, number) in enumerate(zip(head, numeric, strict=True))
    )
    body = "".join(
        f"<tr{' class=vf-chosen' if index == chosen else ''}>"
        + "".join(_cell(cell, c == bar, top) for c, cell in enumerate(row))
        + "</tr>"
        for index, row in enumerate(rows)
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="vf-listing"><table>{title}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def words_html(words: Sequence[tuple[Sequence[str], int]], new: str = "") -> str:
    """Words as rows of symbols, each with how often it occurs (where that is more than once); `new` symbols set off."""
    parts = []
    for symbols, times in words:
        chips = "".join(f"<b{' class=vf-new' if symbol == new else ''}>{escape(symbol)}</b>" for symbol in symbols)
        parts.append(f"<span>{chips}{f'<i>× {times}</i>' if times > 1 else ''}</span>")
    return f'<div class="vf-symbols">{"".join(parts)}</div>'


def _kind(number: bool, bar: bool) -> str:
    return ' class="vf-bar"' if bar else ' class="vf-n"' if number else ""


def _cell(cell: Cell, bar: bool, top: float) -> str:
    if bar:
        share = 100 * float(cell) / top if top else 0.0
        return f'<td class="vf-bar"><div style="width:{share:.2f}%"></div></td>'
    if isinstance(cell, str):
        return f"<td>{escape(cell)}</td>"
    text = f"{cell:,}" if isinstance(cell, int) else f"{cell:,.1f}"
    return f'<td class="vf-n">{text}</td>'
