"""Heads as lines: queries on the left, keys on the right, a line for each weight; for paper."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.axes import name_axes
from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import QUALITATIVE, fill, texts, weight_scale

LEVELS = 10  # strengths of lines that are told apart: lines of one strength are one trace

ROW = 22  # px of a token
_PLACES = {"query": "%{pointNumber[0]}", "query_token": "%{y}", "key": "%{pointNumber[1]}", "key_token": "%{x}"}


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
