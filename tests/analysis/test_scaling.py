"""The experiment behind the division, and a head with and without it."""

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.analysis.scores import score_scaling
from vizformer.explain.arrays import softmax
from vizformer.model import Edit


def test_the_variance_is_the_width() -> None:
    found = score_scaling.variances(0)
    assert found.shape == (len(score_scaling.WIDTHS),)
    # The variance of n samples of a variable of kurtosis k varies by (k - 1) / n; the product's is 9 at d = 1.
    np.testing.assert_allclose(found, score_scaling.WIDTHS, rtol=5 * np.sqrt(8 / score_scaling.PAIRS))
    assert (score_scaling.variances(0) == found).all()
    assert (score_scaling.variances(1) != found).all()


def test_the_components_are_independent() -> None:
    """Otherwise the variance would grow with the square of the width; and the widest sums are those of all products."""
    dots = score_scaling.dot_products(3, pairs=500)
    differences = np.diff(dots, axis=1)
    correlation = np.corrcoef(dots[:, -2], differences[:, -1])[0, 1]
    assert abs(correlation) < 0.2
    assert abs(dots.mean(0) / np.sqrt(score_scaling.WIDTHS)).max() < 0.2


def test_the_slope_is_the_trace_of_softmaxs_jacobian() -> None:
    scores = torch.tensor([0.3, -1.0, 2.0, 0.5], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda s: torch.softmax(s, 0), scores)
    assert score_scaling.slope(softmax(scores.numpy())) == pytest.approx(float(torch.trace(jacobian)))
    assert score_scaling.slope(np.full(10, 0.1)) == pytest.approx(0.9)
    assert score_scaling.slope(np.eye(3)).tolist() == [0.0, 0.0, 0.0]


def test_spread_scores_saturate() -> None:
    found = score_scaling.saturation(0)
    assert (np.diff(found.largest) > 0).all()
    assert (np.diff(found.slopes) < 0).all()
    assert found.slopes[0] > 0.88  # nearly all keys alike: 1 - 1 / KEYS
    assert found.slopes[-1] < 1e-4
    largest, slope = found.at(score_scaling.DEVIATIONS[7])
    assert (largest, slope) == (pytest.approx(found.largest[7]), pytest.approx(found.slopes[7]))


@pytest.mark.parametrize(
    ("architecture", "options"), [("encoder-only", {}), ("decoder-only", tiny.LLAMA), ("decoder-only", tiny.ALIBI)]
)
def test_a_head_with_and_without_the_division(architecture: str, options: dict[str, object]) -> None:
    checkpoint = tiny.checkpoint(architecture, **options)
    trace = checkpoint.trace("我有一只猫。")
    site = trace.sites[0]
    found = score_scaling.score_scale(trace, site, 1)
    assert found.divisor == pytest.approx(checkpoint.model.config.d_head**0.5)
    assert found.dots == pytest.approx(found.scores * found.divisor)
    np.testing.assert_allclose(found.largest, trace[site].pattern(1).max(-1).values.numpy(), atol=1e-6)
    np.testing.assert_allclose(found.slope, score_scaling.slope(trace[site].pattern(1).double().numpy()), atol=1e-5)
    assert found.means(divided=True) == (found.scores, found.largest.mean(), found.slope.mean())
    assert found.means(divided=False) == (found.dots, found.largest_undivided.mean(), found.slope_undivided.mean())
    # Forgotten by the model itself, through an edit:
    edited = checkpoint.trace("我有一只猫。", edit=Edit(unscaled=frozenset({site})))
    np.testing.assert_allclose(found.largest_undivided, edited[site].pattern(1).max(-1).values.numpy(), atol=1e-6)
    # and what the lesson says of the division does not depend on what an edit does to it
    assert score_scaling.score_scale(edited, site, 1).divisor == found.divisor
    np.testing.assert_allclose(score_scaling.score_scale(edited, site, 1).largest, found.largest, atol=1e-6)
