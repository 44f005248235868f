"""The least loss that there can be with label smoothing."""

import pytest
import torch

from vizformer.training.loss import smoothing_floor


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.3])
def test_the_floor_is_what_a_model_gets_that_says_the_target(eps: float) -> None:
    target = torch.full((50,), eps / 50, dtype=torch.float64)
    target[7] += 1 - eps
    own = torch.nn.functional.cross_entropy(target.log()[None].clamp(min=-1e9), torch.tensor([7]), label_smoothing=eps)
    assert smoothing_floor(50, eps) == pytest.approx(float(own), abs=1e-9)
