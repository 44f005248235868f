"""What a logit depends on in the input: against finite differences, and against what integrated gradients must sum to."""

import numpy as np
import pytest
import torch

from recipes.handmade_models import task_by_hand
from tests import tiny
from vizformer.analysis import input_attribution
from vizformer.analysis.attribution.input_gradients import CLOSE, starts
from vizformer.errors import TraceError

MODELS = {
    "post": ("encoder-decoder", {"activation": "gelu"}),
    "bart": ("encoder-decoder", tiny.BART),
    "t5": ("encoder-decoder", {**tiny.T5_1, "activation": "gelu"}),
    "llama": ("decoder-only", tiny.LLAMA),
    "geglu": ("decoder-only", tiny.GEGLU),
    "turned": ("decoder-only", tiny.ROPE),
    "bert": ("encoder-only", tiny.BERT),
    "encoder": ("encoder-only", {"activation": "gelu"}),
}


def traced(name):
    architecture, options = MODELS[name]
    checkpoint = tiny.checkpoint(architecture, **options)
    return checkpoint, checkpoint.trace("我有一只猫。", target="a cat" if architecture == "encoder-decoder" else None)


@pytest.mark.parametrize("name", MODELS)
def test_the_models_own_rows_give_its_own_logits(name):
    checkpoint, trace = traced(name)
    for position in range(len(trace.logits)):
        found = checkpoint.logits_of(trace, starts(checkpoint, trace)[0], position)
        tiny.assert_close(found[0], trace.logits[position])


@pytest.mark.parametrize("against", [None, "mean", 5])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sample(11)
def test_integrated_gradients_sum_to_the_difference_from_the_baseline(name, against):
    checkpoint, trace = traced(name)
    found = input_attribution(checkpoint, trace, 1, 9, against=against)
    logits = trace.logits[1].double()
    off = 0.0 if against is None else logits.mean() if against == "mean" else logits[against]
    assert found.value == pytest.approx(float(logits[9] - off), abs=1e-5)
    assert found.share_missing <= CLOSE
    summed = sum(each.sum() for each in found.integrated.values())
    assert summed + found.missing == pytest.approx(found.value - found.baseline)
    assert {stack: len(each) for stack, each in found.integrated.items()} == {
        stack: len(tokens) for stack, tokens in trace.tokens.items()
    }


@pytest.mark.parametrize("name", ["llama", "bart", "bert"])
def test_gradient_times_input_is_the_slope_of_making_a_row_longer(name):
    checkpoint, trace = traced(name)
    checkpoint.model.double()
    trace = checkpoint.trace("我有一只猫。", target="a cat" if name == "bart" else None)
    found = input_attribution(checkpoint, trace, 1, 9, against=None)
    rows, step = starts(checkpoint, trace)[0], 1e-5
    with torch.no_grad():
        for stack, each in rows.items():
            for i in range(each.shape[1]):
                ends = []
                for sign in (1, -1):
                    longer = {name: one.clone() for name, one in rows.items()}
                    longer[stack][0, i] *= 1 + sign * step
                    ends.append(float(checkpoint.logits_of(trace, longer, 1)[0, 9]))
                slope = (ends[0] - ends[1]) / (2 * step)
                assert found.gradient_x_input[stack][i] == pytest.approx(slope, abs=1e-6)


def test_the_integral_is_that_of_many_small_steps():
    checkpoint, trace = traced("llama")
    checkpoint.model.double()
    trace = checkpoint.trace("我有一只猫。")
    rows, origin = (one["decoder"] for one in starts(checkpoint, trace))
    steps = 500
    share = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
    at = (origin + share[:, None, None] * (rows - origin)).requires_grad_()
    values = checkpoint.logits_of(trace, {"decoder": at}, 1)[:, 9]
    (gradients,) = torch.autograd.grad(values.sum(), at)  # no step's value depends on another's rows
    total = ((rows - origin) * gradients).sum(-1).mean(0)
    found = input_attribution(checkpoint, trace, 1, 9, against=None)
    np.testing.assert_allclose(
        found.integrated["decoder"], total.numpy(), atol=CLOSE * abs(found.value - found.baseline)
    )


def test_a_decoders_later_tokens_add_nothing():
    checkpoint, trace = traced("llama")
    found = input_attribution(checkpoint, trace, 1, 9)
    assert np.abs(found.integrated["decoder"][:2]).min() > 0
    assert not found.integrated["decoder"][2:].any()
    assert not found.gradient_x_input["decoder"][2:].any()


def test_the_letter_that_is_copied_adds_most():
    checkpoint = task_by_hand("copy")
    trace = checkpoint.trace("hgfedcba>hg")
    position = len(trace.logits) - 1
    token = int(trace.logits[position].argmax())
    found = input_attribution(checkpoint, trace, position, token).integrated["decoder"]
    assert trace.tokens["decoder"][int(found.argmax())].text == "f"


def test_nothing_is_left_in_the_model_and_no_forward_is_changed():
    checkpoint, trace = traced("bert")
    with torch.inference_mode():
        input_attribution(checkpoint, trace, 1, 9)
    assert all(parameter.grad is None for parameter in checkpoint.model.parameters())
    assert torch.equal(checkpoint.trace("我有一只猫。").logits, trace.logits)


def test_what_is_not_there_is_refused():
    checkpoint, trace = traced("llama")
    with pytest.raises(TraceError, match="no position"):
        input_attribution(checkpoint, trace, 99, 9)
    with pytest.raises(TraceError, match="no token"):
        input_attribution(checkpoint, trace, 0, -2)
