"""A whole layer by hand: every matrix against plain float64 loops and against its own code; proofs that fail."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

from tests import tiny
from tests.eager_transformer import Eager
from tests.explain import variants
from tests.explain.running import one_by_one
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.explain import Step, candidates, layer_steps, output_steps, toy
from vizformer.explain.toy_model import tensors
from vizformer.model import Cell, Edit, Trace

VARIANTS = {
    **variants.VARIANTS,
    "no-biases": ("encoder-decoder", dict(norm_order="pre", bias=False, tied_unembedding=False)),
    "own-scale": ("encoder-only", {**tiny.BERT, "attention_scale": 0.3, "logit_scale": 2.0}),
}
# Variant by variant: each is worked out once, by the process that has its tests.
every_variant = pytest.mark.parametrize("variant", VARIANTS, scope="module")


@cache
def example(variant: str) -> tuple[Checkpoint, Trace, Eager]:
    return variants.traced(*VARIANTS[variant])


@cache
def every_layer(variant: str) -> dict[str, list[Step]]:
    checkpoint, trace, _ = example(variant)
    layers = sorted({site.rpartition(".")[0] for site in trace.sites})
    return {layer: layer_steps(checkpoint, trace, layer) for layer in layers}


def plain(variant: str, layer: str) -> dict[str, Tensor]:
    """What the plain loops have for the steps of attention and for the ends of the sublayers."""
    checkpoint, _, eager = example(variant)
    expected = {"input": eager.residuals[f"{layer}.pre"]}
    for kind in ("self", "cross"):
        if (call := eager.calls.get(f"{layer}.{kind}")) is None:
            continue
        config = checkpoint.model.config
        group = config.n_heads // config.kv_heads
        k, v = call.k_projected[::group], call.v[::group]  # one of each group of heads that share them
        if kind == "self":
            expected["self.packed"] = torch.cat([*call.q_projected, *k, *v], -1)
        expected |= {
            f"{kind}.q": torch.cat(call.q_projected, -1),
            f"{kind}.k": torch.cat(k, -1),
            f"{kind}.v": torch.cat(v, -1),
            **{f"{kind}.{key}": torch.stack(getattr(call, of)) for key, of in variants.OF_ALL_HEADS.items()},
            f"{kind}.concat": torch.cat(call.z, -1),
            f"{kind}.out": call.attn_out,
            f"{kind}.add": call.added,
            f"{kind}.norm": call.after if checkpoint.model.config.norm_order == "post" else call.x,
        }
    last = "norm" if checkpoint.model.config.norm_order == "post" else "add"
    return expected | {f"feedforward.{last}": eager.residuals[f"{layer}.post"]}


@pytest.mark.sample(8)
@every_variant
def test_every_number_is_the_one_of_the_plain_forward(variant: str) -> None:
    for layer, steps in every_layer(variant).items():
        expected = plain(variant, layer)
        compared = 0
        for step in steps:
            if step.key in expected:
                there = expected[step.key].numpy()
                # what a number is off by has the size of its row: other processors sum in another order
                size = np.abs(np.where(np.isfinite(there), there, 0)).max(-1, keepdims=True).clip(min=1)
                np.testing.assert_allclose(
                    step.result / size, there / size, rtol=1e-5, atol=1e-5, err_msg=f"{layer} {step.key}"
                )
                compared += 1
        assert compared >= (10 if variant == "no-norms" else 11)


@pytest.mark.sample(8)
@every_variant
def test_the_code_runs_and_every_proof_holds(variant: str) -> None:
    """Line by line: the names of some results are used again further down."""
    for layer, steps in every_layer(variant).items():
        for step, scope in one_by_one(steps):
            for made in step.also:
                np.testing.assert_allclose(scope[made.variable].numpy(), made.tensor.value, rtol=1e-5, atol=1e-5)
            found = scope[step.variable].double().numpy()
            assert found.shape == step.result.shape, f"{layer} {step.key}"
            np.testing.assert_allclose(found, step.result, rtol=1e-5, atol=1e-5, err_msg=f"{layer} {step.key}")
            assert step.proof.holds, f"{layer} {step.key}"
            assert not step.edited
            assert len(step.axes) == step.result.ndim
            if step.contraction is not None:
                np.testing.assert_allclose(step.contraction.total(), step.result, rtol=1e-12, atol=1e-12)
            assert not set("{}") & set(f"{step.title}{step.text}{step.proof.anchor}")


@pytest.mark.sample(11)
@every_variant
def test_the_steps_form_a_chain(variant: str) -> None:
    config = example(variant)[0].model.config
    for layer, steps in every_layer(variant).items():
        keys = [step.key for step in steps]
        assert len(set(keys)) == len(keys)
        kinds = (
            ["self", "cross", "feedforward"]
            if f"{layer}.cross" in example(variant)[1].sites
            else ["self", "feedforward"]
        )
        assert list(dict.fromkeys(key.partition(".")[0] for key in keys)) == ["input", *kinds]
        assert keys[-1] == ("feedforward.norm" if config.norm_order == "post" else "feedforward.add")
        for kind in kinds:
            assert (f"{kind}.norm" in keys) == (config.norm_order != "none")
        windowed = int(layer.split(".")[1]) in config.windowed_layers
        assert ("self.mask" in keys) == (layer.startswith("decoder") or windowed)
        for kind in kinds[:-1]:
            for name, there in (
                ("normed", variants.normed),
                ("turned", variants.turned),
                ("position", variants.placed),
            ):
                assert (f"{kind}.{name}" in keys) == there(config, kind)


@every_variant
@pytest.mark.sample(21)
def test_from_the_last_row_to_the_prediction(variant: str) -> None:
    checkpoint, trace, eager = example(variant)
    for position in (0, trace.logits.shape[0] - 1):
        steps = output_steps(checkpoint, trace, position, count=4)
        *transform, logits, probabilities = steps
        head = ["dense", "activation", "norm"] if checkpoint.model.config.head == "transform" else []
        head += ["scaled"] if checkpoint.model.config.logit_scale != 1 else []
        assert [step.key for step in transform] == head
        best = eager.logits[position].topk(4)
        assert candidates(checkpoint, trace, position, count=4) == best.indices.tolist()
        np.testing.assert_allclose(logits.result, eager.logits[position][best.indices].numpy(), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(steps[-2].result, best.values.numpy(), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            probabilities.result, torch.softmax(eager.logits[position], -1)[best.indices].numpy(), rtol=1e-4, atol=1e-6
        )
        for step, scope in one_by_one(steps):
            np.testing.assert_allclose(scope[step.variable].numpy(), step.result, rtol=1e-4, atol=1e-5)
            assert step.proof.holds
    with pytest.raises(TraceError, match="no position 99: choose 0 to"):
        output_steps(checkpoint, trace, 99)


def failed(checkpoint: Checkpoint, trace: Trace, layer: str = "decoder.0") -> set[str]:
    return {step.key for step in layer_steps(checkpoint, trace, layer) if not step.proof.holds}


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_proofs_fail_when_something_is_off(norm_order: str) -> None:
    def fresh() -> tuple[Checkpoint, Trace]:
        checkpoint = tiny.checkpoint(norm_order=norm_order)
        return checkpoint, checkpoint.trace("我有 cat", target="The cats")

    checkpoint, trace = fresh()
    assert failed(checkpoint, trace) == set()
    record = trace["decoder.0.cross"]
    trace._records["decoder.0.cross"] = replace(record, v=record.v + 1e-3)
    assert {"cross.v", "cross.weights", "cross.z"} <= failed(checkpoint, trace)
    assert not any(key.startswith(("self", "feedforward")) for key in failed(checkpoint, trace))

    for path, red, green in (
        ("self_attention.W_V.weight", {"self.packed", "self.z", "self.out"}, "cross"),
        ("self_attention.W_O.bias", {"self.concat", "self.out", "self.add"}, "cross"),
        ("feedforward.W_in.weight", {"feedforward.hidden", "feedforward.narrow", "feedforward.add"}, "self"),
        ("feedforward.W_out.bias", {"feedforward.hidden", "feedforward.activation", "feedforward.narrow"}, "cross"),
    ):
        checkpoint, trace = fresh()
        checkpoint.model.get_parameter(f"decoder.layers.0.{path}")[::2] += 0.1
        off = failed(checkpoint, trace)
        assert red <= off, path
        assert not any(key.startswith(green) for key in off), path

    checkpoint, trace = fresh()
    trace._logits = trace.logits + 1e-3
    assert not any(step.proof.holds for step in output_steps(checkpoint, trace, 0)[:1])


def test_layers_that_do_not_exist() -> None:
    checkpoint, trace, _ = example("post")
    for layer in ("decoder.2", "decoder.-1", "decoder", "embedding.0", "encoder.x", "", "decoder.0.self"):
        with pytest.raises(TraceError, match=r"There is no layer '.*' in this model"):
            layer_steps(checkpoint, trace, layer)
    with pytest.raises(TraceError, match=r"There is no layer 'encoder.0' in this model"):
        layer_steps(example("decoder-only")[0], example("decoder-only")[1], "encoder.0")


def test_the_toy_is_pytorchs() -> None:
    """The stored layers run by torch.nn itself, from the stored tensors, and by ours."""
    stored = tensors()
    made = toy()
    encoder = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    decoder = torch.nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0)
    for layer, prefix in ((encoder, "encoder."), (decoder, "decoder.")):
        layer.load_state_dict({name: stored[prefix + name] for name in layer.state_dict()})
    with torch.no_grad():
        memory = encoder.train()(stored["x"])
        n = stored["target"].shape[0]
        out = decoder.train()(stored["target"], memory, tgt_mask=torch.full((n, n), float("-inf")).triu(1))
    for found, expected in (
        (made.encoder_output, memory),
        (made.trace.residual("encoder.final"), memory),
        (made.decoder_output, out),
        (made.trace.residual("decoder.final"), out),
    ):
        tiny.assert_close(found, expected.reshape(-1, 4), 1e-6)
    for layer_name in ("encoder.0", "decoder.0"):
        assert all(step.proof.holds for step in layer_steps(made.checkpoint, made.trace, layer_name))


@pytest.mark.parametrize("norm_order", ["post", "pre"])
def test_after_an_edit_the_numbers_are_worked_out_and_proved_again(norm_order: str) -> None:
    checkpoint = tiny.checkpoint(norm_order=norm_order)
    edit = Edit(
        cells=(
            Cell("decoder.0.self.q", (1, 2, 0), 3.0),
            Cell("decoder.0.cross.mask", (1, 0), -np.inf),
            Cell("decoder.0.mid_self", (0, 5), -1.5),
        ),
        temperatures={"decoder.0.cross": 2.0},
    )
    trace = checkpoint.trace("我有 cat", target="The cats", edit=edit)
    steps = {step.key: step for step in layer_steps(checkpoint, trace, "decoder.0")}
    assert all(step.proof.holds for step in steps.values())
    assert {key for key, step in steps.items() if step.edited} >= {"self.packed", "cross.mask", "cross.scores"}
    assert steps["self.heads"].result[1, 2, 0] == 3.0
    assert (steps["cross.weights"].result[:, 1, 0] == 0).all()
    unedited = {step.key: step for step in layer_steps(checkpoint, trace, "encoder.0")}
    assert not any(step.edited for step in unedited.values())
