"""The pictures of the head report: a number of every head, and one head's map with cells marked."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures import style
from vizformer.figures.attention import attention_heatmap
from vizformer.figures.axes import name_axes
from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import VIRIDIS, fill, heights
from vizformer.word_tables import words_of

MOST_MARKED = 400  # squares: more would hide the map
PRINTED_UP_TO = 16

ENGLISH: Mapping[str, str] = {**style.ENGLISH, **words_of(__file__)}
"""Every text of these figures; pages pass the same names in the reader's language."""


def measure_of_heads(
    values: NDArray[np.floating],
    *,
    measure: str,
    signed: bool = False,
    columns: Sequence[str] | None = None,
    title: str = "",
    words: Mapping[str, str] = ENGLISH,
) -> Figure:
    """Draws one number of every head [layers, heads]; NaN leaves a cell empty.

    `signed`: whether it lies between -1 and 1 and its sign says something.
    """
    words = {**ENGLISH, **words}
    values = np.ascontiguousarray(values, dtype=np.float32)
    if values.ndim != 2:
        raise ValueError(f"values must be [layers, heads], not of shape {values.shape}")
    last = len(VIRIDIS) - 1
    figure = Figure().add_heatmap(
        z=values,
        zmin=-1.0 if signed else None,
        zmax=1.0 if signed else None,
        colorscale=style.signed_scale() if signed else [(i / last, colour) for i, colour in enumerate(VIRIDIS)],
        colorbar={"title": {"text": style.safe(measure)}, "thickness": 14},
        xgap=1,
        ygap=1,
        hoverongaps=False,
        **(style.printed(values) if max(values.shape) <= PRINTED_UP_TO else {}),
        hovertemplate=fill(words["of_head"], layer="%{y}", head="%{x}", value="%{z:.4g}"),
    )
    rows = [words["layer_short"].replace("{layer}", str(layer)) for layer in range(values.shape[0])]
    heads = [words["head_short"].replace("{head}", str(head)) for head in range(values.shape[1])]
    name_axes(figure, rows, columns or heads, square=False)
    return frame(figure, title, height=heights(*values.shape))


def likeness(
    similarity: NDArray[np.floating], names: Sequence[str], *, title: str = "", words: Mapping[str, str] = ENGLISH
) -> Figure:
    """Draws how alike every two heads are, by their cosines [heads, heads], in the order that is passed."""
    words = {**ENGLISH, **words}
    values = np.ascontiguousarray(similarity, dtype=np.float32)
    if values.shape != (len(names), len(names)):
        raise ValueError(f"{len(names)} names do not fit similarities of shape {values.shape}")
    figure = Figure().add_heatmap(
        z=values,
        **style.signed(1.0),
        colorbar={"title": {"text": words["cosine"]}, "thickness": 14},
        hoverongaps=False,
        hovertemplate=fill(words["alike"], row="%{y}", column="%{x}", value="%{z:.3f}"),
    )
    name_axes(figure, names, names)
    return frame(figure, title, height=520)


def eigenvalue_plane(
    values: NDArray[np.complexfloating], *, title: str = "", words: Mapping[str, str] = ENGLISH
) -> Figure:
    words = {**ENGLISH, **words}
    end = 1.1 * style.reach(np.abs(values).astype(np.float32))
    figure = Figure().add_scatter(
        x=np.ascontiguousarray(values.real, dtype=np.float32),
        y=np.ascontiguousarray(values.imag, dtype=np.float32),
        mode="markers",
        marker={"size": 8, "color": style.QUALITATIVE[0], "opacity": 0.75},
        hovertemplate="%{x:.4g} + %{y:.4g} i<extra></extra>",
        showlegend=False,
    )
    axis = {"range": [-end, end], "zeroline": True, "zerolinecolor": style.MASKED_LINE, "gridcolor": style.GRID}
    figure.update_layout(
        xaxis={**axis, "title": {"text": words["real"]}},
        yaxis={**axis, "title": {"text": words["imaginary"]}, "scaleanchor": "x", "constrain": "domain"},
    )
    return frame(figure, title, height=320)


def marked_map(
    pattern: NDArray[np.floating],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    marked: NDArray[np.bool_],
    *,
    reasons: NDArray[np.integer] | None = None,
    title: str = "",
    words: Mapping[str, str] = ENGLISH,
) -> Figure:
    """One head's map with squares around some cells, the strongest MOST_MARKED of those that are marked."""
    if np.shape(marked) != np.shape(pattern):
        raise ValueError(f"marks of shape {np.shape(marked)} do not fit a pattern of shape {np.shape(pattern)}")
    figure = attention_heatmap(pattern, query_tokens, key_tokens, reasons=reasons, title=title, words=words)
    cells = np.argwhere(marked)
    strongest = np.argsort(-np.asarray(pattern)[marked], kind="stable")[:MOST_MARKED]
    for query, key in cells[strongest].tolist():
        figure.add_rectangle(
            key - 0.47, key + 0.47, query - 0.47, query + 0.47, line={"color": style.QUALITATIVE[1], "width": 2}
        )
    return figure
