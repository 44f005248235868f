"""A number for every pair of tokens: printed while they are few, drawn light and fast where they are many."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame
from vizformer.figures.matrix import matrix_heatmap
from vizformer.figures.style import fill, heights, reach, safe, signed, texts

PRINTED_UP_TO = 12
_TICKS = 8


def token_pairs(
    values: NDArray[np.floating], names: Sequence[str], *, row_title: str = "", column_title: str = ""
) -> Figure:
    """Draws a square matrix of signed numbers [tokens, tokens]; cells that are NaN stay empty.

    Above `PRINTED_UP_TO` tokens only every few names are printed (the labels are most of the time that a browser needs
    for such a map); the hover names every cell.
    """
    n = len(names)
    if values.shape != (n, n):
        raise ValueError(f"{n} names do not fit a matrix of {values.shape}")
    if n <= PRINTED_UP_TO:
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
