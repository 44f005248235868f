"""A grey picture with the borders of its patches, one of them framed."""

import numpy as np
from numpy.typing import NDArray

from vizformer.figures import style
from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import fill, texts


def patch_picture(picture: NDArray[np.floating], side: int, chosen: int, *, title: str = "") -> Figure:
    """Draws a picture cut into squares; they are counted row by row from the top left.

    `picture`: brightness, 0 = black to 1 = white [height, width].
    """
    words = texts()
    height, width = picture.shape
    across = width // side
    if not 0 <= chosen < across * (height // side):
        raise ValueError(f"there is no patch {chosen}")
    rows, columns = np.mgrid[:height, :width]
    figure = Figure()
    figure.add_heatmap(
        z=np.asarray(picture, dtype=np.float32),
        zmin=0,
        zmax=1,
        colorscale=[[0, "#000000"], [1, "#ffffff"]],
        showscale=False,
        customdata=(rows // side * across + columns // side).astype(np.int32),
        hovertemplate=fill(words["pixel"], row="%{y}", column="%{x}", value="%{z:.2f}", patch="%{customdata}")
        + "<extra></extra>",
    )
    for place in range(0, height + 1, side):
        _line(figure, (-0.5, width - 0.5), (place - 0.5,) * 2)
    for place in range(0, width + 1, side):
        _line(figure, (place - 0.5,) * 2, (-0.5, height - 0.5))
    top, left = chosen // across * side, chosen % across * side
    figure.add_rectangle(
        left - 0.5, left + side - 0.5, top - 0.5, top + side - 0.5, line={"color": style.QUALITATIVE[1], "width": 5}
    )
    figure.update_xaxes(showticklabels=False, showgrid=False, zeroline=False, constrain="domain")
    figure.update_yaxes(showticklabels=False, showgrid=False, zeroline=False, autorange="reversed", scaleanchor="x")
    return frame(figure, title, height=380)


def _line(figure: Figure, x: tuple[float, float], y: tuple[float, float]) -> None:
    figure.add_shape(
        type="line", x0=x[0], x1=x[1], y0=y[0], y1=y[1], line={"color": style.QUALITATIVE[0], "width": 1.5}
    )
