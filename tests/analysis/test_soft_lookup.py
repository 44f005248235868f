"""The soft look-up, against torch and against the model's own z."""

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.analysis.scores import soft_lookup
from vizformer.errors import TraceError
from vizformer.explain.arrays import softmax
from vizformer.model import Cell, Edit

KINDS = [
    ("encoder-decoder", {}),
    ("decoder-only", tiny.LLAMA),
    ("encoder-only", tiny.BERT),
    ("decoder-only", tiny.ALIBI),
    ("encoder-only", tiny.T5),
]


def test_the_notes_against_torch() -> None:
    keys, values, query = soft_lookup.RECIPE_KEYS, soft_lookup.RECIPE_VALUES, soft_lookup.RECIPE_QUERY
    K, V, q = (torch.from_numpy(array) for array in (keys, values, query))
    found = soft_lookup.look_up_query(query, keys, values, temperature=2.0)
    weights = torch.softmax(K @ q / 2.0, dim=0)
    np.testing.assert_allclose(found.weights, weights.numpy(), atol=1e-14)
    np.testing.assert_allclose(found.soft, (weights @ V).numpy(), atol=1e-12)
    assert found.best == int((K @ q).argmax())
    np.testing.assert_array_equal(found.hard, soft_lookup.RECIPE_VALUES[found.best])


def test_cold_is_hard_and_hot_is_the_mean() -> None:
    scores = soft_lookup.RECIPE_KEYS @ soft_lookup.RECIPE_QUERY
    cold = soft_lookup.look_up(scores, soft_lookup.RECIPE_VALUES, temperature=0.01)
    np.testing.assert_allclose(cold.soft, cold.hard, atol=1e-12)
    hot = soft_lookup.look_up(scores, soft_lookup.RECIPE_VALUES, temperature=1e6)
    np.testing.assert_allclose(hot.soft, soft_lookup.RECIPE_VALUES.mean(0), atol=1e-3)
    assert hot.best == cold.best


def test_blocked_rows_bring_nothing() -> None:
    values = np.array([[1.0], [2.0], [4.0]])
    found = soft_lookup.look_up(np.array([-np.inf, 0.0, 0.0]), values)
    assert found.weights.tolist() == [0.0, 0.5, 0.5]
    assert found.soft.tolist() == [3.0]
    assert soft_lookup.look_up(np.full(3, -np.inf), values).soft.tolist() == [0.0]


def test_the_leading_rows_stand_in_the_order_of_the_table() -> None:
    found = soft_lookup.look_up(np.array([1.0, 2.0, 0.0, 3.0]), np.zeros((4, 1)))
    assert found.leading(2) == [1, 3]
    assert found.leading(4) == found.leading(9) == [0, 1, 2, 3]
    assert found.left_by([1, 3]) == pytest.approx(found.weights[0] + found.weights[2])
    assert found.left_by([0, 1, 2, 3]) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_impossible_temperatures(temperature: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        soft_lookup.look_up(np.zeros(2), np.zeros((2, 1)), temperature=temperature)


def test_an_empty_table() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        soft_lookup.look_up(np.zeros(0), np.zeros((0, 1)))


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_every_head_looks_up_what_the_model_brings_back(architecture: str, options: dict[str, object]) -> None:
    checkpoint = tiny.checkpoint(architecture, **options)
    trace = checkpoint.trace("我有一只猫。", target="a cat" if architecture == "encoder-decoder" else None)
    for site in trace.sites:
        record = trace[site]
        for head in range(record.n_heads):
            found = soft_lookup.head_look_up(trace, site, head, 1)
            assert found.proof is not None
            assert found.proof.holds
            np.testing.assert_allclose(found.found.weights, record.pattern(head)[1].numpy(), atol=1e-6)
            np.testing.assert_allclose(
                found.dots, (record.q[head, 1] @ record.k[record.kv_head(head)].T).numpy(), atol=1e-4
            )


def test_another_temperature_is_not_the_models() -> None:
    trace = tiny.checkpoint("encoder-only").trace("我有一只猫。")
    own, cold = (soft_lookup.head_look_up(trace, "encoder.0.self", 1, 2, temperature=t) for t in (1.0, 0.5))
    assert cold.proof is None
    np.testing.assert_allclose(cold.found.weights, softmax(own.found.scores * 2), atol=1e-14)


def test_an_edit_is_looked_up_too() -> None:
    edit = Edit((Cell("encoder.0.self.mask", (0, 2), -float("inf")), Cell("encoder.0.self.q", (1, 0, 0), 3.0)))
    trace = tiny.checkpoint("encoder-only").trace("我有一只猫。", edit=edit)
    found = soft_lookup.head_look_up(trace, "encoder.0.self", 1, 0)
    assert found.found.weights[2] == 0.0
    assert found.proof is not None
    assert found.proof.holds


def test_places_that_are_not_there() -> None:
    trace = tiny.checkpoint("encoder-only").trace("猫")
    with pytest.raises(TraceError, match="no position 99"):
        soft_lookup.head_look_up(trace, "encoder.0.self", 0, 99)
    with pytest.raises(TraceError, match="no head 9"):
        soft_lookup.head_look_up(trace, "encoder.0.self", 9, 0)
