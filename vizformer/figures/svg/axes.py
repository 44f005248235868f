"""Elements of an SVG, its letters and colours, and the axes of a plot."""

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any
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


TICKS = 6  # about so many marks where the figure names none
_PAD = 0.05  # of the range of an axis that fits its numbers, on each side
_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))


@dataclass
class Axis:
    """One axis, across or upright.

    `low`, `high`: its ends in its own units (of a logarithmic one the exponents of ten); `low` is left or below.
    `start`, `end`: those ends in px.
    """

    name: str
    settings: dict[str, Any]
    categories: list[str] = field(default_factory=list)
    low: float = 0.0
    high: float = 1.0
    start: float = 0.0
    end: float = 1.0

    @property
    def across(self) -> bool:
        return self.name.startswith("x")

    @property
    def log(self) -> bool:
        return bool(self.settings.get("type") == "log")

    @property
    def domain(self) -> tuple[float, float]:
        low, high = self.settings.get("domain", (0.0, 1.0))
        return float(low), float(high)

    @property
    def after(self) -> bool:
        """Whether its marks stand on the far side: above, or on the right."""
        return self.settings.get("side") in ("top", "right")

    @property
    def shown(self) -> bool:
        return self.settings.get("visible") is not False

    @property
    def font(self) -> float:
        return float(self.settings.get("tickfont", {}).get("size", SIZE - 1))

    def numbers(self, values: Iterable[Any]) -> np.ndarray:
        """Values of the data in the axis' own units; NaN where there is nothing, or what a logarithm has no place for."""
        are_numbers = isinstance(values, np.ndarray) and values.dtype.kind in "fiu"
        values = values if are_numbers else list(values)
        if not are_numbers and any(isinstance(value, str) for value in values):
            for value in values:
                if str(value) not in self.categories:
                    self.categories.append(str(value))
            return np.array([self.categories.index(str(value)) for value in values], dtype=float)
        found = np.array(values, dtype=float)  # of None NaN
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.where(found > 0, np.log10(np.where(found > 0, found, 1)), np.nan)
        return found

    def px(self, numbers: Any) -> Any:
        """The px of numbers in the axis' own units."""
        return self.start + (np.asarray(numbers, dtype=float) - self.low) / (self.high - self.low) * (
            self.end - self.start
        )

    def fit(self, seen: Sequence[float], *, tight: bool) -> None:
        """Sets the ends: those that the figure asks for, else those of the numbers that were `seen`.

        `tight`: whether the ends are those of the numbers themselves, as for maps and bars.
        """
        wanted = self.settings.get("range")
        if wanted is not None:
            self.low, self.high = float(wanted[0]), float(wanted[1])
            return
        found = [value for value in seen if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(found), max(found)
        if self.settings.get("rangemode") == "tozero" and not self.log:
            low, high = min(low, 0.0), max(high, 0.0)
        pad = (high - low) * (0.0 if tight else _PAD) or (0.0 if high > low else 0.5)
        self.low = low if low == 0 and high > 0 else low - pad
        self.high = high if high == 0 and low < 0 else high + pad
        if self.settings.get("autorange") == "reversed":
            self.low, self.high = self.high, self.low

    def ticks(self) -> list[tuple[float, str]]:
        """(number in the axis' own units, its text) of every mark."""
        if self.settings.get("showticklabels") is False:
            return []
        low, high = sorted((self.low, self.high))
        slack = (high - low) * 1e-6
        if (places := self.settings.get("tickvals")) is not None:
            numbers = self.numbers(places)
            texts = self.settings.get("ticktext") or [self._said(float(value)) for value in places]
            named = [(float(at), str(text)) for at, text in zip(numbers, texts, strict=True)]
        elif self.categories:
            named = [(float(at), text) for at, text in enumerate(self.categories)]
        elif self.log:
            named = [(float(at), self._said(10.0**at)) for at in range(math.ceil(low), math.floor(high) + 1)]
            if len(named) < 2:
                named = [(at, self._said(float(f"{10.0**at:.3g}"))) for at in np.linspace(low, high, 4).tolist()]
            named = named[:: max(1, len(named) // TICKS)]
        else:
            step = float(self.settings.get("dtick") or nice_step((high - low) or 1.0, TICKS))
            first = math.ceil(low / step - 1e-9)
            count = int((high - first * step) / step + 1e-9) + 1
            named = [((first + i) * step, self._said((first + i) * step)) for i in range(min(count, 200))]
        return [(at, text) for at, text in named if low - slack <= at <= high + slack]

    def _said(self, value: float) -> str:
        how, suffix = self.settings.get("tickformat"), self.settings.get("ticksuffix", "")
        if how == ".0%":
            return f"{value:.0%}"
        if self.settings.get("exponentformat") == "power" and value and math.log10(abs(value)) % 1 == 0:
            return f"10{str(round(math.log10(value))).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
        size, unit = next(((s, u) for s, u in _SI if abs(value) >= max(s, 1e3)), (1, ""))
        return f"{value / size:.6g}{unit}{suffix}".replace("-", "−")

    # --- what is drawn ------------------------------------------------------------------------------------------------

    def slant(self) -> int:
        """Degrees by which the texts under an axis are turned: as asked for, else where they would touch each other."""
        if not self.across:
            return 0
        if (asked := self.settings.get("tickangle")) is not None:
            return int(asked)
        ticks = self.ticks()
        if len(ticks) < 2:
            return 0
        gap = float(np.min(np.abs(np.diff(np.sort(self.px([at for at, _ in ticks]))))))
        widest = max(width_of(plain(text)[0], self.font) for _, text in ticks)
        return 0 if widest + 4 <= gap else -60

    def depth(self) -> float:
        """The px that its texts and its title take beside the plot."""
        if not self.shown:
            return 0.0
        widest = max((width_of(line, self.font) for _, text in self.ticks() for line in plain(text)), default=-6.0)
        lines = max((len(plain(text)) for _, text in self.ticks()), default=0)
        slant = math.radians(abs(self.slant()))
        texts = widest if not self.across else widest * math.sin(slant) + lines * 1.2 * self.font * math.cos(slant)
        return texts + 8.0 + (SIZE + 6.0 if self.title else 0.0)

    @property
    def title(self) -> str:
        return plain(self.settings.get("title", {}).get("text", ""))[0]

    def grid(self, other: "Axis") -> str:
        """The lines through the plot at its marks, from one end of the `other` axis to the other."""
        if not self.shown or self.settings.get("overlaying"):
            return ""
        drawn = []
        places = [at for at, _ in self.ticks()] if self.settings.get("showgrid") is not False else []
        zero = (
            [0.0] if self.settings.get("zeroline") and min(self.low, self.high) < 0 < max(self.low, self.high) else []
        )
        for at, colour in [*((at, FAINT) for at in places), *((at, "#888888") for at in zero)]:
            place, a, b = float(self.px(at)), other.start, other.end
            ends = (place, a, place, b) if self.across else (a, place, b, place)
            drawn.append(line(*ends, colour=colour, width=1))
        return "".join(drawn)

    def marks(self, other: "Axis") -> str:
        if not self.shown:
            return ""
        edge, sign = _edge(self, other)
        colour = str(self.settings.get("tickfont", {}).get("color", LETTERS))
        slant, drawn = self.slant(), []
        for at, text in self.ticks():
            place = float(self.px(at))
            for row, said in enumerate(plain(text)):
                if not self.across:
                    anchor = "end" if sign < 0 else "start"
                    drawn.append(letters(said, edge + 5 * sign, place, size=self.font, anchor=anchor, colour=colour))
                    continue
                y = edge + sign * (5 + (0 if slant else self.font * (0.5 + 1.2 * row)))
                anchor = "middle" if not slant else "start" if sign < 0 else "end"
                drawn.append(letters(said, place, y, size=self.font, anchor=anchor, colour=colour, angle=slant))
        if self.title:
            middle, far = (self.start + self.end) / 2, edge + sign * (self.depth() - SIZE / 2)
            where = (middle, far) if self.across else (far, middle)
            drawn.append(letters(self.title, *where, anchor="middle", angle=0 if self.across else -90))
        return "".join(drawn)


def _edge(axis: Axis, other: Axis) -> tuple[float, int]:
    """The pixel at which the ticks of an axis begin, and their direction (1 or -1)."""
    low, high = sorted((other.start, other.end))
    if axis.across:
        return (low, -1) if axis.after else (high, 1)
    return (high, 1) if axis.after else (low, -1)


def line(x0: float, y0: float, x1: float, y1: float, *, colour: str, width: float, dash: str | None = None) -> str:
    stroke, opacity = paint(colour)
    return tag(
        "line",
        x1=float(x0),
        y1=float(y0),
        x2=float(x1),
        y2=float(y1),
        stroke=stroke,
        stroke_opacity=opacity,
        stroke_width=width,
        stroke_dasharray=dashes(dash, width),
    )


def dashes(dash: str | None, width: float) -> str | None:
    """Plotly's names for dashes, as an SVG writes them."""
    lengths = {"dot": (1, 2), "dash": (4, 3), "dashdot": (4, 2, 1, 2), "longdash": (8, 3), "longdashdot": (8, 2, 1, 2)}
    found = lengths.get(dash or "solid")
    return None if found is None else " ".join(f"{one * max(width, 1):g}" for one in found)


def nice_step(length: float, about: int) -> float:
    """A step of 1, 2 or 5 times a power of ten, of which about so many go into a length."""
    rough = length / max(about, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next(factor for factor in (1, 2, 5, 10) if rough <= factor * power * 1.0001)
