"""Small matrices of signed numbers: weights, vectors, products, a number for every pair of tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame, name_axes
from vizformer.figures.style import fill, heights, printed, reach, safe, signed, texts

PRINTED_UP_TO, PAIRS_PRINTED_UP_TO = 16, 12
_TICKS = 8  # of pairs that are not printed


def matrix_heatmap(
    matrix: NDArray[np.floating],
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
    *,
    row_title: str = "",
    column_title: str = "",
    title: str = "",
) -> Figure:
    """Draws a matrix [rows, columns] with a diverging scale centred on 0; the values stand in the cells while few."""
    words = texts()
    values = np.ascontiguousarray(matrix, dtype=np.float32)
    if values.ndim != 2:
        raise ValueError(f"a matrix must be [rows, columns], not of shape {values.shape}")
    rows = list(row_names) if row_names is not None else [str(row) for row in range(values.shape[0])]
    columns = list(column_names) if column_names is not None else [str(column) for column in range(values.shape[1])]
    if values.shape != (len(rows), len(columns)):
        raise ValueError(f"{len(rows)} row and {len(columns)} column names do not fit a matrix of {values.shape}")
    end = reach(values)
    figure = Figure().add_heatmap(
        z=values,
        **signed(end),
        colorbar={"title": {"text": words["value"]}, "thickness": 14},
        xgap=1,
        ygap=1,
        hoverongaps=False,
        **(printed(values) if max(values.shape) <= PRINTED_UP_TO else {}),
        hovertemplate=fill(words["matrix_cell"], row="%{y}", column="%{x}", value="%{z:.6g}"),
    )
    name_axes(figure, rows, columns, row_title=row_title, column_title=column_title, square=False)
    frame(figure, title, height=heights(*values.shape))
    if title and len(columns) > PRINTED_UP_TO:  # names that are turned need the room in which the title would stand
        figure.update_layout(title={"automargin": True, "yref": "container", "pad": {"t": 8}})
    return figure


def token_pairs(
    values: NDArray[np.floating], names: Sequence[str], *, row_title: str = "", column_title: str = ""
) -> Figure:
    """Draws a square matrix of signed numbers [tokens, tokens]; cells that are NaN stay empty.

    Above `PAIRS_PRINTED_UP_TO` tokens only every few names are printed (the labels are most of the time that a browser needs
    for such a map); the hover names every cell.
    """
    n = len(names)
    if values.shape != (n, n):
        raise ValueError(f"{n} names do not fit a matrix of {values.shape}")
    if n <= PAIRS_PRINTED_UP_TO:
        return matrix_heatmap(values, names, names, row_title=row_title, column_title=column_title)
    words = texts()
    shown, end = np.ascontiguousarray(values, dtype=np.float32), reach(values)
    safe_names = [safe(name) for name in names]
    figure = Figure().add_heatmap(
        z=shown,
        **signed(end),
        colorbar={"title": {"text": words["value"]}, "thickness": 14},
        hoverongaps=False,
        customdata=[[[row, column] for column in safe_names] for row in safe_names],
        hovertemplate=fill(words["matrix_cell"], row="%{customdata[0]}", column="%{customdata[1]}", value="%{z:.6g}"),
    )
    places = list(range(0, n, -(-n // _TICKS)))
    axis = {"tickvals": places, "ticktext": [safe_names[place] for place in places], "showgrid": False}
    frame(figure, height=heights(n, n))
    figure.update_xaxes(**axis, range=[-0.5, n - 0.5], side="top", title=safe(column_title), constrain="domain")
    figure.update_yaxes(**axis, range=[n - 0.5, -0.5], title=safe(row_title), constrain="domain")
    return figure
