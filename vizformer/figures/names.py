"""Where names stand beside points, so that they overlap least, and which names are left out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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


def sides(places: NDArray[np.floating], tokens: Sequence[str], kinds: Sequence[int], chosen: int) -> list[str | None]:
    """The side of its point on which each name is placed: one after the other, where it overlaps names and points least.

    None: on every side the name would make another one hard to read.

    `kinds`: the order in which names are placed; points of kind 2 have none.
    """
    span = np.maximum(np.ptp(places, axis=0), 1e-6)
    pixels = (places - places.min(0)) / span * (_WIDE, -_HIGH)  # downwards, as on a screen
    boxes = [np.array([x - 5, y - 5, x + 5, y + 5]) for x, y in pixels]  # the points themselves
    names: list[NDArray[np.floating]] = []
    found: list[str | None] = [None] * len(tokens)
    for i in sorted(range(len(tokens)), key=lambda i: (i != chosen, kinds[i])):
        if kinds[i] == 2:
            continue
        width = sum(15.0 if ord(character) > 0x2E7F else 8.5 for character in tokens[i])
        best: tuple[float, str, NDArray[np.floating]] | None = None
        for side, (dx, dy) in _SIDES.items():
            x, y = pixels[i] + (dx * (width / 2 + 8), dy * (16 if dx == 0 else 12))
            box = np.array([x - width / 2, y - 9, x + width / 2, y + 9])
            if sum(_overlap(box, other) for other in names) > _HIDDEN * width * 18:
                continue
            covered = sum(_overlap(box, other) for other in (*boxes, *names))
            if best is None or covered < best[0]:
                best = covered, side, box
        if best is not None:
            found[i] = best[1]
            names.append(best[2])
    return found


def _overlap(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return float(max(width, 0.0) * max(height, 0.0))
