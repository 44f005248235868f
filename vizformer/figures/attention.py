"""The attention map of one head: the weight of every key for every query."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame, name_axes
from vizformer.figures.style import MASKED, MASKED_LINE, fill, heights, reach, safe, signed_scale, texts, weight_scale
from vizformer.figures.tables import MASKED_CELLS

PRINTED_UP_TO = 16  # values stand in the cells of maps of at most so many rows and columns

MOST_HATCHED = 2000


def attention_heatmap(
    pattern: NDArray[np.floating],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    reasons: NDArray[np.integer] | None = None,
    kind: Literal["weights", "scores", "effective"] = "weights",
    own_range: bool = False,
    title: str = "",
    words: Mapping[str, str] | None = None,
) -> Figure:
    """Draws the attention weights, or the scores, of one head.

    `pattern`: weights in 0..1, or scores [queries, keys].
    `reasons`: why a cell is masked [queries, keys]: 0 visible, 1 padding, 2 future, 3 outside the window, 4 painted,
        5 not chosen by a sparse mask, 6 left out of the picture, 7 by a recorded model.
    `kind`: weights get a sequential scale fixed to 0..1, scores a diverging one centred on 0, and
    effective weights, which can be below 0, a diverging one of the same reach as weights.
    `own_range`: whether the colours of weights end at the largest of this map, which its scale then says, not at 1.
    `words`: those that are not the usual ones.
    """
    words = texts() | dict(words or {})
    values = np.array(pattern, dtype=np.float32)
    if values.shape != (len(query_tokens), len(key_tokens)):
        raise ValueError(
            f"pattern of shape {values.shape} does not fit {len(query_tokens)} query and {len(key_tokens)} key tokens"
        )
    if reasons is not None:
        if np.shape(reasons) != values.shape:
            raise ValueError(f"reasons of shape {np.shape(reasons)} do not fit a pattern of shape {values.shape}")
        values[np.asarray(reasons) != 0] = np.nan
    places = {"query": "%{pointNumber[0]}", "key": "%{pointNumber[1]}", "query_token": "%{y}", "key_token": "%{x}"}
    weights = kind == "weights"
    end = reach(values) if kind == "scores" or own_range else 1.0
    scale = words["score" if kind == "scores" else "weight"]
    if weights and own_range:
        scale = f"{scale}<br>0–{end:.2g}"
    small = max(values.shape) <= PRINTED_UP_TO
    figure = Figure().add_heatmap(
        z=values,
        zmin=0.0 if weights else -end,
        zmax=end,
        colorscale=weight_scale() if weights else signed_scale(),
        colorbar={"title": {"text": scale}, "thickness": 14},
        xgap=1 if max(values.shape) <= 64 else 0,
        ygap=1 if max(values.shape) <= 64 else 0,
        hoverongaps=False,
        texttemplate=("%{z:.1f}" if kind == "scores" else "%{z:.2f}") if small else None,
        hovertemplate=fill(words["scores" if kind == "scores" else "attends"], value="%{z:.4f}", **places),
    )
    if reasons is not None:
        add_masks(figure, np.asarray(reasons), words["masked"], words, places)
    name_axes(figure, query_tokens, key_tokens, row_title=words["query"], column_title=words["key"])
    return frame(figure, title, height=heights(*values.shape))


def added_mask(
    reasons: NDArray[np.integer],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    words: Mapping[str, str] | None = None,
) -> Figure:
    """Draws the matrix M that is added to the scores: 0 where a query sees a key, else -inf, which has no colour."""
    codes = np.asarray(reasons)
    zeros = np.zeros(codes.shape, np.float32)
    figure = attention_heatmap(zeros, query_tokens, key_tokens, reasons=codes, kind="scores", words=words)
    told = Figure()
    for trace in figure.parts[0]:
        if trace.get("meta") == MASKED_CELLS:
            trace = {**trace, "z": trace["z"] - np.float32(np.inf), "meta": None}
        if trace["type"] == "heatmap":
            told.add_trace(trace)
    told.update_layout(**figure.parts[1])
    figure.told_by = told
    return figure


def add_masks(
    figure: Figure,
    reasons: NDArray[np.integer],
    sentence: str,
    words: Mapping[str, str],
    places: Mapping[str, str],
    *,
    hatched: bool = True,
) -> None:
    """Lays one trace per reason over a map.

    `words`: "reason_1" ... in the reader's language; `hatched`: whether to draw strokes too, where the cells are few.
    """
    gap = 1 if hatched and max(reasons.shape) <= 64 else 0
    for code in sorted(set(np.unique(reasons).tolist()) - {0}):
        reason = words.get(f"reason_{code}", str(code))
        cells = np.where(reasons == code, np.float32(0), np.float32(np.nan)).astype(np.float32)
        figure.add_heatmap(
            z=cells,
            zmin=0,
            zmax=1,
            colorscale=[(0, MASKED), (1, MASKED)],
            showscale=False,
            hoverongaps=False,
            xgap=gap,
            ygap=gap,
            hovertemplate=fill(sentence, reason=safe(reason), **places),
            name=reason,
            meta="masked",  # (`figures.series.MASKED`)
        )
    rows, columns = np.nonzero(reasons)
    if hatched and 0 < len(rows) <= MOST_HATCHED:
        figure.add_scatter(
            x=columns.astype(np.int32),
            y=rows.astype(np.int32),
            mode="markers",
            marker={"symbol": "line-ne", "size": 9, "line": {"color": MASKED_LINE, "width": 1}},
            hoverinfo="skip",
        )
