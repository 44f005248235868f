"""A head that gives most of its attention to one token rests there."""

import numpy as np
import pytest

from tests.bundled import load
from vizformer.analysis.heads.measures import RESTS, find_rest, resting_head
from vizformer.model.masks import Reason


def causal(n: int) -> np.ndarray:
    return np.triu(np.full((n, n), Reason.FUTURE, dtype=np.uint8), 1)


def test_a_head_with_one_bright_column_rests_there() -> None:
    weights = np.full((6, 6), 0.04)
    weights[:, 2] = 0.8
    found = find_rest(weights, np.zeros((6, 6), np.uint8))
    assert found is not None
    assert (found.key, found.share) == (2, pytest.approx(0.8))


def test_even_weights_a_diagonal_and_two_columns_are_no_rest() -> None:
    free = np.zeros((6, 6), np.uint8)
    for weights in (np.full((6, 6), 1 / 6), np.eye(6), np.tile([0.5, 0.5, 0, 0, 0, 0], (6, 1))):
        assert find_rest(weights, free) is None


def test_rows_that_have_no_choice_do_not_count() -> None:
    first = np.tril(np.ones((2, 2))) / np.array([[1], [2]])
    assert find_rest(first, causal(2)) is None
    even = np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None]
    assert find_rest(even, causal(6)) is None  # token 0 gets most, as every row sees it


@pytest.mark.parametrize(("layer", "head", "key"), [(0, 1, "<2en>"), (2, 2, "</s>"), (1, 0, None)])
def test_of_the_translator_it_is_the_share_of_its_map(layer: int, head: int, key: str | None) -> None:
    trace = load("zh-en").trace("我有一只猫。")
    found = resting_head(trace, f"encoder.{layer}.self", head)
    if key is None:
        assert found is None
        return
    assert found is not None
    assert trace.tokens["encoder"][found.key].text == key
    assert found.share > RESTS
    assert found.share == pytest.approx(
        float(trace[f"encoder.{layer}.self"].pattern(head)[:, found.key].mean()), abs=1e-6
    )
