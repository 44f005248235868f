"""Attention over an image: the weights of one query, or of one key, laid over the patches that they belong to."""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import QUALITATIVE, fill, reach, safe, texts, weight_scale

if TYPE_CHECKING:
    from PIL.Image import Image

    from vizformer.pieces import Piece, Rectangle

MOST_SIDE = 480  # px of the image in the figure
_EXACT = 256  # px up to which an image is kept without loss
_COVER = 0.6  # of the colours over an image
_TICKS = 12  # numbers beside the rows and the columns
_NAMED = 6  # tokens beside the image whose weights are said one by one


def patch_map(
    pattern: NDArray[np.floating],
    query_pieces: "Sequence[Piece]",
    key_pieces: "Sequence[Piece]",
    *,
    query: int | None = None,
    key: int | None = None,
    image: "Image | None" = None,
    crop: tuple[float, float, float, float] | None = None,
    draw: Literal["overlay", "outline", "mosaic"] = "overlay",
    end: float | None = None,
    grid: int = 0,
    title: str = "",
) -> Figure:
    """Draws how one query weighs the patches of an image, or how each patch, as a query, weighs one key.

    `pattern`: weights [queries, keys], or [heads, queries, keys], of which the mean over the heads is drawn and named so.
    `query_pieces`, `key_pieces`: what the tokens are, as `RecordedAttention.pieces`; may be empty on the side that is not
        laid over the image.
    `query`, `key`: one of the two, counted from 0; -1 is the last one.
    `image`: the pixels (`vf.open_image`); without it the weights are cells of a mosaic.
    `crop`: x, y, width, height of the part of the image that the model was given, px; default: the whole image, which must
        then have the size that the model was given.
    `draw`: colours over the image in grey; or the image with a line around the fewest patches that hold half of the weight
        on the image; or cells alone.
    `end`: the weight at the end of the colours, 1.0 to compare any two maps; default: the largest of this map.
    `grid`: which one, where the image is cut several times.
    """
    words = texts()
    values = np.asarray(pattern, dtype=np.float32)
    heads = len(values) if values.ndim == 3 else 0
    values = values.mean(0) if heads else values
    at, pieces, others = (query, key_pieces, query_pieces) if key is None else (key, query_pieces, key_pieces)
    if at is None or (query is not None and key is not None):
        raise ValueError("say either a query or a key")
    if values.ndim != 2 or np.nanmin(values, initial=0.0) < 0:
        raise ValueError(f"weights are [queries, keys] and not below 0, not of shape {np.shape(pattern)}")
    values = values if key is None else values.T
    if len(pieces) != values.shape[1] or len(others) not in (0, len(values)):
        raise ValueError(f"a pattern {np.shape(pattern)} does not fit {len(query_pieces)}, {len(key_pieces)} pieces")
    if not -len(values) <= at < len(values):
        raise ValueError(f"there is no row {at} of {len(values)}")
    at %= len(values)
    weighed = list(zip(pieces, values[at].tolist(), strict=True))
    cells, first = _cells([(piece.of, weight) for piece, weight in weighed if piece.of and piece.of.grid == grid])
    high = reach(cells) if end is None else float(end)
    if not high > 0:
        raise ValueError(f"the colours cannot end at {end}")
    placed = None if image is None or draw == "mosaic" else _placed(image, crop, first, grey=draw == "overlay")
    figure = Figure().add_heatmap(
        z=cells,
        zmin=0.0,
        zmax=high,
        colorscale=weight_scale(),
        opacity=1.0 if placed is None else _COVER if draw == "overlay" else 0.0,
        showscale=placed is None or draw == "overlay",
        colorbar={"title": {"text": words["weight"]}, "thickness": 14},
        xgap=1 if placed is None else 0,
        ygap=1 if placed is None else 0,
        hoverongaps=False,
        hovertemplate=fill(words["patch_at"], row="%{pointNumber[0]}", column="%{pointNumber[1]}", value="%{z:.4f}"),
    )
    lines = [title, words["looks" if key is None else "looked"].format(token=_named(others, at, words))]
    if heads:
        lines.append(words["mean_heads"].format(n=heads))
    if placed is not None and draw == "outline":
        _outline(figure, cells)
        lines.append(words["half"])
    else:
        said = "colours_own" if end is None else "colours_cut" if np.nanmax(cells) > high else "colours"
        lines.append(words[said].format(high=f"{high:.2g}"))
    beside = [(piece.name, weight) for piece, weight in weighed if piece.of is None]
    names = [f"{name} {weight:.2g}" for name, weight in beside]
    if len(names) > _NAMED:
        names = [words["together"].format(n=len(names), value=f"{sum(weight for _, weight in beside):.2g}")]
    for start in range(0, len(names), 2):
        pair = ", ".join(names[start : start + 2])
        lines.append(pair if start else words["beside"].format(names=pair))
    return _framed(figure, [line for line in lines if line], cells.shape, first, placed)


def _cells(found: "Sequence[tuple[Rectangle, float]]") -> "tuple[NDArray[np.float32], Rectangle]":
    """The weights by row and column, NaN where there is no patch, and the rectangle of row 0 and column 0."""
    if not found:
        raise ValueError("none of these tokens is a patch of that grid")
    rows, columns = (1 + max(getattr(of, side) for of, _ in found) for side in ("row", "column"))
    cells = np.full((rows, columns), np.nan, np.float32)
    one = found[0][0]
    x, y = one.x - one.column * one.width, one.y - one.row * one.height
    for of, weight in found:
        wanted = x + of.column * one.width, y + of.row * one.height, one.width, one.height, one.image
        if wanted != (of.x, of.y, of.width, of.height, of.image):
            raise ValueError("the patches of a grid must be of one size, side by side, in one image")
        cells[of.row, of.column] = weight
    return cells, type(one)(x, y, one.width, one.height, 0, 0, one.image, one.grid)


def _named(pieces: "Sequence[Piece]", at: int, words: Mapping[str, str]) -> str:
    of = pieces[at].of if pieces else None
    if of is not None:
        return words["patch"].format(row=of.row, column=of.column)
    return f"{at} “{pieces[at].name}”" if pieces else str(at)


def _placed(
    image: "Image", crop: tuple[float, float, float, float] | None, first: "Rectangle", *, grey: bool
) -> dict[str, Any]:
    """The image as a picture of Plotly's layout, in units of patches: 0 is the middle of the first one."""
    if crop is None and image.size != first.image:
        raise ValueError(
            f"the model was given {first.image} pixels, the image has {image.size}: say crop=(x, y, width, height) of them"
        )
    left, top, wide, tall = crop or (0, 0, *image.size)
    if min(wide, tall) <= 0 or min(left, top) < 0 or left + wide > image.width or top + tall > image.height:
        raise ValueError(f"crop {crop} is no part of an image of {image.width} × {image.height} pixels")
    shown = image.convert("L" if grey else "RGB")
    shown.thumbnail((MOST_SIDE, MOST_SIDE))
    kind, file = "PNG" if max(shown.size) <= _EXACT else "JPEG", io.BytesIO()
    shown.save(file, kind, quality=92)
    across, down = first.image[0] / wide / first.width, first.image[1] / tall / first.height  # patches per px
    return {
        "source": f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode()}",
        "x": -0.5 - left * across - first.x / first.width,
        "y": -0.5 - top * down - first.y / first.height,
        "sizex": image.width * across,
        "sizey": image.height * down,
    }


def _outline(figure: Figure, cells: NDArray[np.floating]) -> None:
    """Draws the border of the fewest patches that hold half of the weight: white, and orange upon it."""
    flat = np.nan_to_num(cells).ravel().astype(np.float64)
    order = np.argsort(-flat, kind="stable")
    n = 1 + int(np.searchsorted(np.cumsum(flat[order]), flat.sum() / 2))
    padded = np.pad(np.isin(np.arange(flat.size), order[:n]).reshape(cells.shape), 1)
    lines: list[tuple[float, float]] = []
    for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        for row, column in np.argwhere(padded & ~np.roll(padded, (-down, -right), (0, 1))) - 1:
            x, y = column + right / 2, row + down / 2  # the middle of a side that no other of them has
            lines += [(x - down / 2, y - right / 2), (x + down / 2, y + right / 2), (np.nan, np.nan)]
    across, upright = np.array(lines, np.float32).T
    for colour, width in (("#ffffff", 6), (QUALITATIVE[1], 3)):
        figure.add_scatter(x=across, y=upright, mode="lines", line={"color": colour, "width": width}, hoverinfo="skip")


def _framed(
    figure: Figure, lines: Sequence[str], shape: tuple[int, int], first: "Rectangle", placed: Mapping[str, Any] | None
) -> Figure:
    """Sets title, axes and, below the cells, the image."""
    words, ratio = texts(), first.height / first.width
    ends = {"x": [-0.5, shape[1] - 0.5], "y": [-0.5, shape[0] - 0.5]}
    if placed is not None:
        for side, (low, high) in ends.items():
            ends[side] = [min(low, placed[side]), max(high, placed[side] + placed[f"size{side}"])]
        figure.update_layout(images=[{**placed, "xref": "x", "yref": "y", "sizing": "stretch", "layer": "below"}])
    wide, tall = ends["x"][1] - ends["x"][0], (ends["y"][1] - ends["y"][0]) * ratio
    frame(figure, "-", height=120 + 20 * len(lines) + int(min(540, 560 * tall / wide)))
    title = {"text": "<br>".join(map(safe, lines)), "font": {"size": 14}, "yref": "container", "y": 1, "pad": {"t": 20}}
    figure.update_layout(title=title, margin={"t": 52 + 20 * len(lines)})
    figure.update_xaxes(**_axis(shape[1]), range=ends["x"], side="top", title=safe(words["patch_column"]))
    square = {"scaleanchor": "x", "scaleratio": ratio}
    return figure.update_yaxes(**_axis(shape[0]), **square, range=ends["y"][::-1], title=safe(words["patch_row"]))


def _axis(n: int) -> dict[str, Any]:
    return {"tickvals": list(range(0, n, -(-n // _TICKS))), "showgrid": False, "constrain": "domain"}
