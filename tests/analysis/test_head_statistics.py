"""What heads do, on maps whose tendency is known."""

import numpy as np
import pytest

from tests.bundled import load
from vizformer.analysis import HeadMaps, head_maps
from vizformer.analysis.heads.measures import head_statistics

N = 6


def maps(*patterns: np.ndarray, causal: bool = False) -> HeadMaps:
    weights = np.stack(patterns)[None]  # [1, heads, n, n]
    reasons = np.triu(np.full((N, N), 2, np.uint8), 1) if causal else np.zeros((N, N), np.uint8)
    return HeadMaps(weights, np.zeros_like(weights), reasons[None])


def shifted(by: int) -> np.ndarray:
    """Every query gives everything to the key `by` further on; at the ends, to itself."""
    pattern = np.zeros((N, N))
    for i in range(N):
        pattern[i, i + by if 0 <= i + by < N else i] = 1.0
    return pattern


FIRST, LAST = np.zeros((N, N)), np.zeros((N, N))
FIRST[:, 0], LAST[:, -1] = 1.0, 1.0
EVEN = np.full((N, N), 1 / N)


def test_habits_by_construction() -> None:
    found = head_statistics(maps(shifted(-1), np.eye(N), shifted(1), FIRST, LAST, EVEN))
    names = ["previous", "own", "next", "first", "last", None]
    assert [found.leading(0, head) for head in range(6)] == names
    for head, name in enumerate(names[:-1]):
        assert found.shares[name][0, head] == pytest.approx(1.0)
        assert found.chance[name] == pytest.approx(1 / N)
    np.testing.assert_allclose(found.effective[0], [1, 1, 1, 1, 1, N])
    assert found.visible == N


def test_under_a_causal_mask() -> None:
    even = np.tril(np.ones((N, N))) / np.arange(1, N + 1)[:, None]
    found = head_statistics(maps(shifted(-1), FIRST, even, causal=True))
    assert [found.leading(0, head) for head in range(3)] == ["previous", "first", None]
    assert np.isnan(found.shares["next"]).all()  # nobody sees it
    assert np.isnan(found.shares["last"]).all()  # the last query alone would be no tendency
    assert found.shares["previous"][0, 0] == pytest.approx(1.0)  # query 0, which has no choice, does not count
    assert found.effective[0, 2] == pytest.approx(np.arange(1, N + 1).mean())
    assert found.visible == pytest.approx(np.arange(1, N + 1).mean())


def test_in_cross_attention_positions_are_not_compared() -> None:
    found = head_statistics(maps(np.eye(N), FIRST), cross=True)
    assert found.leading(0, 0) is None
    assert found.leading(0, 1) == "first"


@pytest.mark.parametrize("causal", [False, True])
def test_one_token_has_no_habits(causal: bool) -> None:
    one = HeadMaps(np.ones((1, 2, 1, 1)), np.zeros((1, 2, 1, 1)), np.zeros((1, 1, 1), np.uint8))
    found = head_statistics(one)
    assert found.leading(0, 0) is None
    assert found.effective.tolist() == [[1.0, 1.0]]


def test_two_tokens() -> None:
    """With two keys, half is what chance gives: not a tendency."""
    pattern = np.full((2, 2), 0.5)
    found = head_statistics(HeadMaps(pattern[None, None], pattern[None, None], np.zeros((1, 2, 2), np.uint8)))
    assert found.leading(0, 0) is None


def test_the_bundled_story_teller_has_previous_token_heads() -> None:
    found = head_statistics(head_maps(load("stories").trace("Once upon a time there was a cat."), "decoder"))
    leading = {found.leading(layer, head) for layer, head in np.ndindex(*found.effective.shape)}
    assert {"previous", "first"} <= leading
    assert (found.effective >= 1 - 1e-6).all()
    assert (found.effective <= found.visible[:, None] + 1e-6).all()


def test_a_layer_with_a_window_is_measured_against_what_it_sees() -> None:
    """The same weights, on the token before: a tendency where six keys are seen, chance where two are."""
    near = np.where(np.tri(N, k=-2, dtype=bool), 3, 0) + np.triu(np.full((N, N), 2), 1)
    future = np.triu(np.full((N, N), 2), 1)
    half = np.eye(N) / 2 + np.eye(N, k=-1) / 2
    half[0, 0] = 1.0
    weights = np.stack([half, half])[:, None]  # [2, 1, n, n]
    found = head_statistics(HeadMaps(weights, np.zeros_like(weights), np.stack([future, near]).astype(np.uint8)))
    assert found.visible.tolist() == pytest.approx([3.5, 11 / 6])
    assert found.chance["previous"].tolist() == pytest.approx([np.mean(1 / np.arange(2, N + 1)), 0.5])
    assert found.leading(0, 0) == "previous"
    assert found.leading(1, 0) is None
    assert np.isnan(found.shares["first"][1, 0])  # one query sees it and another key: no tendency
    assert found.shares["first"][0, 0] == pytest.approx(0.5 / (N - 1))
