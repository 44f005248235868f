"""A short convolution step by step: against plain float64 loops, its own code, and proofs that fail."""

from functools import cache

import numpy as np
import pytest
import torch

from tests import tiny
from tests.eager_transformer import Eager
from tests.explain import variants
from tests.explain.running import one_by_one
from vizformer.checkpoints import Checkpoint
from vizformer.explain import attention_steps, layer_steps, snippet
from vizformer.model import Cell, Edit, Trace

SITE = "decoder.0.self"
VARIANTS = {
    "plain": tiny.SHORT,
    "biases": {**tiny.SHORT, "state_bias": True, "state_layers": (0, 1), "state_kernel": 5},
    "post": {**tiny.SHORT, "norm_order": "post", "state_kernel": 2},
    "one tap": {**tiny.SHORT, "state_kernel": 1, "state_bias": True},
}


@cache
def example(variant: str = "plain") -> tuple[Checkpoint, Trace, Eager]:
    return variants.traced("decoder-only", VARIANTS[variant])


def taps(variant: str) -> int:
    return int(example(variant)[1][SITE].n_heads)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_number_is_the_one_of_the_plain_forward(variant: str) -> None:
    checkpoint, trace, eager = example(variant)
    call = eager.calls[SITE]
    layer = {step.key: step.result for step in layer_steps(checkpoint, trace, "decoder.0")}
    expected = {"z": torch.stack(call.z), "convolved": sum(call.z), "out": call.attn_out, "add": call.added}
    for key, numbers in expected.items():
        np.testing.assert_allclose(layer[f"self.{key}"], numbers.numpy(), rtol=1e-5, atol=1e-5, err_msg=key)
    for tap in range(taps(variant)):
        for query in (0, 1, 5):
            steps = {step.key: step.result for step in attention_steps(checkpoint, trace, SITE, tap, query)}
            of_tap = {
                "z": call.z[tap][query],
                "head_out": call.head_out[tap][query],
                "attn_out": call.attn_out[query],
                "add": call.added[query],
            }
            for key, numbers in of_tap.items():
                np.testing.assert_allclose(steps[key], numbers.numpy(), rtol=1e-5, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_code_runs_and_every_proof_holds(variant: str) -> None:
    checkpoint, trace, _ = example(variant)
    walks = [layer_steps(checkpoint, trace, "decoder.0")]
    walks += [attention_steps(checkpoint, trace, SITE, tap, query) for tap in range(taps(variant)) for query in (0, -1)]
    for steps in walks:
        for step, scope in one_by_one(steps):
            found = scope[step.variable].double().numpy()
            assert found.shape == step.result.shape, step.key
            np.testing.assert_allclose(found, step.result, rtol=1e-5, atol=1e-5, err_msg=step.key)
            assert step.proof.holds, (step.key, step.proof)
            assert len(step.axes) == step.result.ndim
            if step.contraction is not None:
                np.testing.assert_allclose(step.contraction.total().reshape(step.result.shape), step.result, atol=1e-12)
            assert not set("{}") & set(f"{step.title}{step.text}{step.proof.anchor}")
        assert all(snippet(steps, index).code for index in range(len(steps)))


def test_the_steps_in_their_order_and_which_are_compared_themselves() -> None:
    checkpoint, trace, _ = example()
    layer = [step.key.removeprefix("self.") for step in layer_steps(checkpoint, trace, "decoder.0")]
    own = ["packed", "gated", "v", "map", "z", "convolved", "concat", "channel", "out", "add"]
    assert layer[: layer.index("add") + 1] == ["input", "norm", *own]
    steps = attention_steps(checkpoint, trace, SITE, 1, 3)
    assert [step.key for step in steps] == ["input", "gated", "v", "map", "z", "opened", "head_out", "attn_out", "add"]
    assert {step.key for step in steps if step.proof.direct} == {"v", "map", "z", "add"}


@pytest.mark.parametrize("variant", ["plain", "one tap"])
def test_the_map_of_one_number_gives_what_the_layer_has_read(variant: str) -> None:
    """|M v - o| / |o| at most 1e-6, o as the model has read it; signed, and as narrow as the filter."""
    checkpoint, trace, _ = example(variant)
    steps = {step.key: step for step in layer_steps(checkpoint, trace, "decoder.0")}
    layer, M = checkpoint.model.decoder.layers[0].self_attention, steps["self.channel"].result
    v, q = steps["self.packed"].result[:, 32], steps["self.packed"].result[:, 0]
    own = sum(trace[SITE].read(tap)[:, 0].double().numpy() for tap in range(layer.n_heads))
    bias = 0.0 if layer.filter_bias is None else float(layer.filter_bias[0])
    assert np.linalg.norm(M @ v + q * bias - own) / np.linalg.norm(own) < 1e-6
    assert M.min() < 0
    assert not np.triu(M, 1).any()
    assert not np.tril(M, -layer.n_heads).any()


@pytest.mark.parametrize("name", ["W_Q", "W_K", "W_V", "filters", "filter_bias", "W_O"])
def test_another_number_in_the_layer_is_caught(name: str) -> None:
    checkpoint = tiny.checkpoint("decoder-only", **VARIANTS["biases"])
    trace = checkpoint.trace(variants.TEXT)
    part = getattr(checkpoint.model.decoder.layers[0].self_attention, name)
    with torch.no_grad():
        getattr(part, "matrix", part).get_parameter("weight").mul_(1.01) if name.startswith("W") else part.mul_(1.01)
    assert not all(step.proof.holds for step in layer_steps(checkpoint, trace, "decoder.0"))
    assert not all(step.proof.holds for step in attention_steps(checkpoint, trace, SITE, 0, 3))


@pytest.mark.parametrize(("letter", "marked"), [("q", "map"), ("k", "map"), ("v", "v")])
def test_numbers_set_by_hand_are_marked_and_followed(letter: str, marked: str) -> None:
    checkpoint, *_ = example()
    edit = Edit((Cell(f"{SITE}.{letter}", (1, 3, 0), 2.0),))
    trace = checkpoint.trace(variants.TEXT, edit=edit)
    for steps in (attention_steps(checkpoint, trace, SITE, 1, 3), layer_steps(checkpoint, trace, "decoder.0")):
        assert [step.key.removeprefix("self.") for step in steps if step.edited] == [marked]
        assert all(step.proof.holds for step in steps)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_is_proved_and_errors_are_caught(dtype: torch.dtype) -> None:
    checkpoint = tiny.checkpoint("decoder-only", **VARIANTS["biases"])
    checkpoint.model.to(dtype)
    checkpoint.model.materialise_buffers()
    trace = checkpoint.trace(variants.TEXT)
    walks = [layer_steps(checkpoint, trace, "decoder.0"), attention_steps(checkpoint, trace, SITE, 0, 3)]
    assert not [(step.key, step.proof) for steps in walks for step in steps if not step.proof.holds]
    weight = checkpoint.model.decoder.layers[0].self_attention.W_V.weight
    with torch.no_grad():
        weight.mul_(1.2)
    assert not all(step.proof.holds for step in layer_steps(checkpoint, trace, "decoder.0"))
