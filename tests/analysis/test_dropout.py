"""Dropout: the loss of a text while it is on."""

import pytest
import torch

from tests import tiny
from vizformer.analysis.training import gradient


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder-only"])
def test_the_loss_differs_from_pass_to_pass_and_without_dropout_it_is_the_models(architecture: str) -> None:
    checkpoint = tiny.checkpoint(architecture)
    trace = checkpoint.trace("I have a cat.")
    rows, right = [0, 1, 2], [4, 5, 6]
    own = torch.nn.functional.cross_entropy(trace.logits[rows].double(), torch.tensor(right))
    still = gradient.training_losses(checkpoint.model, trace, rows, right, 0.0, seed=0, runs=2)
    assert still == pytest.approx([float(own)] * 2, rel=1e-4)
    state = torch.get_rng_state()
    found = gradient.training_losses(checkpoint.model, trace, rows, right, 0.5, seed=0, runs=3)
    assert len(set(found.tolist())) == 3
    assert torch.equal(state, torch.get_rng_state())
    assert not checkpoint.model.training
