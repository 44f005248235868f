"""The pictures of the head report hold what was passed."""

import numpy as np
import pytest

from vizformer import figures
from vizformer.figures.head_report import MOST_MARKED, Measure
from vizformer.figures.svg import svg
from vizformer.figures.svg.map_marks import filled


def test_a_number_of_every_head() -> None:
    values = np.array([[0.1, np.nan, 3.0], [2.0, 0.5, 1.0]])
    figure = figures.measure_of_heads(values, measure="a<b")
    heatmap = figure.data[0]
    assert np.array_equal(heatmap.z, values.astype(np.float32), equal_nan=True)
    assert heatmap.colorbar.title.text == "a&lt;b"
    assert list(figure.layout.yaxis.ticktext) == ["L0", "L1"]
    assert list(figure.layout.xaxis.ticktext) == ["H0", "H1", "H2"]
    with pytest.raises(ValueError, match="must be"):
        figures.measure_of_heads(np.zeros(3), measure="")


@pytest.mark.parametrize(
    ("largest", "read"), [(3.0, "3.00"), (0.29, "0.29"), (0.0029, "0.0029"), (2.9e-9, "2.9e-09"), (0.0, "0.00")]
)
def test_numbers_in_cells_show_at_least_two_digits_of_the_largest(largest: float, read: str) -> None:
    values = np.array([[largest, largest / 5]])
    for figure in (figures.measure_of_heads(values, measure="KL"), figures.matrix_heatmap(values)):
        assert filled(figure.data[0].texttemplate, largest, "") == read


def test_only_nothing_reads_as_0_in_a_cell() -> None:
    values = np.array([[0.5, 1e-6, 0.0], [np.nan, -3e-4, 0.02]])
    for figure in (figures.measure_of_heads(values, measure="KL"), figures.matrix_heatmap(values)):
        cells = figure.data[0]
        assert [filled(cells.texttemplate, 0.0, text) for text in cells.text[0]] == ["0.50", "1e-06", "0.00"]
        assert list(cells.text[1]) == ["", "-3e-04", "0.02"]
        assert "1e-06" in svg(figure)


def test_marked_cells_have_squares() -> None:
    pattern = np.array([[1.0, 0.0], [0.3, 0.7]])
    figure = figures.marked_map(pattern, ["a", "b"], ["a", "b"], np.array([[True, False], [True, False]]))
    squares = {(round((s.y0 + s.y1) / 2), round((s.x0 + s.x1) / 2)) for s in figure.layout.shapes}
    assert squares == {(0, 0), (1, 0)}
    with pytest.raises(ValueError, match="do not fit"):
        figures.marked_map(pattern, ["a", "b"], ["a", "b"], np.ones((1, 2), bool))


def test_of_very_many_marks_the_strongest_are_drawn() -> None:
    n = 30
    pattern = np.linspace(0, 1, n * n).reshape(n, n)
    names = [str(i) for i in range(n)]
    figure = figures.marked_map(pattern, names, names, np.ones((n, n), bool))
    assert len(figure.layout.shapes) == MOST_MARKED
    assert min(shape.y0 for shape in figure.layout.shapes) > 15


def test_eigenvalues_are_points_of_the_plane() -> None:
    values = np.array([1 + 2j, -3 + 0j])
    figure = figures.eigenvalue_plane(values)
    points = figure.data[0]
    assert list(points.x) == [1, -3]
    assert list(points.y) == [2, 0]
    assert figure.layout.xaxis.range[1] == -figure.layout.xaxis.range[0] >= 3


def test_heads_are_points_and_a_head_without_a_number_is_not_drawn() -> None:
    up = Measure("a<b", np.array([[0.1, np.nan, 0.3], [0.2, 0.5, 1.0]]), share=True)
    across = Measure("layer", np.array([[0, 0, 0], [1, 1, 1]]))
    colour = Measure("effect", np.array([[-2.0, 0.0, 1.0], [np.nan, 0.5, 0.25]]), signed=True)
    figure = figures.head_scatter(across, up, colour, chosen=(1, 2))
    points, ring = figure.data
    assert np.array_equal(points.y, up.values.astype(np.float32).ravel(), equal_nan=True)
    assert points.customdata[5] == "layer 1, head 2. layer: 1; a&lt;b: 100.0%; effect: 0.25"
    assert points.customdata[3].endswith("effect: –")
    assert (points.marker.cmin, points.marker.cmax) == (-2, 2)
    assert (ring.x[0], ring.y[0]) == (1, 1)
    assert figure.layout.yaxis.tickformat == ".0%"
    drawn = svg(figure)
    assert "effect" in drawn
    assert "#808080" in drawn  # the head without a colour
    assert "#7a3803" in drawn.lower()  # and that at the lower end
    alone = figures.head_scatter(*(Measure("one", np.array([[0.5]])),) * 3, chosen=(0, 0))
    assert len(alone.data) == 2
    nothing = figures.head_scatter(*(Measure("none", np.full((1, 1), np.nan)),) * 3, chosen=(0, 0))
    assert len(nothing.data) == 1
    assert drawn.count("<circle") - svg(nothing).count("<circle") == 6  # five heads and the ring
    with pytest.raises(ValueError, match="do not fit"):
        figures.head_scatter(across, up, Measure("other", np.zeros((1, 2))))


def test_the_largest_weights_are_shares_of_the_queries() -> None:
    figure = figures.weight_histogram(np.array([0, 1, 0, 3]))
    assert figure.data[0].y.tolist() == [0, 0.25, 0, 0.75]
    assert figure.data[0].x.tolist() == [0.125, 0.375, 0.625, 0.875]
    assert list(figure.data[0].customdata[3]) == ["0.75", "1.00", "3"]
    assert figures.weight_histogram(np.zeros(4, int)).data[0].y.tolist() == [0] * 4
