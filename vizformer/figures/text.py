"""The text itself, each token on the colour of its weight; for paper."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.axes import name_axes
from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import fill, room, texts, weight_scale
from vizformer.figures.svg.ink import shades

LINE, SIZE = 26, 14  # px of a line and of its letters
WIDTH = 560  # px of a line before the next begins


def coloured_text(
    weights: NDArray[np.floating], tokens: Sequence[str], *, marked: int | None = None, title: str = ""
) -> Figure:
    """Draws a text whose tokens have a weight each.

    `weights`: in 0..1, or NaN where a token is masked [tokens].
    """
    words = texts()
    if len(weights) != len(tokens):
        raise ValueError(f"{len(weights)} weights do not fit {len(tokens)} tokens")
    places = _places(tokens)
    scale = weight_scale()
    figure = Figure().add_heatmap(
        z=np.array([[np.nan]], np.float32),
        zmin=0.0,
        zmax=1.0,
        colorscale=scale,
        colorbar={"title": {"text": words["weight"]}, "thickness": 14},
        hoverinfo="skip",
    )
    for index, (token, (x, line, width)) in enumerate(zip(tokens, places, strict=True)):
        weight = float(weights[index])
        red, green, blue = shades(np.array(weight), scale)[:3] if weight == weight else (224, 224, 224)
        light = 0.299 * red + 0.587 * green + 0.114 * blue > 140
        figure.add_rectangle(
            x,
            x + width,
            line * LINE + 2,
            (line + 1) * LINE - 2,
            fillcolor=f"rgb({red:.0f}, {green:.0f}, {blue:.0f})",
            line={"width": 2 if index == marked else 0, "color": "#d55e00"},
        )
        figure.add_text(
            x + width / 2,
            (line + 0.5) * LINE,
            token.strip() or token,
            font={"size": SIZE, "color": "#000000" if light else "#ffffff"},
        )
    figure.told_by = _in_a_row(np.asarray(weights, np.float32), tokens, words)
    lines = max((line for _, line, _ in places), default=0) + 1
    figure.update_layout(
        xaxis={"visible": False, "range": [0, WIDTH + 20]}, yaxis={"visible": False, "range": [max(lines, 4) * LINE, 0]}
    )
    return frame(figure, title, height=max(lines, 4) * LINE + 60)


def _in_a_row(weights: NDArray[np.float32], tokens: Sequence[str], words: Mapping[str, str]) -> Figure:
    """Draws the weights of the tokens as a heat map of one column."""
    names = [token.strip() or token for token in tokens]
    hover = fill(words["weight_of"], token="%{y}", position="%{pointNumber[0]}", value="%{z:.4f}")
    row = Figure().add_heatmap(
        z=weights[:, None],
        colorscale=weight_scale(),
        colorbar={"title": {"text": words["weight"]}},
        hovertemplate=hover,
    )
    if (masked := np.isnan(weights)).any():
        row.add_heatmap(
            z=np.where(masked, 0, np.nan).astype(np.float32)[:, None],
            colorscale=weight_scale(),
            meta="masked",
            hoverinfo="skip",
        )
    name_axes(row, names, [""], row_title=words["position"])
    return row


def _places(tokens: Sequence[str]) -> list[tuple[float, int, float]]:
    """(px from the left, line, px wide) of each token."""
    found: list[tuple[float, int, float]] = []
    x, line = 0.0, 0
    for token in tokens:
        width = room(token.strip() or "↵", SIZE) + 6.0
        gap = 2.0 + (5.0 if token[:1].isspace() else 0.0)
        if "\n" in token[:2] or x + gap + width > WIDTH:
            x, line, gap = 0.0, line + (1 if found else 0), 0.0
        found.append((x + gap, line, width))
        x += gap + width
    return found
