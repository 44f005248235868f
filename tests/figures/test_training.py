"""The pictures of a training, on the figure object."""

import numpy as np
import pytest

from vizformer import figures

STEPS = np.array([1, 10, 100])


def test_loss_and_accuracy_with_a_line_at_the_step() -> None:
    kept = np.array([0, 10, 100])
    figure = figures.training_curves(
        STEPS, np.array([3.0, 2.0, 1.0]), kept, np.array([3.1, 2.1, 1.1]), np.array([0.0, 0.5, 1.0]), at=10, last=1000
    )
    loss, held_out, accuracy = figure.data
    assert loss.x.tolist() == pytest.approx(np.log10(1 + STEPS).tolist())
    assert loss.y.dtype == np.float32
    assert loss.customdata.tolist() == STEPS.tolist()  # the hover says steps, not logarithms
    assert (held_out.yaxis, accuracy.yaxis) == (None, "y2") or (held_out.yaxis, accuracy.yaxis) == ("y", "y2")
    assert len({loss.line.dash, held_out.line.dash, accuracy.line.dash}) == 3  # not by colour alone
    (line,) = figure.layout.shapes
    assert line.x0 == line.x1 == pytest.approx(np.log10(11))
    assert figure.layout.xaxis.range[1] > 3
    assert figure.layout.xaxis.ticktext == ("0", "1", "3", "10", "30", "100", "300", "1000")
    with pytest.raises(ValueError, match="do not fit"):
        figures.training_curves(STEPS, np.ones(2), kept, np.ones(3), np.ones(3), at=0, last=10)


def test_the_curves_of_another_training_are_drawn_beside_it() -> None:
    kept, zeros = np.array([0, 10, 100]), np.zeros(3)
    other = (np.array([0, 50]), np.array([3.0, 2.5]), np.array([0.0, 0.25]))
    figure = figures.training_curves(STEPS, zeros, kept, zeros, zeros, at=0, last=100, beside=other)
    assert len(figure.data) == 5
    losses, accuracies = figure.data[3:]
    assert (losses.y.tolist(), accuracies.y.tolist()) == ([3.0, 2.5], [0.0, 0.25])
    assert losses.customdata.tolist() == accuracies.customdata.tolist() == [0, 50]
    assert accuracies.yaxis == "y2"
    assert losses.line.dash == accuracies.line.dash == "dashdot"
    assert losses.line.dash not in {curve.line.dash for curve in figure.data[:3]}
    empty = tuple(part[:0] for part in other)
    assert len(figures.training_curves(STEPS, zeros, kept, zeros, zeros, at=0, last=100, beside=empty).data) == 3
    with pytest.raises(ValueError, match="beside: 2 steps, 1 losses"):
        figures.training_curves(
            STEPS, zeros, kept, zeros, zeros, at=0, last=100, beside=(other[0], other[1][:1], other[2])
        )


def test_a_curve_for_every_head() -> None:
    scores = np.random.default_rng(0).random((3, 2, 4))
    figure = figures.score_curves(STEPS, scores, at=1, last=100)
    assert [curve.name for curve in figure.data][:5] == ["L0 H0", "L0 H1", "L0 H2", "L0 H3", "L1 H0"]
    assert figure.data[6].y.tolist() == pytest.approx(scores[:, 1, 2].tolist())
    assert len({(curve.line.color, curve.line.dash) for curve in figure.data}) == 8
    with pytest.raises(ValueError, match="steps, layers, heads"):
        figures.score_curves(STEPS, scores[0], at=1, last=100)


def test_the_right_answer_is_framed() -> None:
    probabilities = np.array([[0.7, 0.1], [0.2, 0.1], [0.1, 0.8]])
    figure = figures.answer_map(probabilities, ["a", "b", "</s>"], ["b", "</s>"])
    (heatmap,) = figure.data[:1]
    assert (heatmap.zmin, heatmap.zmax) == (0, 1)
    assert [(shape.x0, shape.y0) for shape in figure.layout.shapes] == [(-0.5, 0.5), (0.5, 1.5)]
    assert figure.layout.yaxis.ticktext == ("a", "b", "&lt;/s&gt;")
    with pytest.raises(ValueError, match="do not fit 2 symbols"):
        figures.answer_map(probabilities, ["a", "b"], ["b", "a"])


def test_position_maps_can_share_a_scale() -> None:
    figure = figures.positional_heatmap(np.ones((3, 4)), end=5.0)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-5, 5)
