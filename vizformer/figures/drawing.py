"""The drawing of a model as a picture for paper: boxes in columns, the data flowing downwards, as the component has it."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import MASKED_LINE, QUALITATIVE, fill, safe

ROW = 58  # px
_BOX, _INSIDE, _GAP, _MARGIN = 0.62, 0.4, 0.38, 0.26  # of a row; what is inside a box, what is between, around a layer
_LEFT, _RIGHT, _FRAME, _ASIDE = 0.16, 0.84, 0.06, 0.045  # of a column
_HEAD = (0.006, 0.1)  # half of an arrow's head, of all columns and of a row
_COLOURS = {
    "attention": QUALITATIVE[4],
    "feedforward": QUALITATIVE[0],
    "norm": QUALITATIVE[6],
    "table": QUALITATIVE[2],
    "plain": QUALITATIVE[7],
}


def model_drawing(
    columns: Sequence[Mapping[str, Any]], parameters: Mapping[str, int], *, parameters_title: str, title: str = ""
) -> Figure:
    """Draws the boxes of a model and what flows between them.

    `columns`: the stacks, each with `title`, `frame` and `boxes` (see `components.architecture.Box`).
    """
    boxes = [box for column in columns for box in column["boxes"]]
    if not boxes:
        raise ValueError("a model without a box cannot be drawn")
    drawn = _Drawing(len(columns))
    for number, column in enumerate(columns):
        drawn.column(number, column)
    for number, column in enumerate(columns):
        drawn.lines(number, column["boxes"])
    figure = Figure()
    frame(figure, title, height=int(ROW * (drawn.top + 0.6)) + 60)
    figure.update_layout(shapes=drawn.shapes, annotations=drawn.notes)
    figure.update_xaxes(visible=False, range=[-0.02, len(columns) + 0.02])
    figure.update_yaxes(visible=False, range=[drawn.top, -0.6])
    names = [safe(f"{column['title']} · {box['title']}") for column in columns for box in column["boxes"]]
    numbers = [parameters[box["key"]] for box in boxes]
    hover = fill("%{y}: {value}", value="%{x:,}")
    rows = list(range(len(names)))
    figure.told_by = Figure().add_bar(x=numbers, y=rows, orientation="h", hovertemplate=hover)
    figure.told_by.update_xaxes(title=safe(parameters_title))
    figure.told_by.update_yaxes(tickvals=rows, ticktext=names)
    return figure


class _Drawing:
    """Shapes and texts, and the place of every box: left, right, bottom, top."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.shapes: list[dict[str, Any]] = []
        self.notes: list[dict[str, Any]] = []
        self.places: dict[str, tuple[float, float, float, float]] = {}
        self.top = 0.0

    def column(self, number: int, column: Mapping[str, Any]) -> None:
        left, right, y = number + _LEFT, number + _RIGHT, 0.0
        framed: list[float] = []
        chain = [box for box in column["boxes"] if not box["inside"]]
        for box in chain:
            inside = [other for other in column["boxes"] if other["inside"] == box["key"]]
            if box["framed"] and not framed:
                y += _MARGIN
                framed.append(y - 0.5 * _GAP - 0.1)
            elif framed and not box["framed"] and len(framed) == 1:
                framed.append(y - 0.1)
                y += _MARGIN
            height = _BOX + (_INSIDE + 0.06 if inside else 0.0)
            self._box(box, left, right, y, y + _BOX)
            for at, other in enumerate(inside):
                begin, end = (left + (right - left + 0.01) * (at + step) / len(inside) for step in (0, 1))
                self._box(other, begin, end - 0.01, y + height - _INSIDE, y + height, small=True)
            self.places[box["key"]] = (left, right, y, y + height)
            y += height + _GAP
        if len(framed) == 1:
            framed.append(y - 0.1)
        if framed:
            self._rectangle(left - _FRAME, right + _FRAME, framed[0], framed[1], MASKED_LINE, 1, None)
            side = (right + _FRAME, "right", -4) if number == 0 else (left - _FRAME, "left", 4)  # where no line passes
            self._note(side[0], framed[0] + 0.12, column["frame"], 11, xanchor=side[1], xshift=side[2])
        self._note(number + 0.5, -0.35, column["title"], 14)
        self.top = max(self.top, y)

    def lines(self, number: int, boxes: Sequence[Mapping[str, Any]]) -> None:
        chain = [box for box in boxes if not box["inside"]]
        outer = -1 if number == 0 else 1  # the side of a line past boxes: between the columns there is the encoder's
        for before, box in zip([None, *chain], chain, strict=False):
            left, right, bottom, top = self.places[box["key"]]
            middle, centre = (left + right) / 2, (bottom + top) / 2
            if box.get("fed_by"):
                self._past(self.places[box["fed_by"]], (left, right, centre), -outer, MASKED_LINE)
            elif before is not None:
                self._line(middle, self.places[before["key"]][3], middle, bottom, MASKED_LINE)
                self._head(middle, bottom, 0, MASKED_LINE)
            if box["skip"]:
                self._past(self.places[box["skip"]], (left, right, centre), outer, QUALITATIVE[0])
            if box["source"]:
                other = self.places[box["source"]]
                start, between = (other[0] + other[1]) / 2, (other[1] + left) / 2
                self._way([(start, other[3]), (start, other[3] + 0.2), (between, other[3] + 0.2), (between, centre)])
                self._line(between, centre, left, centre, MASKED_LINE)
                self._head(left, centre, 1, MASKED_LINE)

    def _past(self, start: tuple[float, ...], end: tuple[float, float, float], side: int, colour: str) -> None:
        """A line from below one box to the side of another."""
        middle, y, edge = (start[0] + start[1]) / 2, start[3] + 0.1, end[0] if side < 0 else end[1]
        aside = edge + side * _ASIDE
        self._way([(middle, start[3]), (middle, y), (aside, y), (aside, end[2]), (edge, end[2])], colour)
        self._head(edge, end[2], -side, colour)

    def _way(self, points: Sequence[tuple[float, float]], colour: str = MASKED_LINE) -> None:
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            self._line(x0, y0, x1, y1, colour)

    def _line(self, x0: float, y0: float, x1: float, y1: float, colour: str) -> None:
        line = {"color": colour, "width": 1.5}
        self.shapes.append({"type": "line", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": line})

    def _head(self, x: float, y: float, across: int, colour: str) -> None:
        """The head of an arrow that arrives going down (0), to the right (1) or to the left (-1)."""
        wide, high = _HEAD[0] * self.columns, _HEAD[1]
        for sign in (-1, 1):
            back = (x - across * 1.4 * wide, y + sign * 0.6 * high) if across else (x + sign * wide, y - high)
            self._line(*back, x, y, colour)

    def _box(
        self, box: Mapping[str, Any], left: float, right: float, bottom: float, top: float, *, small: bool = False
    ) -> None:
        colour = _COLOURS[box["kind"]]
        self.places[box["key"]] = (left, right, bottom, top)
        shade = "rgba({}, {}, {}, 0.18)".format(*(int(colour[at : at + 2], 16) for at in (1, 3, 5)))
        self._rectangle(left, right, bottom, top, colour, 1.5, shade)
        middle, numbers = (left + right) / 2, " · ".join(filter(None, (box["shape"], box["count"])))
        if small:
            self._note(middle, (bottom + top) / 2, box["title"], 10)
            return
        self._note(middle, bottom + 0.32 * (top - bottom), box["title"], 13)
        self._note(middle, bottom + 0.73 * (top - bottom), numbers, 11)

    def _rectangle(
        self, x0: float, x1: float, y0: float, y1: float, colour: str, width: float, shade: str | None
    ) -> None:
        line = {"color": colour, "width": width}
        shape = {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": line}
        self.shapes.append(shape if shade is None else {**shape, "fillcolor": shade})

    def _note(self, x: float, y: float, text: str, size: int, **more: Any) -> None:
        self.notes.append({"x": x, "y": y, "text": safe(text), "showarrow": False, "font": {"size": size}, **more})
