"""The gated delta rule and the state space step by step: against plain float64 loops, its own code, and proofs that fail."""

from functools import cache

import numpy as np
import pytest
import torch

from tests import tiny
from tests.eager_transformer import Eager
from tests.explain import variants
from tests.explain.running import one_by_one
from vizformer.checkpoints import Checkpoint
from vizformer.explain import Step, attention_steps, layer_steps, snippet
from vizformer.model import Cell, Edit, Trace

SITE, HEAD, QUERY = "decoder.0.self", 4, 3
STATE = ["kept", "held", "u", "S", "o", "map"]
RULE = ["packed", "convolved", "mixed", "v", "q", "k", "beta", "left", *STATE]
VARIANTS = {
    "hybrid": tiny.HYBRID,
    "two-layers": {**tiny.HYBRID, "state_layers": (0, 1), "state_key_heads": None, "state_value_heads": None},
    "post": {**tiny.HYBRID, "norm_order": "post", "state_kernel": 2},
    "space": tiny.MAMBA2,
    "space-beside-attention": {**tiny.HYBRID, "state_rule": "space", "attention_gate": False, "state_bias": True},
    "limited": {**tiny.MAMBA2, "state_bias": True, "state_step_least": 0.3, "state_step_most": 0.9, "state_kernel": 2},
}


@cache
def example(variant: str = "hybrid") -> tuple[Checkpoint, Trace, Eager]:
    return variants.traced("decoder-only", VARIANTS[variant])


def head_steps(variant: str, head: int, query: int) -> dict[str, Step]:
    checkpoint, trace, _ = example(variant)
    return {step.key: step for step in attention_steps(checkpoint, trace, SITE, head, query)}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_number_is_the_one_of_the_plain_forward(variant: str) -> None:
    checkpoint, trace, eager = example(variant)
    call, last = eager.calls[SITE], len(trace.residual("decoder.0.pre")) - 1
    layer = {step.key: step.result for step in layer_steps(checkpoint, trace, "decoder.0")}
    z = torch.stack(call.z).numpy()
    expected = {"z": z, "o": z[:, last], "out": call.attn_out.numpy(), "add": call.added.numpy()}
    for key, numbers in expected.items():
        np.testing.assert_allclose(layer[f"self.{key}"], numbers, rtol=1e-5, atol=1e-5, err_msg=key)
    for head, query in ((0, 0), (2, 2), (len(z) - 1, last)):
        steps = head_steps(variant, head, query)
        of_head = {
            "o": z[head, query],
            "z": z[head, query],
            "head_out": call.head_out[head][query],
            "attn_out": call.attn_out[query],
            "add": call.added[query],
        }
        for key, numbers in of_head.items():
            np.testing.assert_allclose(steps[key].result, numbers, rtol=1e-5, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_code_runs_and_every_proof_holds(variant: str) -> None:
    checkpoint, trace, _ = example(variant)
    walks = [layer_steps(checkpoint, trace, "decoder.0")]
    walks += [attention_steps(checkpoint, trace, SITE, head, query) for head, query in ((0, 0), (1, 5), (3, -1))]
    for steps in walks:
        for step, scope in one_by_one(steps):
            for made in step.also:
                np.testing.assert_allclose(scope[made.variable].numpy(), made.tensor.value, rtol=1e-5, atol=1e-5)
            found = scope[step.variable].double().numpy()
            assert found.shape == step.result.shape, step.key
            np.testing.assert_allclose(found, step.result, rtol=1e-5, atol=1e-5, err_msg=step.key)
            assert step.proof.holds, (step.key, step.proof)
            assert len(step.axes) == step.result.ndim
            if step.contraction is not None:
                np.testing.assert_allclose(step.contraction.total().reshape(step.result.shape), step.result, atol=1e-12)
            assert not set("{}") & set(f"{step.title}{step.text}{step.proof.anchor}")
        assert all(snippet(steps, index).code for index in range(len(steps)))


@pytest.mark.parametrize("variant", ["hybrid", "space"])
def test_the_steps_in_their_order_and_which_are_compared_themselves(variant: str) -> None:
    checkpoint, trace, _ = example(variant)
    rule = [key for key in RULE if variant == "hybrid" or key != "held"]  # a state space corrects nothing
    layer = [step.key.removeprefix("self.") for step in layer_steps(checkpoint, trace, "decoder.0")]
    assert layer[: layer.index("add") + 1] == ["input", "norm", *rule, "z", "concat", "out", "add"]
    steps = head_steps(variant, 3, QUERY)
    assert list(steps) == ["input", *rule, "z", "opened", "head_out", "attn_out", "add"]
    direct = {key for key, step in steps.items() if step.proof.direct}
    assert direct == {"v", "q", "k", "beta", "left", "o", "map", "z", "add"}


@pytest.mark.parametrize("variant", ["hybrid", "space", "limited"])
def test_the_map_gives_what_the_model_has_read(variant: str) -> None:
    """|M v - o| / |o| at most 1e-6 in float32, for every head; signed, and no later value."""
    checkpoint, trace, _ = example(variant)
    M = {step.key: step for step in layer_steps(checkpoint, trace, "decoder.0")}["self.map"].result
    for head in range(trace[SITE].n_heads):
        z, v = (t.double().numpy() for t in (trace[SITE].z(head), trace[SITE].v[head]))
        assert np.linalg.norm(M[head] @ v - z) / np.linalg.norm(z) < 1e-6
        np.testing.assert_allclose(head_steps(variant, head, 2)["map"].result, M[head, 2], atol=1e-12)
    assert M.min() < 0
    assert not np.triu(M, 1).any()
    assert not np.signbit(M[:, 0, 1:]).any()  # zeros are written without a sign


@pytest.mark.parametrize(("variant", "biases"), [("limited", True), ("space", False), ("hybrid", False)])
def test_formulas_have_the_biases_that_the_code_has(variant: str, biases: bool) -> None:
    checkpoint, trace, _ = example(variant)
    layer = {step.key.removeprefix("self."): step for step in layer_steps(checkpoint, trace, "decoder.0")}
    steps = head_steps(variant, 3, QUERY)
    for packed, gate in ((layer["packed"], layer["concat"]), (steps["packed"], steps["opened"])):
        assert ("+ b" in packed.formula) == ("+ b" in packed.code) == biases
        assert (r"+ b_\mathrm{gate}" in gate.formula) == ("+ b_gate" in gate.code) == biases
        assert "BIAS" not in gate.formula


def test_a_step_that_has_a_least_size_always_writes() -> None:
    assert "writes nothing" in str(head_steps("space", 3, QUERY)["beta"].text)
    text = str(head_steps("limited", 3, QUERY)["beta"].text)
    assert "at least 0.3" in text
    assert "writes nothing" not in text


def test_the_write_is_the_difference_and_not_the_value() -> None:
    steps = head_steps("hybrid", HEAD, QUERY)
    beta, k, v = (steps[key].result for key in ("beta", "k", "v"))
    np.testing.assert_allclose(steps["u"].result, beta[QUERY] * (v[QUERY] - steps["kept"].result.T @ k[QUERY]))
    np.testing.assert_allclose(steps["S"].result - steps["kept"].result, np.outer(k[QUERY], steps["u"].result))


PARTS = ["W_Q", "W_K", "W_V", "W_a", "filters", "rate", "bias", "W_gate", "norm", "W_O"]


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, tiny.HYBRID) for name in (*PARTS, "W_b")]
    + [(name, tiny.MAMBA2) for name in (*PARTS, "skip", "filter_bias")],
)
def test_another_number_in_the_layer_is_caught(name: str, options: dict) -> None:
    checkpoint = tiny.checkpoint("decoder-only", **options)
    trace = checkpoint.trace(variants.TEXT)
    weight = getattr(checkpoint.model.decoder.layers[0].self_attention, name)
    with torch.no_grad():
        getattr(weight, "weight", weight).mul_(1.01)
    assert not all(step.proof.holds for step in layer_steps(checkpoint, trace, "decoder.0"))


@pytest.mark.parametrize("letter", "qkv")
def test_numbers_set_by_hand_are_marked_and_followed(letter: str) -> None:
    checkpoint, *_ = example()
    edit = Edit((Cell(f"{SITE}.{letter}", (HEAD, QUERY, 0), 2.0),))
    trace = checkpoint.trace(variants.TEXT, edit=edit)
    for steps in (
        attention_steps(checkpoint, trace, SITE, HEAD, QUERY),
        layer_steps(checkpoint, trace, "decoder.0"),
    ):
        assert [step.key.removeprefix("self.") for step in steps if step.edited] == [letter]
        assert all(step.proof.holds for step in steps)


@pytest.mark.parametrize("options", [tiny.HYBRID, tiny.MAMBA2], ids=["hybrid", "space"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_is_proved_and_errors_are_caught(dtype: torch.dtype, options: dict) -> None:
    checkpoint = tiny.checkpoint("decoder-only", **options)
    checkpoint.model.to(dtype)
    checkpoint.model.materialise_buffers()
    trace = checkpoint.trace(variants.TEXT)
    walks = [layer_steps(checkpoint, trace, "decoder.0"), attention_steps(checkpoint, trace, SITE, 3, QUERY)]
    assert not [(step.key, step.proof) for steps in walks for step in steps if not step.proof.holds]
    for name in ("W_V", "W_gate", "W_O"):
        weight = getattr(checkpoint.model.decoder.layers[0].self_attention, name).weight
        before = weight.detach().clone()
        with torch.no_grad():
            weight.mul_(1 + 12 * torch.finfo(dtype).eps)
        assert not all(step.proof.holds for step in layer_steps(checkpoint, trace, "decoder.0")), name
        weight.data = before
