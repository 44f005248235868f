"""How positions are told apart: the encoding as a map."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import LONGEST_LABEL, MOST_LABELS, Figure, Trace, frame, name_axes, scatter
from vizformer.figures.style import GRID, QUALITATIVE, fill, reach, safe, signed, texts

ACROSS = 4  # clocks in a row: still legible on a phone
_CIRCLE = 2 * np.pi * np.arange(49, dtype=np.float32) / 48


def positional_heatmap(
    encoding: NDArray[np.floating],
    *,
    end: float | None = None,
    names: Sequence[str] | None = None,
    title: str = "",
    words: Mapping[str, str] | None = None,
) -> Figure:
    """Draws position codes [positions, dimensions] as a map, position 0 on top.

    `end`: where the scale ends on both sides, to compare several maps; default: the largest |value|.
    `words`: those that are not the usual ones.
    """
    words = texts() | dict(words or {})
    values = _matrix(encoding)
    end = reach(values) if end is None else end
    figure = Figure().add_heatmap(
        z=values,
        **signed(end),
        colorbar={"title": {"text": words["value"]}, "thickness": 14},
        hovertemplate=fill(words["encoding"], position="%{y}", dimension="%{x}", value="%{z:.4f}"),
    )
    if names is not None:
        if len(names) != len(values):
            raise ValueError(f"{len(names)} names do not fit {len(values)} positions")
        rows = [f"{position} {name}" for position, name in enumerate(names)]
        columns = [str(dimension) for dimension in range(values.shape[1])]
        name_axes(
            figure,
            rows,
            columns,
            row_title=words["position"],
            column_title=words["dimension"],
            square=False,
            column_ticks=_every(values.shape[1]),
            row_ticks=_named(names, rows),
        )
        return frame(figure, title, height=150 + max(160, min(460, 24 * len(rows))))
    frame(figure, title, height=460)
    figure.update_xaxes(title=safe(words["dimension"]), showgrid=False, constrain="domain")
    figure.update_yaxes(title=safe(words["position"]), autorange="reversed", showgrid=False)
    return figure


def _named(names: Sequence[str], rows: Sequence[str]) -> tuple[list[float], list[str]] | None:
    """Ticks for as many named rows as can be read, and for few of the rows with a number alone; None: default ticks."""
    last = max((row for row, name in enumerate(names) if name), default=-1)
    close, far = -(-len(rows) // 30), len(rows) // 8
    if far <= 2 * close or last >= MOST_LABELS or any(len(row) > LONGEST_LABEL for row in rows):
        return None
    places = [*range(0, last + 1, close), *range((last // far + 1) * far, len(rows), far)]
    return [float(place) for place in places], [rows[place].strip() for place in places]


def _every(columns: int) -> tuple[list[float], list[str]]:
    """The tick positions and labels of an axis: about eight, at round numbers."""
    step = next(step for step in (1, 2, 4, 8, 16, 32, 64, 128, 256, columns) if columns <= 9 * step)
    places = list(range(0, columns, step))
    return [float(place) for place in places], [str(place) for place in places]


def _matrix(encoding: NDArray[np.floating]) -> NDArray[np.float32]:
    values = np.ascontiguousarray(encoding, dtype=np.float32)
    if values.ndim != 2:
        raise ValueError(f"an encoding must be [positions, dimensions], not of shape {values.shape}")
    return values


# Numbers in pairs as hands: the sinusoidal code as a row of clocks, and two vectors that rotary positions turn.
def position_clocks(
    pairs: NDArray[np.floating],
    names: Sequence[str],
    position: int,
    *,
    moved: tuple[NDArray[np.floating], int] | None = None,
    title: str = "",
) -> Figure:
    """Draws pairs of a position's code [clocks, 2] as clock hands: the tip is (sine, cosine); a name below each.

    At position 0 every hand points to twelve; from there it turns clockwise, by omega_i a position.

    `moved`: the same pairs at another position, and that position: drawn as a second, dotted hand.
    """
    words = texts()
    if pairs.shape != (len(names), 2):
        raise ValueError(f"pairs of shape {pairs.shape} do not fit {len(names)} names: [clocks, 2]")
    across = min(ACROSS, len(names))
    rows = -(-len(names) // across)
    centres = np.array([(2.6 * (i % across), -3.3 * (i // across)) for i in range(len(names))], dtype=np.float32)
    figure = Figure()
    for x, y in centres:
        figure.add_scatter(
            x=x + np.sin(_CIRCLE),
            y=y + np.cos(_CIRCLE),
            mode="lines",
            line={"color": GRID, "width": 2},
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_scatter(
            x=[x], y=[y + 0.92], mode="markers", marker={"color": GRID, "size": 5}, hoverinfo="skip", showlegend=False
        )
    hands = [(pairs, position, words["now"], "solid", QUALITATIVE[0])]
    if moved is not None:
        hands.append((moved[0], moved[1], words["then"], "dot", QUALITATIVE[1]))
    for values, where, name, dash, colour in hands:
        label = safe(name.replace("{position}", str(where)))
        figure.add_trace(_hands(np.asarray(values, dtype=np.float32), centres, label, dash, colour, words["hand"]))
    for (x, y), text in zip(centres, names, strict=True):
        figure.add_annotation(
            x=x, y=y - 1.08, text=safe(text).replace("\n", "<br>"), showarrow=False, yanchor="top", font={"size": 12}
        )
    frame(figure, title, height=60 + 175 * rows)
    figure.update_xaxes(visible=False, range=[-1.25, 2.6 * (across - 1) + 1.25])
    figure.update_yaxes(visible=False, range=[-3.3 * (rows - 1) - 2.0, 1.1], scaleanchor="x")
    figure.update_layout(
        showlegend=True, legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}, dragmode=False
    )
    return figure


def _hands(
    values: NDArray[np.float32], centres: NDArray[np.float32], name: str, dash: str, colour: str, hover: str
) -> Trace:
    """All hands of one position as one trace: from each centre to its tip, with a gap between."""
    tips = centres + 0.9 * values
    gap = np.full(len(values), np.nan, dtype=np.float32)
    x, y = (np.stack([centres[:, axis], tips[:, axis], gap], axis=1).ravel() for axis in (0, 1))
    numbers = np.repeat(values, 3, axis=0)
    return scatter(
        x=x,
        y=y,
        mode="lines+markers",
        name=name,
        customdata=numbers,
        line={"color": colour, "width": 4, "dash": dash},
        marker={"color": colour, "size": np.tile(np.array([3, 9, 0], dtype=np.uint8), len(values))},
        hovertemplate=fill(hover, name=name, sine="%{customdata[0]:.4f}", cosine="%{customdata[1]:.4f}"),
    )


def turned_arrows(
    vectors: Mapping[str, tuple[NDArray[np.floating], NDArray[np.floating]]], *, title: str = ""
) -> Figure:
    """Draws vectors of the plane, name -> (before [2], after [2]), as arrows from the origin: dotted, and turned."""
    words = texts()
    figure = Figure()
    furthest = 0.1
    for order, (name, (before, after)) in enumerate(vectors.items()):
        colour = QUALITATIVE[order % len(QUALITATIVE)]
        drawn = ((before, safe(name), "dot", 2), (after, safe(words["turned"].replace("{name}", name)), "solid", 4))
        for tip, label, dash, width in drawn:
            furthest = max(furthest, float(np.abs(tip).max()), float(np.linalg.norm(tip)))
            figure.add_scatter(
                x=np.array([0, tip[0]], dtype=np.float32),
                y=np.array([0, tip[1]], dtype=np.float32),
                mode="lines+markers",
                name=label,
                line={"color": colour, "dash": dash, "width": width},
                marker={"color": colour, "symbol": "arrow", "angleref": "previous", "size": [0, 5 + 2.5 * width]},
                hovertemplate=fill(words["vector"], name=label, first="%{x:.4f}", second="%{y:.4f}"),
            )
    end = 1.15 * furthest
    frame(figure, title, height=380)
    figure.update_xaxes(range=[-end, end], zeroline=True, zerolinecolor=GRID, constrain="domain")
    figure.update_yaxes(range=[-end, end], zeroline=True, zerolinecolor=GRID, scaleanchor="x", constrain="domain")
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0})
    return figure
