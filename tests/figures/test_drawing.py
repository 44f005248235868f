"""The drawing of a model: its boxes, what flows between them, and the numbers that it is told by."""

import csv
import io

import pytest

from tests.bundled import load
from vizformer import figures
from vizformer.analysis.costs.model_boxes import Box
from vizformer.figures import files, tables
from vizformer.figures.figure import Figure
from vizformer.web.lessons.map import drawing
from vizformer.web.link.model_ref import ModelRef


def boxes_of(name: str) -> list[Box]:
    return list(drawing.boxes(ModelRef("bundled", name), 7, 5 if name == "zh-en" else 0))


def drawn(name: str, boxes: list[Box]) -> Figure:
    columns = drawing.columns(boxes, load(name).model.config)
    return figures.model_drawing(columns, {box.key: box.parameters for box in boxes}, parameters_title="parameters")


def test_the_parameters_of_the_boxes_stand_in_a_column_of_that_name() -> None:
    boxes = boxes_of("zh-en")
    rows = list(csv.DictReader(io.StringIO(files.table(drawn("zh-en", boxes)))))
    assert [int(row["parameters"]) for row in rows] == [box.parameters for box in boxes]


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["zh-en", "stories", "cloze"])
def test_every_box_of_a_model_is_drawn_and_they_do_not_overlap(name: str) -> None:
    boxes = boxes_of(name)
    figure = drawn(name, boxes)
    assert figure.plotly  # every property is one of Plotly's
    shapes = figure.parts[1]["shapes"]
    places = [(s["x0"], s["x1"], s["y0"], s["y1"]) for s in shapes if s["type"] == "rect" and "fillcolor" in s]
    assert len(places) == len(boxes)
    for at, (left, right, bottom, top) in enumerate(places):
        assert left < right
        assert bottom < top
        others = places[:at]
        assert all(r <= left or right <= x or t <= bottom or top <= b for x, r, b, t in others)
    svg = files.as_file(figure, "svg", caption="a model").decode()
    for box in boxes:
        assert drawing.title(box, load(name).model.config).replace("&", "&amp;") in svg
        if not box.inside:
            assert drawing.shape(box.output) in svg
    notes = figure.parts[1]["annotations"]
    outside = [n["text"] for n in notes if not any(r > n["x"] > x and t > n["y"] > b for x, r, b, t in places)]
    columns = drawing.columns(boxes, load(name).model.config)
    assert sorted(outside) == sorted(one for column in columns for one in (column["title"], column["frame"]) if one)
    for number, column in enumerate(columns):  # it stands above the middle of its boxes
        (title,) = (n for n in notes if n["text"] == column["title"])
        own = [place for place in places if number < place[0] < number + 1]
        assert title["x"] == pytest.approx((min(p[0] for p in own) + max(p[1] for p in own)) / 2)
        assert title["y"] < min(p[2] for p in own)  # (the axis runs downwards)
    tops = {(s["x0"], s["y0"]) for s in shapes if s["type"] == "line" and s["x0"] == s["x1"]}
    for x, y in tops:  # what leaves a box, or boxes side by side in one, leaves it in the middle
        if own := [place for place in places if place[3] == y]:
            around = (min(left for left, *_ in own), max(right for _, right, *_ in own))
            assert any(x == pytest.approx((left + right) / 2) for left, right, *_ in [*own, around])
    frames = [s for s in shapes if s["type"] == "rect" and "fillcolor" not in s]
    assert len(frames) == (2 if name == "zh-en" else 1)


def test_it_is_told_by_the_parameters_of_its_boxes() -> None:
    boxes = boxes_of("stories")
    told = tables.table(drawn("stories", boxes))
    assert told.columns == ("row", "parameters") or told.columns[-1] == "parameters"
    assert {row[-1] for row in told.rows} == {box.parameters for box in boxes}
    assert "Add & LayerNorm" in files.table(drawn("cloze", boxes_of("cloze")))
    with pytest.raises(ValueError, match="without a box"):
        figures.model_drawing([], {}, parameters_title="")
