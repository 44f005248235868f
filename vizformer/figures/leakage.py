"""Which outputs move when one token is changed: per position, and layer by layer."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame, heatmap, name_axes
from vizformer.figures.style import GRID, QUALITATIVE, VIRIDIS, fill, safe, texts

PRINTED_UP_TO = 12  # tokens: numbers above the bars and in the cells of the map, in letters that can be read
DIGITS = 13  # px
STILL = "#bdbdbd"  # of cells that have not moved: dark digits can be read on it, on a light page and on a dark one


def change_bars(outputs: NDArray[np.floating], tokens: Sequence[str], changed: int, *, title: str = "") -> Figure:
    """Draws how far each position's output has moved (largest |difference|) [n]; the changed token's has its own colour."""
    words = texts()
    values = np.asarray(outputs, dtype=np.float32)
    if values.shape != (len(tokens),):
        raise ValueError(f"outputs of shape {values.shape} do not fit {len(tokens)} tokens")
    figure = Figure().add_bar(
        x=np.arange(len(tokens), dtype=np.int32),
        y=values,
        marker={
            "color": [QUALITATIVE[1] if i == changed else VIRIDIS[4] for i in range(len(tokens))],
            "line": {"color": GRID, "width": 1},
        },
        text=[_short(value) for value in values] if len(tokens) <= PRINTED_UP_TO else None,
        textposition="outside",
        textangle=0,
        textfont={"size": DIGITS},
        constraintext="none",
        cliponaxis=False,
        hovertemplate=fill(words["moved_at"], position="%{pointNumber}", token="%{x}", value="%{y:.4g}"),
    )
    frame(figure, title, height=260, bargap=0.25)
    top = float(values.max(initial=0.0))
    figure.update_yaxes(title=safe(words["moved"]), range=[0, 1.18 * top if top > 0 else 1])
    figure.update_xaxes(
        tickvals=np.arange(len(tokens)),
        ticktext=[safe(token) for token in tokens],
        title=safe(words["position"]),
        range=[-0.5, len(tokens) - 0.5],
        showgrid=False,
    )
    return figure


def change_map(stream: NDArray[np.floating], tokens: Sequence[str], *, title: str = "") -> Figure:
    """Draws how a change spreads through the layers; what has not moved at all is grey.

    `stream`: largest |difference| of the residual stream, before the first layer and after each
        [n_layers + 1, n].
    """
    words = texts()
    values = np.asarray(stream, dtype=np.float32)
    if values.ndim != 2 or values.shape[1] != len(tokens):
        raise ValueError(f"a stream of shape {values.shape} does not fit {len(tokens)} tokens")
    names = [words["embedding"], *(words["after_layer"].replace("{layer}", str(i)) for i in range(len(values) - 1))]
    moved = np.where(values == 0, np.float32(np.nan), values).astype(np.float32)
    still = np.where(values == 0, np.float32(0), np.float32(np.nan)).astype(np.float32)
    places = {"point": "%{y}", "position": "%{pointNumber[1]}", "token": "%{x}"}
    shared = {"xgap": 1, "ygap": 1, "hoverongaps": False}
    # texts of our own: a template of Plotly's would also print something in the cells that a layer leaves out
    printed = len(tokens) <= PRINTED_UP_TO
    numbers = [[_short(value) if value else "" for value in row] for row in values] if printed else None
    zeros = [["" if value else "0" for value in row] for row in values] if printed else None
    figure = Figure(
        heatmap(
            z=moved,
            zmin=0,
            zmax=float(values.max(initial=0.0)) or 1.0,
            colorscale=[((i / (len(VIRIDIS) - 1)) ** 2, colour) for i, colour in enumerate(VIRIDIS)],
            colorbar={"thickness": 14, "title": {"text": safe(words["moved"]), "side": "right"}},
            text=numbers,
            texttemplate="%{text}" if printed else None,
            textfont={"size": DIGITS},
            hovertemplate=fill(words["stream_at"], value="%{z:.4g}", **places),
            **shared,
        ),
        heatmap(
            z=still,
            zmin=0,
            zmax=1,
            colorscale=[(0, STILL), (1, STILL)],
            showscale=False,
            text=zeros,
            texttemplate="%{text}" if printed else None,
            textfont={"size": DIGITS},
            hovertemplate=fill(words["still_at"], **places),
            **shared,
        ),
    )
    name_axes(figure, names, tokens, square=False)
    return frame(figure, title, height=max(260, 110 + 36 * len(values)))


def _short(value: float) -> str:
    return "0" if value == 0 else safe("<0.01") if value < 0.01 else f"{value:.2g}"
