"""Dropout: what it leaves of a row, and what a model answers while it is on."""

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.analysis.training import dropout


def test_what_is_kept_is_scaled_so_that_the_mean_stays() -> None:
    row = np.random.default_rng(0).normal(3, 1, 100_000)
    found = dropout.drop(row, 0.3, seed=1)
    assert found.kept.mean() == pytest.approx(0.7, abs=0.01)
    np.testing.assert_allclose(found.result[found.kept], row[found.kept] / 0.7)
    assert not found.result[~found.kept].any()
    assert found.mean_after == pytest.approx(found.mean_before, abs=0.05)
    np.testing.assert_array_equal(dropout.drop(row, 0.0, seed=1).result, row)
    with pytest.raises(ValueError, match=r"p = 1\.0"):
        dropout.drop(row, 1.0, 0)


@pytest.mark.parametrize("architecture", tiny.STACKS)
def test_with_dropout_the_answers_differ_and_without_they_are_the_models(architecture: str) -> None:
    checkpoint = tiny.checkpoint(architecture)
    trace = checkpoint.trace("I have a cat.")
    still = dropout.training_answers(checkpoint, trace, 0.0, seed=0)
    assert still.training == pytest.approx([still.probability] * dropout.RUNS, rel=1e-3)
    assert still.agree == dropout.RUNS
    own = torch.softmax(trace.logits.double(), -1)
    assert still.probability == pytest.approx(float(own.amax(-1).min()))
    assert int(own[still.position].argmax()) == still.token
    state = torch.get_rng_state()
    found = dropout.training_answers(checkpoint, trace, 0.5, seed=0)
    assert len(set(found.training.tolist())) == dropout.RUNS
    assert found.training.tolist() == dropout.training_answers(checkpoint, trace, 0.5, seed=0).training.tolist()
    assert torch.equal(state, torch.get_rng_state())
    assert not checkpoint.model.training
    again = checkpoint.trace("I have a cat.").logits
    torch.testing.assert_close(again, trace.logits)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder-only"])
def test_the_loss_differs_from_pass_to_pass_and_without_dropout_it_is_the_models(architecture: str) -> None:
    checkpoint = tiny.checkpoint(architecture)
    trace = checkpoint.trace("I have a cat.")
    rows, right = [0, 1, 2], [4, 5, 6]
    own = torch.nn.functional.cross_entropy(trace.logits[rows].double(), torch.tensor(right))
    still = dropout.training_losses(checkpoint.model, trace, rows, right, 0.0, seed=0)
    assert still == pytest.approx([float(own)] * dropout.RUNS, rel=1e-4)
    state = torch.get_rng_state()
    found = dropout.training_losses(checkpoint.model, trace, rows, right, 0.5, seed=0, runs=3)
    assert len(set(found.tolist())) == 3
    assert torch.equal(state, torch.get_rng_state())
    assert not checkpoint.model.training
