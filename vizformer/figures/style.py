"""What the figures share: colours, words, and the frame around a plot."""

import html
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vizformer.word_tables import spoken, words_of

MOST_DIGITS = 5  # after the point, of a number in a cell


ENGLISH: Mapping[str, str] = words_of(__file__)  # every text of the figures

VIRIDIS = ("#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725")
"""A colour scale in order of lightness, which also holds for the colour-blind and in grey."""

ORANGE_BLUE = ("#7a3803", "#cc6d1e", "#f2b36b", "#f4f4f4", "#7fb0da", "#2f6fb5", "#0b3c7d")
"""A diverging colour scale for the colour-blind: negative is orange, 0 is neutral, positive is blue."""

QUALITATIVE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f7f7f")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

MASKED = "rgba(128, 128, 128, 0.30)"
MASKED_LINE = "rgba(128, 128, 128, 0.85)"
GRID = "rgba(128, 128, 128, 0.25)"

Scale = list[tuple[float, str]]


def texts() -> dict[str, str]:
    """Every text of the figures, in the language of whoever looks at them (`word_tables.speak`)."""
    return spoken(ENGLISH)


def weight_scale() -> Scale:
    """Viridis over 0..1, spread by the square root: in long texts most weights are small."""
    last = len(VIRIDIS) - 1
    return [((i / last) ** 2, colour) for i, colour in enumerate(VIRIDIS)]


def signed_scale() -> Scale:
    """Orange over neutral to blue; its middle belongs to 0."""
    last = len(ORANGE_BLUE) - 1
    return [(i / last, colour) for i, colour in enumerate(ORANGE_BLUE)]


def signed(end: float) -> dict[str, object]:
    """The colours of a map whose scale ends `end` below and above 0, which is nearly white."""
    return {"zmin": -end, "zmax": end, "colorscale": signed_scale()}


def reach(values: NDArray[np.floating]) -> float:
    """Largest finite |value|: the end of a scale that is centred on 0; 1 where there is nothing but 0."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size and finite.max() > 0 else 1.0


def safe(text: str) -> str:
    """A text that Plotly shows as it is; it reads the labels of axes and hovers as a kind of HTML that has no &quot;."""
    return html.escape(text, quote=False)


def printed(values: NDArray[np.floating]) -> dict[str, object]:
    """The numbers in the cells of a map: two digits after the point, or more where the largest is below 0.1, so that two of
    its digits are seen; all as powers of ten where that takes more than `MOST_DIGITS`.

    A single number that would read 0 is written as a power of ten, and only 0 as 0.
    """
    digits = max(2, 1 - int(np.floor(np.log10(reach(values)))))
    small = (values != 0) & (np.abs(values) < 0.5 * 10.0**-digits)
    if digits > MOST_DIGITS or not small.any():
        return {"texttemplate": f"%{{z:.{digits}f}}" if digits <= MOST_DIGITS else "%{z:.1e}"}
    said = np.where(small, np.char.mod("%.0e", values), np.char.mod(f"%.{digits}f", values))
    return {"text": np.where(np.isnan(values), "", said).tolist(), "texttemplate": "%{text}"}


def room(text: str, size: int) -> int:
    """The px that a text needs, at most: capitals and Chinese characters are the widest."""
    widths = (1.05 if ord(one) > 0x2E7F else 0.75 if one.isupper() or one in "mw⟨⟩" else 0.58 for one in text)
    return round(size * sum(widths))


def fill(sentence: str, **values: str) -> str:
    """Puts Plotly's own placeholders, e.g. "%{z:.4f}", into the {places} of a translated sentence."""
    for name, value in values.items():
        sentence = sentence.replace("{" + name + "}", value)
    return sentence + "<extra></extra>"


def heights(rows: int, columns: int) -> int:
    """Height in px for a map of square cells on a page about 700 px wide."""
    return int(max(240, 130 + min(540, 48 * rows, 540 * rows / max(1, columns))))
