"""What the tokens of a run are pieces of: patches of an image, each with its rectangle, and tokens that have only a name.

pieces = patches(2, 3, (48, 32), before=["[CLS]"])   # 7 tokens; the third is the patch at row 0, column 1
image = open_image("cat.png")                              # read with suspicion (`images`)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from vizformer.errors import TraceError
from vizformer.pieces.images import open_image as open_image


@dataclass(frozen=True)
class Rectangle:
    """A patch of an image.

    Attributes:
        x: px from the left edge of the image as the model was given it.
        y: px from its upper edge.
        width: px.
        height: px.
        row: its row in its grid, counted from 0 at the top.
        column: its column, counted from 0 on the left.
        image: width and height of the image that the model was given, px.
        grid: which grid, where one image is cut several times (scales, tiles).
    """

    x: float
    y: float
    width: float
    height: float
    row: int
    column: int
    image: tuple[int, int]
    grid: int = 0


@dataclass(frozen=True)
class Piece:
    """What one token of a run is.

    Attributes:
        name: its label: of a class token "[CLS]", of a text token its text, of a patch "row,column".
        of: the part of the input that it is; None for class, register and separator tokens, and for text.
    """

    name: str
    of: Rectangle | None = None


def patches(
    rows: int,
    columns: int,
    image: tuple[int, int],
    *,
    size: tuple[int, int] | None = None,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> tuple[Piece, ...]:
    """The tokens of an image that is cut into one grid, row after row from the upper left corner.

    Args:
        image: width and height, px.
        size: width and height of what the patches cover, px; default: the whole image.
        before: the names of the tokens before the patches.
        after: those of the tokens behind them.

    Raises:
        TraceError: patches that are no whole pixels, or reach beyond the image.
    """
    across, down = size or image
    if (
        min(rows, columns) < 1
        or not 0 < across <= image[0]
        or not 0 < down <= image[1]
        or across % columns
        or down % rows
    ):
        raise TraceError(
            "{rows} × {columns} patches do not cut {width} × {height} pixels evenly: say size, the width and the height "
            "that they cover.",
            rows=rows,
            columns=columns,
            width=image[0],
            height=image[1],
        )
    width, height = across // columns, down // rows
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    cut = [Piece(f"{r},{c}", Rectangle(c * width, r * height, width, height, r, c, image)) for r, c in cells]
    return (*map(Piece, before), *cut, *map(Piece, after))
