"""The loss number by number, against PyTorch's own and its derivative."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests import tiny
from vizformer.analysis import hide
from vizformer.errors import TraceError
from vizformer.explain.loss_parts import SHOWN, asked_rows, loss_numbers, losses
from vizformer.model import Trace

TEXT = "I have a cat."


def asked_of(architecture: str) -> tuple:  # type: ignore[type-arg]
    """A tiny model, a forward of it, and the rows that are asked."""
    options = tiny.BERT if architecture == "encoder-only" else {}
    checkpoint = tiny.checkpoint(architecture, **options)
    trace, hidden = checkpoint.trace(TEXT), ()
    if architecture == "encoder-only":
        hidden = trace.tokens["encoder"]
        trace = hide(checkpoint, hidden, [1, 3])
    return checkpoint, trace, asked_rows(checkpoint, trace, hidden), hidden


def test_a_decoder_is_asked_for_the_next_token_and_a_translators_text_ends() -> None:
    checkpoint, trace, asked, _ = asked_of("decoder-only")
    ids = [token.id for token in trace.tokens["decoder"]]
    assert [one.row for one in asked] == list(range(len(ids) - 1))
    assert [one.right.id for one in asked] == ids[1:]
    checkpoint, trace, asked, _ = asked_of("encoder-decoder")
    ids = [token.id for token in trace.tokens["decoder"]]
    assert [one.right.id for one in asked] == [*ids[1:], checkpoint.model.config.eos_id]
    assert [one.read.id for one in asked] == ids


def test_an_encoder_is_asked_for_what_is_hidden() -> None:
    checkpoint, _, asked, tokens = asked_of("encoder-only")
    assert [one.row for one in asked] == [1, 3]
    assert [one.right.id for one in asked] == [tokens[1].id, tokens[3].id]
    assert {one.read.id for one in asked} == {checkpoint.model.config.mask_id}


@pytest.mark.parametrize("architecture", tiny.STACKS)
def test_the_losses_are_pytorchs(architecture: str) -> None:
    _, trace, asked, _ = asked_of(architecture)
    found = losses(trace, asked)
    logits, right = trace.logits[[one.row for one in asked]].double(), torch.tensor([one.right.id for one in asked])
    np.testing.assert_allclose(found.losses, F.cross_entropy(logits, right, reduction="none").numpy(), atol=1e-9)
    assert found.proof.holds
    assert found.mean == pytest.approx(float(F.cross_entropy(logits, right)))
    assert found.perplexity == pytest.approx(math.exp(found.total / len(asked)))
    np.testing.assert_allclose(found.probabilities, [p[y] for p, y in zip(logits.softmax(-1), right, strict=True)])
    padded = torch.cat([logits, torch.zeros(3, logits.shape[1], dtype=torch.float64)])
    labels = torch.cat([right, torch.full((3,), -100)])
    assert found.mean == pytest.approx(float(F.cross_entropy(padded, labels, ignore_index=-100)))
    assert found.padded_mean(3) == pytest.approx(found.total / (len(asked) + 3))


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("architecture", tiny.STACKS)
@pytest.mark.sample(3)
def test_the_smoothed_loss_and_its_gradient_are_pytorchs(architecture: str, eps: float) -> None:
    checkpoint, trace, asked, _ = asked_of(architecture)
    for one in asked:
        found = loss_numbers(checkpoint, trace, one, eps)
        z = trace.logits[one.row].detach().clone().double().requires_grad_()
        own = F.cross_entropy(z[None], torch.tensor([one.right.id]), label_smoothing=eps)
        own.backward()  # type: ignore[no-untyped-call]
        assert z.grad is not None
        ids = [token.id for token in found.tokens]
        assert found.smoothed == pytest.approx(float(own.detach()), abs=1e-9)
        np.testing.assert_allclose(found.gradient, z.grad[ids].numpy(), atol=1e-9)
        others = [i for i in range(len(z)) if i not in ids]
        assert found.rest_gradient == pytest.approx(float(z.grad[others].sum()), abs=1e-9)
        assert found.proof.holds
        assert found.tokens[found.right].id == one.right.id
        likely = z.detach().topk(min(SHOWN, len(z))).indices.tolist()
        assert ids == likely + ([] if one.right.id in likely else [one.right.id])
        assert found.vocabulary == len(z)
        assert found.target.sum() + found.rest_target == pytest.approx(1)
        assert found.smoothed == pytest.approx((1 - eps) * found.loss + eps * found.mean_surprise)
        assert found.smoothed >= found.floor - 1e-12


def test_the_floor_is_reached_where_the_model_says_the_target() -> None:
    checkpoint, trace, asked, _ = asked_of("decoder-only")
    before = loss_numbers(checkpoint, trace, asked[0], 0.1)
    target = torch.full((before.vocabulary,), 0.1 / before.vocabulary)
    target[asked[0].right.id] += 0.9
    logits = trace.logits.clone()
    logits[0] = target.log()
    made = Trace()
    made.record_logits(logits[None], None)
    found = loss_numbers(checkpoint, made, asked[0], 0.1)
    assert found.smoothed == pytest.approx(found.floor, abs=1e-6)
    np.testing.assert_allclose(found.gradient, 0, atol=1e-6)


def test_what_cannot_be_asked_is_refused() -> None:
    checkpoint, trace, asked, _ = asked_of("decoder-only")
    with pytest.raises(TraceError, match="one token only"):
        losses(trace, ())
    with pytest.raises(ValueError, match=r"eps = 1"):
        loss_numbers(checkpoint, trace, asked[0], 1.0)
