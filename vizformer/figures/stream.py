"""A row of the residual stream from point to point: its length, and its direction against the first and the last."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import AXIS, Figure, frame
from vizformer.figures.style import DASHES, QUALITATIVE, fill, safe, texts


def stream_points(
    names: Sequence[str],
    lengths: NDArray[np.floating],
    to_start: NDArray[np.floating],
    to_end: NDArray[np.floating],
    *,
    kinds: Sequence[int] | None = None,
    title: str = "",
) -> Figure:
    """Draws the length at every point as a bar, and below it the two cosines as lines."""
    words = texts()
    n = len(names)
    if not {len(lengths), len(to_start), len(to_end), len(kinds or names)} == {n} or not n:
        raise ValueError(f"{n} names do not fit {len(lengths)} lengths, {len(to_start)} and {len(to_end)} cosines")
    places = np.arange(n, dtype=np.int32)
    shown = [safe(name) for name in names]
    figure = Figure().add_bar(
        x=places,
        y=np.asarray(lengths, dtype=np.float32),
        marker={"color": [QUALITATIVE[kind % len(QUALITATIVE)] for kind in kinds or [0] * n]},
        text=[f"{length:.1f}" for length in lengths],
        textposition="outside",
        cliponaxis=False,
        showlegend=False,
        customdata=shown,
        hovertemplate=fill(words["length_at"], place="%{customdata}", value="%{y:.4f}"),
    )
    for order, (name, values) in enumerate((("to_start", to_start), ("to_end", to_end))):
        figure.add_scatter(
            x=places,
            y=np.asarray(values, dtype=np.float32),
            yaxis="y2",
            mode="lines+markers",
            name=safe(words[name]),
            customdata=shown,
            line={"color": QUALITATIVE[3 + order], "dash": DASHES[order], "width": 2.5},
            marker={"size": 8, "symbol": ("circle", "square")[order]},
            hovertemplate=fill(
                words["stream_cosine_at"], place="%{customdata}", name=safe(words[name]), value="%{y:.4f}"
            ),
        )
    frame(figure, title, height=420)
    figure.update_xaxes(tickvals=places, ticktext=shown, anchor="y2", showgrid=False)
    low = min(0.0, float(np.min([to_start, to_end])))
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1.0, "xanchor": "right"},
        yaxis={
            "domain": [0.5, 0.97],
            "range": [0.0, 1.15 * max(float(np.max(lengths)), 1e-6)],
            "title": {"text": safe(words["vector_length"])},
        },
        yaxis2={"domain": [0.0, 0.4], "range": [low - 0.08, 1.08], "title": {"text": safe(words["cosine"])}, **AXIS},
    )
    return figure
