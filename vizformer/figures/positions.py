"""How positions are told apart: the encoding as a map."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.axes import LONGEST_LABEL, MOST_LABELS, name_axes
from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import fill, reach, safe, signed, texts


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
