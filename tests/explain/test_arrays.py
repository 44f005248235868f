"""The arithmetic that all steps share."""

import numpy as np
import torch

from vizformer.explain.arrays import softmax


def test_softmax_of_a_blocked_row_is_zero_and_otherwise_the_usual_one() -> None:
    scores = np.array([[1.0, -2.0, 3.0], [-np.inf] * 3, [800.0, -np.inf, 799.0], [-800.0, -801.0, -np.inf]])
    found = softmax(scores)
    assert found[1].tolist() == [0, 0, 0]
    rows = [0, 2, 3]
    np.testing.assert_allclose(found[rows], torch.softmax(torch.from_numpy(scores[rows]), dim=-1).numpy())
    np.testing.assert_array_equal(softmax(np.stack([scores, scores]))[1], found)


def test_softmax_hides_no_nan() -> None:
    found = softmax(np.array([[0.0, np.nan, 1.0], [0.0, 1.0, 2.0]]))
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1]).all()
