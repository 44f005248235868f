"""An embedding table: its rows nearest to one of them, and rows on a plane."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.bars import token_bars
from vizformer.figures.figure import Figure, frame
from vizformer.figures.names import sides
from vizformer.figures.style import GRID, QUALITATIVE, fill, room, safe, texts

_MARKS = ("circle", "square", "diamond")


def neighbour_bars(tokens: Sequence[str], cosines: NDArray[np.floating], average: float, *, title: str = "") -> Figure:
    """Draws the cosines of the nearest tokens as bars, the nearest on top, and a line where two tokens are on average."""
    words = texts()
    values = np.asarray(cosines, dtype=np.float32)
    hover = fill(words["neighbour"], token="%{y}", value="%{x:.4f}")
    figure = token_bars(tokens, values, [_short(value) for value in values.ravel().tolist()], hover, above=1.1)
    figure.add_vline(x=average, line={"color": QUALITATIVE[1], "dash": "dash", "width": 2})
    figure.add_text(
        average,
        -0.75,
        words["average"].replace("{value}", _short(average)),
        xanchor="left",
        xshift=4,
        font={"color": QUALITATIVE[1], "size": 13},
    )
    frame(figure, title, height=110 + 30 * max(3, len(tokens)), bargap=0.25)
    # Fixed, as on the map: margins that are searched for are drawn several times.
    figure.update_layout(margin={"l": 16 + max((room(token, 15) for token in tokens), default=0), "r": 48, "b": 48})
    least = min(0.0, average, float(values.min(initial=0.0)))
    figure.update_xaxes(
        range=[least, max(1.0, float(values.max(initial=0.0)))], title=safe(words["cosine"]), automargin=False
    )
    figure.update_yaxes(automargin=False)
    return figure


def _short(cosine: float) -> str:
    return f"{cosine:z.2f}".replace("-", "−")


def embedding_map(
    points: NDArray[np.floating],
    tokens: Sequence[str],
    kinds: Sequence[int],
    explained: tuple[float, float],
    *,
    chosen: int = 0,
    title: str = "",
) -> Figure:
    """Draws vectors on the plane of their two main directions.

    `kinds`: of each point [m, 2]: 0 a token of the sentence, 1 a neighbour of the chosen one, 2 a neighbour of another.
    `chosen`: the point that the neighbours belong to; lines lead from it to them.  Where the points are crowded, its
        name is printed and others are left to the hover.
    """
    words = texts()
    places = np.ascontiguousarray(points, dtype=np.float32)
    if places.shape != (len(tokens), 2) or len(kinds) != len(tokens):
        raise ValueError(f"points of shape {places.shape} do not fit {len(tokens)} tokens of {len(kinds)} kinds")
    beside = sides(places, tokens, kinds, chosen)
    figure = Figure()
    rays = [point for i in range(len(tokens)) if kinds[i] == 1 for point in (places[chosen], places[i], [np.nan] * 2)]
    if rays:
        ends = np.array(rays, dtype=np.float32)
        figure.add_scatter(
            x=ends[:, 0],
            y=ends[:, 1],
            mode="lines",
            line={"color": GRID, "width": 1.5},
            hoverinfo="skip",
            showlegend=False,
        )
    names = (words["own"], words["close"].replace("{token}", tokens[chosen]), words["rest"])
    for kind in (2, 1, 0):
        here = [i for i in range(len(tokens)) if kinds[i] == kind]
        if not here:
            continue
        figure.add_scatter(
            x=places[here, 0],
            y=places[here, 1],
            mode="markers+text" if kind < 2 else "markers",
            text=[safe(tokens[i]) if beside[i] else "" for i in here],
            textposition=[beside[i] or "top center" for i in here],
            customdata=[safe(tokens[i]) for i in here],
            cliponaxis=False,
            textfont={"size": 15 if kind == 0 else 13},
            marker={
                "color": (QUALITATIVE[0], QUALITATIVE[1], QUALITATIVE[7])[kind],
                "symbol": _MARKS[kind],
                "size": [15 if i == chosen else (10, 8, 6)[kind] for i in here],
                "opacity": 1.0 if kind < 2 else 0.6,
            },
            name=safe(names[kind]),
            hovertemplate=fill(words["on_map"], token="%{customdata}"),
        )
    frame(figure, title, height=460)
    figure.update_layout(
        showlegend=len(set(kinds)) > 1, legend={"orientation": "h", "y": -0.18, "traceorder": "reversed"}
    )
    figure.update_layout(margin={"l": 64, "b": 96})  # fixed: margins that are searched for are drawn several times
    for number, update in enumerate((figure.update_xaxes, figure.update_yaxes)):
        said = words["direction"].replace("{number}", str(number)).replace("{percent}", f"{explained[number]:.0%}")
        low, high = float(places[:, number].min()), float(places[:, number].max())
        room = (0.14, 0.1)[number] * max(high - low, 1e-3)  # for the names at the edges
        update(title=safe(said), zeroline=True, zerolinecolor=GRID, range=[low - room, high + room], automargin=False)
    return figure
