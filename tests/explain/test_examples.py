"""Attention small enough for paper, against torch's own and against the digits worked out by hand."""

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.explain import examples


@pytest.mark.parametrize("scaled", [True, False])
def test_against_torch(scaled: bool) -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    found = examples.paper_attention(q, k, v, scaled=scaled)
    assert found.divisor == (2.0 if scaled else 1.0)
    scores = torch.from_numpy(q) @ torch.from_numpy(k).T / found.divisor
    np.testing.assert_allclose(found.scores, scores.numpy(), atol=1e-12)
    np.testing.assert_allclose(found.weights, torch.softmax(scores, -1).numpy(), atol=1e-12)
    fused = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(a)[None, None] for a in (q, k, v)), scale=1 / found.divisor
    )
    np.testing.assert_allclose(found.output, fused[0, 0].numpy(), atol=1e-12)


def test_two_rows() -> None:
    """Identity projections, d_k = 3: scores 2 and 1 over the root of 3."""
    found = examples.paper_attention(examples.TWO_ROWS, examples.TWO_ROWS, examples.TWO_ROWS)
    np.testing.assert_allclose(found.scores, np.array([[2, 1], [1, 2]]) / 3**0.5)
    assert found.weights.round(2).tolist() == [[0.64, 0.36], [0.36, 0.64]]


def test_one_query_and_four_keys() -> None:
    found = examples.paper_attention(examples.QUERY, examples.KEYS, examples.VALUES)
    assert found.weights.round(3).tolist() == [[0.335, 0.165, 0.335, 0.165]]
    np.testing.assert_allclose(found.output, [[0.335 * 4 + 0.165 * 6]], atol=2e-3)
    # What is often printed does not sum to 1, and so is no softmax.
    np.testing.assert_allclose(examples.PRINTED_SUM, 1.2)
    np.testing.assert_allclose(examples.PRINTED_WEIGHTS_GIVE, 0.5 * 1 + 0.1 * 2 + 0.5 * 3 + 0.1 * 4)
    assert abs(examples.PRINTED_WEIGHTS_GIVE - examples.PRINTED_OUTPUT) > 0.1


def test_without_weights_the_scores_are_symmetric() -> None:
    found = examples.attention_without_weights(np.random.default_rng(1).normal(size=(4, 3)))
    np.testing.assert_allclose(found.scores, found.scores.T)
    assert found.divisor == 1.0
    assert examples.attention_without_weights(np.eye(3), scaled=True).divisor == pytest.approx(3**0.5)


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_first_layer_of_a_model_with_and_without_its_matrices(stack: str) -> None:
    trace = tiny.checkpoint("encoder-decoder").trace("我有一只猫。", target="I have a cat.")
    x = trace.residual(f"{stack}.0.pre").double()
    found = examples.first_layer_attention(trace, stack, identity=True)
    np.testing.assert_allclose(found.weights, torch.softmax(x @ x.T / x.shape[1] ** 0.5, -1).numpy(), atol=1e-12)
    record = trace[f"{stack}.0.self"]
    learned = examples.first_layer_attention(trace, stack, identity=False)
    np.testing.assert_allclose(learned.scores, record.scores(0).numpy(), atol=1e-5)  # float32, and no mask
    plain = examples.first_layer_attention(trace, stack, identity=False, scaled=False)
    np.testing.assert_allclose(plain.scores, learned.scores * record.q.shape[-1] ** 0.5)


def test_large_scores_do_not_overflow() -> None:
    found = examples.paper_attention(np.array([[1e3]]), np.array([[1.0], [-1.0]]), np.eye(2))
    assert found.weights.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("scaled", [True, False])
def test_the_first_layers_input_and_its_first_head(scaled: bool) -> None:
    checkpoint = tiny.checkpoint("encoder-only")
    trace = checkpoint.trace(ids=[1, 5, 6, 2])
    x = trace.residual("encoder.0.pre").double().numpy()
    plain = examples.first_layer_attention(trace, "encoder", identity=True, scaled=scaled)
    np.testing.assert_array_equal(plain.q, x)
    np.testing.assert_array_equal(plain.output, examples.attention_without_weights(x, scaled=scaled).output)
    found = examples.first_layer_attention(trace, "encoder", identity=False, scaled=scaled)
    if scaled:  # without masks, this is what the model itself computes
        np.testing.assert_allclose(found.weights, trace["encoder.0.self"].pattern(0).numpy(), atol=1e-5)
        np.testing.assert_allclose(found.output, trace["encoder.0.self"].z(0).numpy(), atol=1e-5)
    else:
        assert found.divisor == 1.0
