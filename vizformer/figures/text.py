"""The text itself, each token on the colour of its weight; for paper."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame, name_axes
from vizformer.figures.style import QUALITATIVE, fill, room, texts, weight_scale
from vizformer.figures.svg.axes import shades

LINE, SIZE = 26, 14  # px of a line and of its letters
WIDTH = 560  # px of a line before the next begins

LEVELS = 10  # strengths of lines that are told apart: lines of one strength are one trace

ROW = 22  # px of a token
_PLACES = {"query": "%{pointNumber[0]}", "query_token": "%{y}", "key": "%{pointNumber[1]}", "key_token": "%{x}"}


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


def attention_lines(
    weights: NDArray[np.floating],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    heads: Sequence[int],
    threshold: float = 0.0,
    title: str = "",
) -> Figure:
    """Draws the weights [heads, queries, keys] from `threshold` up of some heads, each head in its colour."""
    words = texts()
    weights = np.asarray(weights, dtype=np.float32)
    if weights.shape != (len(heads), len(query_tokens), len(key_tokens)):
        raise ValueError(f"weights of shape {weights.shape} do not fit {len(heads)} heads and the tokens")
    figure, told = Figure(), Figure()
    for index, head in enumerate(heads):
        colour = QUALITATIVE[head % len(QUALITATIVE)]
        name = words["head_short"].replace("{head}", str(head))
        level = np.ceil(weights[index] * LEVELS).clip(1, LEVELS)
        drawn = np.isfinite(weights[index]) & (weights[index] >= max(threshold, 1e-9))
        told.add_heatmap(
            z=np.where(drawn, weights[index], np.float32(np.nan)),
            name=name,
            colorscale=weight_scale(),
            colorbar={"title": {"text": words["weight"]}},
            hovertemplate=fill(words["attends_in"], head=name, value="%{z:.4f}", **_PLACES),
        )
        figure.add_scatter(x=[None], y=[None], mode="lines", name=name, line={"color": colour, "width": 3})
        for strength in range(1, LEVELS + 1):
            queries, keys = np.nonzero(drawn & (level == strength))
            if not len(queries):
                continue
            gap = np.full(len(queries), np.nan, np.float32)
            figure.add_scatter(
                x=np.stack([np.zeros_like(gap), np.ones_like(gap), gap], axis=1).ravel(),
                y=np.stack([queries, keys, gap], axis=1).ravel().astype(np.float32),
                mode="lines",
                line={"color": colour, "width": 0.5 + 3.0 * strength / LEVELS},
                opacity=strength / LEVELS,
                name=name,
                showlegend=False,
                hoverinfo="skip",
            )
    for x, tokens, side in ((0.0, query_tokens, "right"), (1.0, key_tokens, "left")):
        for row, token in enumerate(tokens):
            figure.add_text(x, row, token, xanchor=side, xshift=-8 if side == "right" else 8)
    name_axes(told, query_tokens, key_tokens, row_title=words["query"], column_title=words["key"])
    figure.told_by = told
    rows = max(len(query_tokens), len(key_tokens))
    figure.update_layout(
        xaxis={"visible": False, "range": [-0.45, 1.45]}, yaxis={"visible": False, "range": [rows - 0.5, -0.5]}
    )
    frame(figure, title, height=60 + ROW * rows)
    return figure.update_layout(showlegend=True, legend={"orientation": "h"})
