"""Slices and parts of heads, who shares what, and how scores spread."""

import numpy as np
import plotly.graph_objects as go
import pytest

from vizformer import figures
from vizformer.figures import files, tables
from vizformer.figures.style import QUALITATIVE


def bands(figure: go.Figure) -> list[tuple[float, float, str]]:
    """(start, end, colour) of every filled band, row by row."""
    return [(s.x0, s.x1, s.fillcolor) for s in figure.layout.shapes if s.fillcolor]


def test_strips_hold_the_vectors_and_bands_their_heads() -> None:
    rng = np.random.default_rng(0)
    x, q, k = rng.normal(size=8), rng.normal(size=8), rng.normal(size=4)
    figure = figures.head_slices([x, q, k], ["x <b>", "q", "k"], [0, 4, 2])
    for trace, row in zip(figure.data, (x, q, k), strict=True):
        np.testing.assert_array_equal(trace.customdata[0], row.astype(np.float32))
        assert np.abs(trace.z).max() == pytest.approx(1.0)  # each on its own scale
        assert np.array_equal(np.sign(trace.z[0]), np.sign(row.astype(np.float32)))
        assert len(trace.y) == 2  # the edges of one row
    assert figure.layout.yaxis.ticktext == ("x &lt;b&gt;", "q", "k")
    assert list(figure.data[1].text[0]) == [f"head {h}" for h in (0, 0, 1, 1, 2, 2, 3, 3)]
    found = bands(figure)
    assert [(a, b) for a, b, __ in found] == [(i * 2 - 0.5, i * 2 + 1.5) for i in range(4)] + [(-0.5, 1.5), (1.5, 3.5)]
    # A shared key/value head has the colour of the first query head that reads it.
    assert [colour for *__, colour in found] == [*QUALITATIVE[:4], QUALITATIVE[0], QUALITATIVE[2]]


def test_strips_are_told_with_their_own_numbers_not_those_of_the_colours() -> None:
    x, q = np.array([1.0, -3.0, 0.5, 2.0]), np.array([0.25, 50.0])
    figure = figures.head_slices([x, q], ["x", "q"], [0, 2])
    rows = [row.split(",") for row in files.as_file(figure, "csv").decode("utf-8-sig").splitlines()[1:]]
    assert [(row[1], row[4], float(row[5])) for row in rows] == [
        *((str(at), "x", value) for at, value in enumerate(x)),
        *((str(at), "q", value) for at, value in enumerate(q)),
    ]
    told = tables.table(figure)
    assert told.total == 6
    assert "q, column 1, head 1: 50.0000" in {row[-1] for row in told.rows}


def test_the_chosen_heads_slice_is_framed_also_where_it_is_shared() -> None:
    figure = figures.head_slices([np.ones(8), np.ones(4)], ["q", "k"], [4, 2], chosen=3)
    frames = [(s.x0, s.x1) for s in figure.layout.shapes if not s.fillcolor]
    assert frames == [(5.5, 7.5), (1.5, 3.5)]


def test_rows_that_cannot_be_cut() -> None:
    with pytest.raises(ValueError, match="cannot be cut"):
        figures.head_slices([np.ones(7)], ["q"], [2])
    with pytest.raises(ValueError, match="do not fit"):
        figures.head_slices([np.ones(7)], ["q", "k"], [0])
    with pytest.raises(ValueError, match="0 rows, 0 names"):
        figures.head_slices([], [], [])


def test_parts_and_their_sum_share_a_scale() -> None:
    parts = np.array([[1.0, -2.0, 0.5], [0.5, 5.0, 0.0]])
    figure = figures.head_parts(np.vstack([parts, parts.sum(0)]), ["head 0", "<i>", "sum"])
    (heatmap,) = figure.data
    np.testing.assert_allclose(heatmap.z[-1], heatmap.z[:-1].sum(0))
    assert (heatmap.zmin, heatmap.zmax) == (-5, 5)
    assert figure.layout.yaxis.ticktext == ("head 0", "&lt;i&gt;", "sum")
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    (line,) = figure.layout.shapes
    assert (line.y0, line.y1) == (1.5, 1.5)  # between the parts and their sum
    with pytest.raises(ValueError, match="do not fit"):
        figures.head_parts(parts, ["one"])


@pytest.mark.parametrize(("heads", "groups"), [(8, 8), (8, 2), (8, 1), (6, 3), (1, 1)])
def test_every_query_head_is_joined_to_the_one_it_reads(heads: int, groups: int) -> None:
    figure = figures.shared_heads(heads, groups, chosen=0)
    *lines, queries, keys = figure.data
    assert len(lines) == heads
    assert len(queries.x) == heads
    assert len(keys.x) == groups
    assert set(queries.y) == {figure.layout.yaxis.tickvals[1]}  # a row has its name beside it
    assert set(keys.y) == {figure.layout.yaxis.tickvals[0]}
    each = heads // groups
    for head, line in enumerate(lines):
        assert line.x[0] == queries.x[head]
        assert line.x[1] == keys.x[head // each]
        assert queries.marker.color[head] == keys.marker.color[head // each]
    # A shared head stands under the middle of those that read it.
    np.testing.assert_allclose(keys.x, np.arange(heads).reshape(groups, each).mean(1))
    assert keys.hovertext[0] == f"key/value head 0: read by query heads {', '.join(map(str, range(each)))}"
    assert lines[0].line.width > lines[-1].line.width or heads == 1


def test_heads_that_cannot_be_shared() -> None:
    with pytest.raises(ValueError, match="evenly"):
        figures.shared_heads(8, 3)


def test_variances_before_and_after() -> None:
    figure = figures.variance_growth([1, 4, 16], np.array([1.1, 3.9, 16.5]), at=4)
    line, measured, divided = figure.data
    assert line.y.tolist() == [1, 4, 16]
    np.testing.assert_allclose(measured.y, [1.1, 3.9, 16.5], rtol=1e-6)
    np.testing.assert_allclose(divided.y, np.array([1.1, 3.9, 16.5]) / [1, 4, 16], rtol=1e-6)
    assert measured.marker.size.argmax() == 1
    assert figure.layout.shapes[0].x0 == pytest.approx(4)
    with pytest.raises(ValueError, match="do not fit"):
        figures.variance_growth([1], np.ones(2), at=1)


def test_saturation_and_its_marks() -> None:
    x = np.array([0.125, 1.0, 32.0])
    figure = figures.saturation_curves(x, x / 40, 1 - x / 40, marks=[("a <b>", 8.0), ("far", 1e6)])
    assert [curve.y.tolist() for curve in figure.data] == [
        pytest.approx((x / 40).tolist(), abs=1e-6),
        pytest.approx((1 - x / 40).tolist(), abs=1e-6),
    ]
    assert [shape.x0 for shape in figure.layout.shapes] == [pytest.approx(8.0), pytest.approx(32.0)]  # held inside
    assert all(
        (shape.yref, shape.y0, shape.y1) == ("y domain", 0, 1) for shape in figure.layout.shapes
    )  # the whole height
    assert figure.layout.annotations[0].text == "a &lt;b&gt;"
    with pytest.raises(ValueError, match="do not fit"):
        figures.saturation_curves(x, x, x[:2])
