"""Two tokens that are moved on together: their scores against whole texts that begin later."""

import numpy as np
import pytest
import torch

from vizformer.analysis.positions import moved_scores, small_model
from vizformer.model import Trace

QUERY, KEY, FILLER, DISTANCE, FURTHEST = 5, 9, 2, 3, 20


@pytest.mark.parametrize("scheme", ["none", "sinusoidal", "learned", "rope", "alibi", "relative"])
def test_the_score_is_that_of_a_text_with_other_tokens_around(scheme) -> None:
    model = small_model(scheme, 16, causal=True)
    found = moved_scores(model, QUERY, KEY, DISTANCE, FURTHEST)
    for moved in (0, 1, 7, FURTHEST):
        ids = [FILLER] * moved + [KEY] + [FILLER] * (DISTANCE - 1) + [QUERY]
        trace = Trace()
        with torch.inference_mode():
            model.decode(torch.tensor([ids]), trace=trace)
        record = trace["decoder.0.self"]
        expected = [float(record.scores(head)[-1, moved]) for head in range(record.n_heads)]
        np.testing.assert_allclose(found[:, moved], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("scheme", "stays"),
    [("none", True), ("rope", True), ("alibi", True), ("relative", True), ("sinusoidal", False), ("learned", False)],
)
def test_only_rows_added_to_the_input_change_the_score_of_a_pair_that_moves(scheme, stays) -> None:
    found = moved_scores(small_model(scheme, 16, causal=True), QUERY, KEY, DISTANCE, FURTHEST)
    spread = np.ptp(found, axis=1)
    assert (spread < 1e-4).all() if stays else (spread > 0.1).all()
