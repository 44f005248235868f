"""Elements of an SVG, its letters and its colours."""

import html
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.style import room

FONTS = (
    "'Noto Sans', 'DejaVu Sans', 'Segoe UI', 'Helvetica Neue', Arial, "
    "'Noto Sans CJK SC', 'Source Han Sans SC', 'PingFang SC', 'Microsoft YaHei', "
    "'Noto Color Emoji', 'Apple Color Emoji', 'Segoe UI Emoji', sans-serif"
)
"""Font families in order of preference; a renderer takes each letter from the first font that has it."""

SIZE = 12  # px of letters
LETTERS = "#222222"
FAINT = "#d9d9d9"  # lines of the grid
_SHORT = 64  # characters of what is kept for the next element

_RGBA = re.compile(r"rgba?\(\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*(?:,\s*([\d.]+)\s*)?\)")
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # the direction of all that follows
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def tag(name: str, *inside: str, **attributes: object) -> str:
    """An element; what stands inside is SVG already. `None` leaves an attribute out, `_` stands for `-`."""
    said = "".join([f" {_name(key)}={_said(value)}" for key, value in attributes.items() if value is not None])
    return f"<{name}{said}>{''.join(inside)}</{name}>" if inside else f"<{name}{said}/>"


@cache
def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _said(value: object) -> str:
    """An attribute's value in quotes; a number has nothing to escape, and of short texts few are different."""
    if not isinstance(value, str):
        return f'"{number(value)}"'
    return _kept(value) if len(value) < _SHORT else _quoted(value)


def _quoted(value: str) -> str:
    return quoteattr(printable(value))


_kept = lru_cache(maxsize=1024)(_quoted)


def number(value: object) -> str:
    """Formats a length in px without needless digits."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


def plain(text: str) -> list[str]:
    """The lines of a text that Plotly would read as its kind of HTML."""
    if "<" not in text and "&" not in text:
        return [text]
    lines = re.split(r"<br\s*/?>", text)
    return [html.unescape(re.sub(r"</?(?:b|i|em|sub|sup|span)(?: [^>]*)?>", "", line)) for line in lines]


def letters(
    text: str,
    x: float,
    y: float,
    *,
    size: float = SIZE,
    anchor: str = "start",
    colour: str = LETTERS,
    angle: float = 0,
    weight: str | None = None,
) -> str:
    """A text as it is, on one line; `y` is the middle of its small letters. Any token may stand here (`visible`)."""
    return tag(
        "text",
        escape(printable(visible(text))),
        x=float(x),
        y=float(y),
        dy="0.35em",
        font_size=size,
        text_anchor=anchor,
        fill=paint(colour)[0],
        font_weight=weight,
        transform=f"rotate({number(float(angle))} {number(float(x))} {number(float(y))})" if angle else None,
        xml__space="preserve",
    ).replace("xml--space", "xml:space")


def width_of(text: str, size: float = SIZE) -> float:
    """An upper bound of the width of a text in px."""
    return float(room(visible(text), round(size)))


def wrapped(text: str, width: float, size: float = SIZE) -> list[str]:
    """A text in lines of at most `width` px; one that has no spaces is broken anywhere."""
    lines = [""]
    for piece in re.findall(r"\S{1,24}\s*|\s+", printable(text)):
        if lines[-1] and width_of(lines[-1] + piece.rstrip(), size) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines if line.strip()]


def visible(text: str) -> str:
    """A token on one line, with the signs that the pages have for what would not be seen, or would turn the line around."""
    line = re.sub("\r?\n|\r", "↵", text).replace("\t", "⇥")
    line = _TURNING.sub(lambda found: f"⟨{found[0].encode().hex(' ').upper()}⟩", line)
    return "␣" * min(len(line), 3) if line and not line.strip() else line


def printable(text: str) -> str:
    """XML has no place for control characters, which a token may well hold."""
    return _UNPRINTABLE.sub("\ufffd", text)


# --- colours ----------------------------------------------------------------------------------------------------------


def rgba(colour: str) -> tuple[float, float, float, float]:
    """Red, green and blue in 0..255 and the opacity of "#rrggbb", "rgb(...)" or "rgba(...)"; else a ValueError."""
    if re.fullmatch("#[0-9a-fA-F]{6}", colour):
        return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16), 1.0
    if found := _RGBA.fullmatch(colour):
        red, green, blue = (float(value) for value in found.groups()[:3])
        return red, green, blue, 1.0 if found[4] is None else float(found[4])
    raise ValueError(f"no colour that a file knows: {colour!r}")


@lru_cache(maxsize=1024)
def paint(colour: str) -> tuple[str, float | None]:
    """A colour and its opacity (None where it covers), as an SVG has them apart."""
    if colour in ("gray", "grey", "white", "black", "none"):
        return colour, None
    red, green, blue, opacity = rgba(colour)
    return f"#{round(red):02x}{round(green):02x}{round(blue):02x}", None if opacity == 1 else opacity


def shades(values: NDArray[np.floating], scale: Sequence[tuple[float, str]]) -> NDArray[np.float64]:
    """The colours of values in 0..1 on a scale of (place, colour): red, green, blue, opacity in the last axis."""
    places = [place for place, _ in scale]
    colours = np.array([rgba(colour) for _, colour in scale])
    return np.stack([np.interp(values, places, colours[:, channel]) for channel in range(4)], axis=-1)
