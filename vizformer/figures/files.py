"""Figures as files: to look at, to print, and to calculate on with.

    Path("head.pdf").write_bytes(as_file(figure, "pdf", caption="zh-en · encoder.0.self, head 3"))

"svg" and what is made of it ("png", "pdf": with the package typst, `pip install vizformer[paper]`) look alike; "csv" and
"npz" hold the numbers; "html" is the figure as Plotly draws it, in one file that needs no network.
"""

import csv
import html
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure
from vizformer.figures.style import texts
from vizformer.figures.svg import svg
from vizformer.figures.svg.axes import plain
from vizformer.figures.tables import MASKED_CELLS, plain_place

Kind = Literal["svg", "png", "pdf", "csv", "npz", "html"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MEDIA: Mapping[Kind, str] = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "npz": "application/octet-stream",
    "html": "text/html",
}
PIXELS_PER_INCH = 200
MOST_NAMED = 8  # characters without a glyph that a caption names
_MOST_ASKED = 300  # characters for which fonts are looked through, some ms each, once
MOST_ROWS = 1_000_000  # cells up to which a map is written as a table of texts; "npz" holds any
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")  # also in full width, which is run where Chinese is written

_PAGE = b'#set page(width: auto, height: auto, margin: 0pt)\n#image("figure.svg", alt: "figure")'


def prints() -> bool:
    """Whether PNG and PDF can be made here."""
    return find_spec("typst") is not None


def as_file(
    figure: Figure,
    kind: Kind,
    *,
    caption: str = "",
    numbers: Mapping[str, NDArray[Any]] | None = None,
    about: Mapping[str, str] | None = None,
) -> bytes:
    """A figure as the content of a file.

    Args:
        caption: what stands below the picture and beside the numbers; plain text.
        numbers: what an "npz" holds; default the numbers of the traces and what their places are called (tokens).
        about: what an "npz" says besides, texts by name: {"model": "zh-en", "place": "decoder.2.cross, head 3"}.

    Raises:
        ValueError: another kind, a figure that `svg` cannot draw, or more than `MOST_ROWS` rows of a "csv".
        ImportError: "png" and "pdf" without the package typst.
    """
    if kind == "svg":
        return svg(figure, caption=caption).encode()
    if kind in ("png", "pdf"):
        drawn = svg(figure, caption=caption)
        if lacking := without_glyph(drawn):
            named = ", ".join(f"U+{ord(one):04X} {unicodedata.name(one, '')}".rstrip() for one in lacking[:MOST_NAMED])
            said = texts()["lacking"].replace("{characters}", named + (", …" if len(lacking) > MOST_NAMED else ""))
            drawn = svg(figure, caption=" · ".join(one for one in (caption, said) if one))
        return printed(drawn, kind)
    if kind == "csv":
        return table(figure).encode("utf-8-sig")  # by its mark Excel knows that this is UTF-8
    if kind == "npz":
        return archive(arrays(figure) if numbers is None else numbers, caption, about)
    if kind != "html":
        raise ValueError(f"{kind!r} is no kind of file: choose one of {', '.join(KINDS)}")
    page: str = figure.plotly.to_html(include_plotlyjs=True, full_html=True)
    return page.replace("</body>", f"<p>{html.escape(caption)}</p></body>").encode()


def printed(drawn: str, kind: Literal["png", "pdf"]) -> bytes:
    """An SVG as a PNG, or as a PDF with the shapes and letters of the SVG and their fonts inside."""
    try:
        import typst
    except ImportError:
        raise ImportError("PNG and PDF are made by the package typst: pip install vizformer[paper]") from None
    files: Any = {"main.typ": _PAGE, "figure.svg": drawn.encode()}  # (of which its types do not know)
    made: bytes = typst.compile(files, format=kind, ppi=PIXELS_PER_INCH)
    return made


def without_glyph(drawn: str) -> list[str]:
    """The characters in the letters of an SVG that no font has here: a PDF and a PNG show a box for each."""
    said = html.unescape("".join(re.findall(r"<text\b[^>]*>([^<]*)</text>", drawn)))
    asked = sorted({one for one in said if ord(one) > 0x7F and one.isprintable()})
    return [one for one in asked[:_MOST_ASKED] if not _has_glyph(one)]


@cache
def _has_glyph(character: str) -> bool:
    """Whether a font has it: typst draws it otherwise than U+0378, which is no character of Unicode."""
    import typst

    pages = "#pagebreak()\n".join(f'#text("\\u{{{ord(one):x}}}")\n' for one in ("\u0378", character))
    source: Any = {"main.typ": f"#set page(width: 40pt, height: 20pt, margin: 0pt)\n{pages}".encode()}
    drawn: Any = typst.compile(source, format="svg")
    none, found = (set(re.findall(rb'href="(#\w+)"', page)) for page in drawn)
    return not none or none != found


# --- numbers ----------------------------------------------------------------------------------------------------------


def archive(numbers: Mapping[str, NDArray[Any]], caption: str = "", about: Mapping[str, str] | None = None) -> bytes:
    """Arrays by name, as `numpy.load` opens them; texts are texts, so that it needs no pickles."""
    file = io.BytesIO()
    said = {name: np.array(text) for name, text in {**(about or {}), "caption": caption}.items() if text}
    np.savez_compressed(file, **{name: np.asarray(values) for name, values in numbers.items()}, **said)  # type: ignore[arg-type]
    return file.getvalue()


def arrays(figure: Figure) -> dict[str, NDArray[Any]]:
    """The numbers of a figure (or of what it is `told_by`), by trace: `<number>_<name>_x`, `_y`, of maps `_z`, and `_text`
    where its places have texts.

    What the places of an axis are called, such as tokens, is `_x_names` and `_y_names`.  A map of one row without a name
    of its own has the name of its row.
    """
    found = {}
    traces, layout = (figure.told_by or figure).parts
    for index, trace in enumerate(traces):
        if trace.get("hoverinfo") == "skip":
            continue
        named = _names(layout, trace)
        row = named[1].get(plain_place(trace["y"][0]), "") if "z" in trace and len(trace.get("y", ())) == 1 else ""
        key = re.sub(r"\W+", "_", f"{index}_{_series(trace) or row}").strip("_")
        for part in ("x", "y", "z", "text"):
            if (values := trace.get(part)) is not None:
                plain_ = np.array([np.nan if one is None else one for one in values]) if part != "z" else values
                found[f"{key}_{part}"] = np.asarray(plain_)
        for axis, names in zip("xy", named, strict=True):
            if names:
                found[f"{key}_{axis}_names"] = np.array([*names.values()])
    return found


def table(figure: Figure) -> str:
    """The numbers of a figure (or of what it is `told_by`) as a table: a row for each point, bar or cell, texts as they are.

    The columns of places are called by the titles of the axes, or x and y.  A masked cell has its reason as its series, and
    no value.

    Raises:
        ValueError: there would be more than `MOST_ROWS`.
    """
    if not fits_csv(figure):
        raise ValueError(f"more than {MOST_ROWS:,} rows")
    traces, layout = (figure.told_by or figure).parts
    x, y = (_title(layout, letter) for letter in "xy")
    if x == y:
        x, y = "x", "y"
    found: list[list[Any]] = [["series", x, f"{x}_name", y, f"{y}_name", "value"]]
    for trace in traces:
        if trace.get("hoverinfo") != "skip":
            found.extend([_series(trace), *row] for row in _rows(trace, _names(layout, trace)))
    return written(found)


def fits_csv(figure: Figure) -> bool:
    """Whether the table of a figure has at most `MOST_ROWS` rows."""
    return sum(_count(trace) for trace in (figure.told_by or figure).parts[0]) <= MOST_ROWS


def written(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV, in which no text is a formula."""
    file = io.StringIO()
    csv.writer(file).writerows([no_formula(cell) for cell in row] for row in rows)
    return file.getvalue()


def no_formula(cell: object, before: str = "'") -> object:
    """A cell of a CSV, with a mark before a text that a spreadsheet would run as a formula.

    Source: https://owasp.org/www-community/attacks/CSV_Injection.
    """
    return before + cell if isinstance(cell, str) and _FORMULA.match(cell) else cell


def _count(trace: Mapping[str, Any]) -> int:
    """Rows of a trace at most: the cells of a map that hold a number, or its points."""
    return int((~np.isnan(trace["z"])).sum()) if "z" in trace else np.asarray(trace.get("y", ())).size


def _series(trace: Mapping[str, Any]) -> str:
    return plain(str(trace.get("name", "")))[0]


def _names(layout: Mapping[str, Any], trace: Mapping[str, Any]) -> tuple[dict[float, str], dict[float, str]]:
    """The tick labels of the two axes of a trace, by position."""
    found = []
    for letter in "xy":
        axis = layout.get(str(trace.get(f"{letter}axis", letter)).replace(letter, f"{letter}axis"), {})
        texts, places = axis.get("ticktext"), axis.get("tickvals")
        named = zip(places, texts, strict=True) if texts is not None and places is not None else ()
        found.append({float(place): plain(text)[0] for place, text in named})
    return found[0], found[1]


def _title(layout: Mapping[str, Any], letter: str) -> str:
    """The title of all axes of one direction; the letter where they have no title, or several."""
    axes = [axis for name, axis in layout.items() if name.startswith(f"{letter}axis")]
    titles = {" ".join(plain(axis.get("title", {}).get("text", ""))) for axis in axes} - {""}
    return titles.pop() if len(titles) == 1 else letter


def _rows(trace: Mapping[str, Any], names: tuple[dict[float, str], dict[float, str]]) -> Iterator[list[Any]]:
    across, down = names
    if trace["type"] != "heatmap":
        for x, y in zip(trace.get("x", ()), trace.get("y", ()), strict=True):
            if x is not None and y is not None:
                yield [x, across.get(plain_place(x), ""), y, down.get(plain_place(y), ""), ""]
        return
    values = np.asarray(trace["z"])
    columns, rows = trace.get("x"), trace.get("y")
    columns = np.arange(values.shape[1]) if columns is None else columns
    rows = np.arange(values.shape[0]) if rows is None else rows
    for row, line in zip(rows, values.tolist(), strict=True):
        for column, value in zip(columns, line, strict=True):
            if value == value:  # masked cells have no number
                shown = "" if trace.get("meta") == MASKED_CELLS else value
                yield [column, across.get(plain_place(column), ""), row, down.get(plain_place(row), ""), shown]
