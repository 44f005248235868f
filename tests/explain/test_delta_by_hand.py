"""Two tokens by hand: both rules of a state as the model computes them, and linear attention beside it."""

import numpy as np
import pytest
import torch

from vizformer.explain.mixers_by_hand import VALUES, two_steps, two_writes
from vizformer.model.state_rule import StateGates, apply_state_rule, effective_map


@pytest.mark.parametrize(("degrees", "beta", "keep"), [(0, 1.0, 1.0), (30, 0.5, 0.8), (90, 1.0, 0.3), (180, 0.2, 1.0)])
def test_what_is_read_is_what_the_model_s_rule_reads(degrees: int, beta: float, keep: float) -> None:
    found = two_writes(degrees, beta, keep)
    k, v = (torch.from_numpy(of)[None, None] for of in (found.keys, found.values))
    gates = torch.full((1, 1, 2), beta).double(), torch.full((1, 1, 2), np.log(keep)).double()
    __, state = apply_state_rule(k, k, v, *gates)
    np.testing.assert_allclose(found.writes[1].state, state[0, 0].numpy(), atol=1e-12)
    np.testing.assert_allclose(found.read, (k @ state)[0, 0].numpy(), atol=1e-12)
    np.testing.assert_allclose(found.sums[1], found.keys.T @ found.values, atol=1e-12)


@pytest.mark.parametrize(
    ("degrees", "step", "rate", "skip"), [(0, 1.0, 0.0, 0.0), (60, 0.5, 0.5, 1.0), (180, 2.0, 2.0, -0.5)]
)
def test_a_state_space_is_that_of_the_model_both_ways(degrees: int, step: float, rate: float, skip: float) -> None:
    found = two_steps(degrees, step, rate, skip)
    k, v, dt = (torch.from_numpy(of)[None, None] for of in (found.keys, VALUES, found.steps))
    own = torch.tensor([skip]).double()
    o, state = apply_state_rule(k, k, v, dt, -rate * dt, skip=own)
    np.testing.assert_allclose(found.states[1], state[0, 0].numpy(), atol=1e-12)
    np.testing.assert_allclose(found.read, o[0, 0].numpy(), atol=1e-12)
    np.testing.assert_allclose(found.map @ VALUES, found.read, atol=1e-12)
    M = effective_map(k[0], k[0], StateGates(dt[0], -rate * dt[0], skip=own))
    np.testing.assert_allclose(found.map, M[0].numpy(), atol=1e-12)


def test_the_same_key_holds_the_second_value_and_the_sum_holds_both() -> None:
    found = two_writes(0, 1.0, 1.0)
    np.testing.assert_allclose(found.read, [found.values[1]] * 2)
    np.testing.assert_allclose(found.read_sum, [found.values.sum(0)] * 2)


def test_keys_at_right_angles_do_not_disturb_each_other() -> None:
    found = two_writes(90, 1.0, 1.0)
    np.testing.assert_array_equal(found.read, found.values)
    np.testing.assert_array_equal(found.read_sum, found.values)
