"""One map on a canvas: what is sent to the browser, and what does not fit."""

import numpy as np
import pytest

from vizformer.components import attention
from vizformer.components.heatmap import ENGLISH, Heatmap, _data, _payload

WEIGHTS = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])


def test_numbers_and_marks_go_as_they_are() -> None:
    scores = np.array([[1.5, -2.0, 0.0], [0.0, 3.25, 1.0]])
    reasons = np.array([[0, 0, 2], [0, 0, 0]])
    given = Heatmap(WEIGHTS, ["a", "b"], ["x", "x", "y"], scores, reasons, [0, 2], [(1, 2)], "<b>")
    payload = _payload(given)
    np.testing.assert_array_equal(payload.columns["weights"], WEIGHTS.astype(np.float32).ravel())
    np.testing.assert_array_equal(payload.columns["scores"], scores.astype(np.float32).ravel())
    np.testing.assert_array_equal(payload.columns["reasons"], reasons.ravel())
    data = _data(given, payload)
    assert (data["view"], data["rings"], data["squares"], data["title"]) == ("scores", [0, 2], [[1, 2]], "<b>")
    assert data["key_tokens"] == ["x", "x", "y"]
    assert _data(Heatmap(WEIGHTS, ["a", "b"], ["x", "x", "y"]), payload)["view"] == "weights"


@pytest.mark.parametrize(
    ("numbers", "rings", "said"),
    [(WEIGHTS, [0], "1 rings"), (WEIGHTS.T, None, "lengths"), (WEIGHTS - 0.5, None, "softmax")],
)
def test_what_does_not_fit_is_refused(numbers, rings, said) -> None:
    with pytest.raises(ValueError, match=said):
        _data(given := Heatmap(numbers, ["a", "b"], ["x", "y", "z"], rings=rings), _payload(given))


def test_a_text_that_both_maps_say_is_written_once() -> None:
    shared = ENGLISH.keys() & attention.ENGLISH.keys()
    assert len(shared) > 15
    assert all(ENGLISH[name] is attention.ENGLISH[name] for name in shared)
