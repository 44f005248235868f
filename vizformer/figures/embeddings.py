"""Vectors inside the model: neighbours of a row, rows on a plane, one token in two contexts, layer by layer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import AXIS, Figure, band, frame
from vizformer.figures.logit_bars import token_bars
from vizformer.figures.style import DASHES, GRID, QUALITATIVE, fill, room, safe, texts

_MARKS = ("circle", "square", "diamond", "triangle-up")


@dataclass(frozen=True)
class Curve:
    """A cosine from the embedding table on: `values[0]` in the table, `values[1]` at the layers' input, and so on."""

    name: str
    values: NDArray[np.floating]


def similarity_curves(
    curves: Sequence[Curve],
    other: NDArray[np.floating],
    low: NDArray[np.floating],
    high: NDArray[np.floating],
    *,
    added: bool = True,
    title: str = "",
) -> Figure:
    """Draws how alike the vectors of one token are in two texts, from the embedding table through every layer.

    Args:
        other: mean cosine of different tokens at the layers' input and after every layer: one shorter than a curve.
        low: the lower one of the percentiles between which most of these lie.
        high: the upper one.
        added: whether position vectors are added before the first layer.
    """
    words = texts()
    count = len(other) + 1
    if any(len(curve.values) != count for curve in curves) or {len(low), len(high)} != {count - 1}:
        raise ValueError(f"curves need {count} values and bands {count - 1}")
    entry = words["input"] if added else words["input_alone"]
    names = [words["table"], entry, *(words["after"].replace("{layer}", str(layer)) for layer in range(count - 2))]
    places = np.arange(count, dtype=np.int32)
    figure = Figure()
    for trace in band(places[1:], low, high, safe(words["pairs"]), "rgba(128,128,128,0.25)"):
        figure.add_trace(trace)
    lines = [Curve(words["pairs_mean"], np.asarray([np.nan, *other])), *curves]
    for order, curve in enumerate(lines):
        figure.add_scatter(
            x=places,
            y=np.asarray(curve.values, dtype=np.float32),
            mode="lines" if order == 0 else "lines+markers",
            line={
                "color": QUALITATIVE[7] if order == 0 else QUALITATIVE[(1, 0)[(order - 1) % 2]],
                "dash": "dot" if order == 0 else DASHES[order - 1],
                "width": 2 if order == 0 else 3,
            },
            marker={"symbol": _MARKS[order % len(_MARKS)], "size": 9},
            name=safe(curve.name),
            hovertemplate=fill(words["similarity"], name=safe(curve.name), place="%{x}", value="%{y:.4f}"),
        )
    frame(figure, title, height=430)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.22})
    least = min(0.0, float(np.nanmin([*np.nan_to_num(low), *(curve.values.min() for curve in curves)])))
    figure.update_xaxes(
        tickvals=places, ticktext=[safe(name) for name in names], title=safe(words["place"]), range=[-0.2, count - 0.8]
    )
    figure.update_yaxes(title=safe(words["cosine"]), range=[least - 0.03, 1.06])
    return figure


def norm_bars(
    tokens: Sequence[str],
    token_lengths: NDArray[np.floating],
    position_lengths: NDArray[np.floating] | None,
    *,
    title: str = "",
) -> Figure:
    """Draws the lengths of the token and position vectors [n] side by side, one pair of bars a position."""
    words = texts()
    parts = [("token_length", token_lengths)]
    parts += [] if position_lengths is None else [("position_length", position_lengths)]
    places = np.arange(len(tokens), dtype=np.int32)
    figure = Figure()
    for order, (name, lengths) in enumerate(parts):
        values = np.asarray(lengths, dtype=np.float32)
        if values.shape != (len(tokens),):
            raise ValueError(f"lengths of shape {values.shape} do not fit {len(tokens)} tokens")
        hover = words["length_of"].replace("{part}", words[name])
        figure.add_bar(
            x=places,
            y=values,
            name=safe(words[name]),
            marker={"color": QUALITATIVE[order], "pattern": {"shape": ("", "/")[order]}},
            customdata=[safe(token) for token in tokens],
            hovertemplate=fill(hover, position="%{x:d}", token="%{customdata}", value="%{y:.3f}"),
        )
    frame(figure, title, height=380, bargap=0.2)
    figure.update_layout(barmode="group", showlegend=True, legend={"orientation": "h", "y": -0.3})
    step = max(1, -(-len(tokens) // 32))
    figure.update_xaxes(
        tickvals=places[::step],
        ticktext=[safe(token[:12]) for token in tokens[::step]],
        title=safe(words["token"]),
        showgrid=False,
        tickfont={"size": 14},
        tickangle=0 if len(tokens) <= 14 else None,
    )
    figure.update_yaxes(title=safe(words["length"]), rangemode="tozero")
    return figure


def stream_points(
    names: Sequence[str],
    lengths: NDArray[np.floating],
    to_start: NDArray[np.floating],
    to_end: NDArray[np.floating],
    *,
    kinds: Sequence[int] | None = None,
    title: str = "",
) -> Figure:
    """Draws the length at every point as a bar, and below it the two cosines as lines.

    `kinds`: a number for each point; bars of one kind have one colour.
    """
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


# An embedding table: its rows nearest to one of them, and rows on a plane.

_Box = tuple[float, float, float, float]  # left, top, right, bottom

_NEIGHBOUR_MARKS = ("circle", "square", "diamond")

_WIDE, _HIGH = 440.0, 290.0  # px of the plane on a page; only for where names go, so about right is enough
_HIDDEN = 0.1  # of a name's area over other names: more cannot be read
_SIDES = {
    "top center": (0, -1),
    "bottom center": (0, 1),
    "middle right": (1, 0),
    "middle left": (-1, 0),
    "top right": (1, -1),
    "top left": (-1, -1),
    "bottom right": (1, 1),
    "bottom left": (-1, 1),
}


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
                "symbol": _NEIGHBOUR_MARKS[kind],
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


def sides(places: NDArray[np.floating], tokens: Sequence[str], kinds: Sequence[int], chosen: int) -> list[str | None]:
    """The side of its point on which each name is placed: one after the other, where it overlaps names and points least.

    None: on every side the name would make another one hard to read.

    `kinds`: the order in which names are placed; points of kind 2 have none.
    """
    span = np.maximum(np.ptp(places, axis=0), 1e-6)
    # Downwards, as on a screen; not in numpy, whose numbers one by one take ten times as long.
    pixels = ((places - places.min(0)) / span * (_WIDE, -_HIGH)).tolist()
    boxes = [(x - 5, y - 5, x + 5, y + 5) for x, y in pixels]  # the points themselves
    names: list[_Box] = []
    found: list[str | None] = [None] * len(tokens)
    for i in sorted(range(len(tokens)), key=lambda i: (i != chosen, kinds[i])):
        if kinds[i] == 2:
            continue
        width = sum(15.0 if ord(character) > 0x2E7F else 8.5 for character in tokens[i])
        best: tuple[float, str, _Box] | None = None
        for side, (dx, dy) in _SIDES.items():
            x, y = pixels[i][0] + dx * (width / 2 + 8), pixels[i][1] + dy * (16 if dx == 0 else 12)
            box = (x - width / 2, y - 9, x + width / 2, y + 9)
            if sum(_overlap(box, other) for other in names) > _HIDDEN * width * 18:
                continue
            covered = sum(_overlap(box, other) for other in (*boxes, *names))
            if best is None or covered < best[0]:
                best = covered, side, box
        if best is not None:
            found[i] = best[1]
            names.append(best[2])
    return found


def _overlap(a: _Box, b: _Box) -> float:
    if a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]:  # as nearly all
        return 0.0
    return (min(a[2], b[2]) - max(a[0], b[0])) * (min(a[3], b[3]) - max(a[1], b[1]))
