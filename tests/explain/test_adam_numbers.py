"""Adam on one weight, against torch.optim.Adam."""

import pytest
import torch

from vizformer.explain.loss_parts import adam, adam_proof

GRADIENTS = (0.2, -0.1, 3.0, 0.0, -0.004)
RATES = (0.01, 0.02, 0.03, 0.02, 0.01)


def test_the_weights_are_those_of_pytorch() -> None:
    w = torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64))
    optimizer = torch.optim.Adam([w], betas=(0.9, 0.98), eps=1e-9)
    found = adam(0.5, GRADIENTS, RATES)
    for one, g, rate in zip(found, GRADIENTS, RATES, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        w.grad = torch.tensor(g, dtype=torch.float64)
        optimizer.step()
        state = optimizer.state[w]
        assert one.weight == pytest.approx(float(w.detach()), abs=1e-12)
        assert one.m == pytest.approx(float(state["exp_avg"]), abs=1e-12)
        assert one.v == pytest.approx(float(state["exp_avg_sq"]), abs=1e-12)
    proof = adam_proof(0.5, GRADIENTS, RATES)
    assert proof.holds
    assert proof.difference < 1e-12


def test_the_first_step_is_the_learning_rate_whatever_the_gradient() -> None:
    for gradient in (1e-4, 0.2, 50.0):
        assert adam(0.5, [gradient], [0.01])[0].change == pytest.approx(-0.01, rel=1e-4)
    uncorrected = adam(0.5, [0.2], [0.01], corrected=False)[0]
    assert uncorrected.change == pytest.approx(-0.01 * 0.1 / 0.02**0.5, rel=1e-4)


def test_gradients_that_turn_round_hardly_move_a_weight() -> None:
    along, turning = adam(0.5, [0.2] * 20, [0.01] * 20), adam(0.5, [0.2, -0.2] * 10, [0.01] * 20)
    assert abs(along[-1].weight - 0.5) > 10 * abs(turning[-1].weight - 0.5)
