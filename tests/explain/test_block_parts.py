"""The parts of a layer: the running sum, the norms, the feed-forward network, and what is said of them."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer import errors
from vizformer.checkpoints import Checkpoint
from vizformer.explain import layer_steps
from vizformer.explain.arrays import float64
from vizformer.explain.block_rows import (
    block_stream,
    feedforward_input,
    find_block,
    find_norm_rows,
    neighbour_effect,
    norm_code,
    norm_numbers,
    stack_stream,
    sublayers,
)
from vizformer.explain.feedforward_rows import (
    each_alone,
    feedforward_numbers,
    multiplied_out,
    one_matrix,
    row_of_numbers,
)
from vizformer.explain.snippets import standalone
from vizformer.explain.sublayer import sublayer_at

MODELS: list[tuple[str, str, dict[str, Any]]] = [
    ("encoder-decoder", "encoder", {}),
    ("encoder-decoder", "decoder", {}),
    ("decoder-only", "decoder", tiny.LLAMA),
    ("encoder-only", "encoder", tiny.BERT),
    ("encoder-decoder", "decoder", tiny.T5),
    ("decoder-only", "decoder", tiny.SCALED),
    ("encoder-decoder", "decoder", dict(norm_order="post")),
]
TEXT = "I have a cat."


def model(architecture: str, options: dict[str, Any]) -> Checkpoint:
    return tiny.checkpoint(architecture, **options)


@pytest.mark.parametrize(("architecture", "stack", "options"), MODELS)
@pytest.mark.sample(5)
def test_the_sum_runs_as_the_model_computes_it(architecture: str, stack: str, options: dict[str, Any]) -> None:
    checkpoint = model(architecture, options)
    trace = checkpoint.trace(TEXT)
    for layer in (0, 1):
        found = block_stream(checkpoint, trace, stack, layer, 2)
        assert all(proof.holds for proof in found.proofs.values())
        assert found.worst.holds
        np.testing.assert_allclose(found.rows[-1], float64(trace.residual(f"{stack}.{layer}.post")[2]), atol=1e-4)
        steps = {step.key: step.result for step in layer_steps(checkpoint, trace, f"{stack}.{layer}")}
        for kind, *_ in sublayers(find_block(checkpoint, stack, layer)):
            added = next(point.added for point in found.points if point.name == f"{kind}.sum")
            last = "feedforward.narrow" if kind == "feedforward" else f"{kind}.out"
            last = next(
                (key for key in ("feedforward.both", "feedforward.mixed") if last[0] == "f" and key in steps), last
            )
            np.testing.assert_allclose(added, steps[last][2], atol=1e-4)
        assert found.to_start[0] == pytest.approx(1)
        assert found.to_end[-1] == pytest.approx(1)
        x, f = torch.from_numpy(found.points[0].row), torch.from_numpy(found.attention_added)
        assert found.first_sum.length == pytest.approx(float((x + f).norm()))
        cosine = torch.cosine_similarity(torch.from_numpy(found.rows[1]), x, dim=0)
        assert found.to_start[1] == pytest.approx(float(cosine))


def test_a_row_of_the_whole_stack_has_every_recorded_point_once() -> None:
    checkpoint = model("encoder-decoder", {})
    trace = checkpoint.trace(TEXT)
    found = stack_stream(trace, "decoder", 1)
    layer = ["mid_self", "mid_cross", "post"]
    assert found.names == ("0.pre", *(f"{i}.{point}" for i in (0, 1) for point in layer), "final")
    assert found.names[found.last_layer] == "1.post"
    assert found.lengths[3] == pytest.approx(float(trace.residual("decoder.0.post")[1].norm()), rel=1e-5)


def test_a_layer_or_position_that_is_not_there_is_refused() -> None:
    checkpoint = model("decoder-only", {})
    trace = checkpoint.trace(TEXT)
    for stack, layer, row in (("encoder", 0, 0), ("decoder", 2, 0), ("decoder", 0, 99), ("decoder", 0, -99)):
        with pytest.raises(errors.TraceError):
            block_stream(checkpoint, trace, stack, layer, row)


@pytest.mark.parametrize(("architecture", "stack", "options"), MODELS)
@pytest.mark.sample(5)
def test_every_norm_is_worked_out(architecture: str, stack: str, options: dict[str, Any]) -> None:
    checkpoint = model(architecture, options)
    trace = checkpoint.trace(TEXT)
    for kind, module, *_ in sublayers(find_block(checkpoint, stack, 1)):
        rows, norm = find_norm_rows(checkpoint, trace, stack, 1, kind)
        assert norm is module
        found = norm_numbers(rows, norm, 1)
        assert found.proof.holds
        with torch.inference_mode():
            own = norm(torch.from_numpy(rows).float())[1]
        np.testing.assert_allclose(found.result, own.numpy(), atol=1e-4)
        np.testing.assert_allclose(found.centred + found.mean, rows[1])
        np.testing.assert_allclose(found.squares, rows[1] ** 2)
        plain = norm_numbers(rows, norm, 1, 1.0, 0.0)
        assert plain.result_length == pytest.approx(norm.normalized_shape[0] ** 0.5, rel=0.01)
        moved = norm_numbers(rows, norm, 1, 2.0, 0.5)
        np.testing.assert_allclose(moved.result, 2 * plain.result + 0.5)
        line, given = norm_code(checkpoint, stack, 1, kind, "after", "y")
        names: dict[str, Any] = {"y": torch.from_numpy(rows).float(), **given}
        with torch.inference_mode():
            exec(f"import torch.nn.functional as F\n{line}", names)
        np.testing.assert_allclose(names["after"][1].numpy(), own.numpy(), atol=1e-5)


@pytest.mark.parametrize("residual", ["sequential", "none"])
def test_a_norm_after_a_sublayer_gives_the_recorded_stream(residual: str) -> None:
    checkpoint = model("encoder-decoder", dict(norm_order="post", residual=residual))
    trace = checkpoint.trace(TEXT)
    for kind, __, ___, after in sublayers(find_block(checkpoint, "decoder", 1)):
        rows, norm = find_norm_rows(checkpoint, trace, "decoder", 1, kind)
        expected = trace.residual(f"decoder.1.{after}")
        for row in range(len(rows)):
            np.testing.assert_allclose(norm_numbers(rows, norm, row).result, expected[row].numpy(), atol=1e-4)


def test_batch_norm_alone_hears_of_the_neighbour() -> None:
    rng = np.random.default_rng(0)
    sentence, one, other = rng.normal(1, 2, (4, 8)), rng.normal(0, 1, (3, 8)), rng.normal(5, 3, (6, 8))
    found = neighbour_effect(sentence, one, other)
    assert found.moved["layer"] == found.moved["rms"] == 0
    assert found.moved["batch"] > 0.5
    batch = torch.from_numpy(np.concatenate([sentence, one]))
    expected = torch.nn.functional.batch_norm(batch, None, None, training=True)[:4]
    np.testing.assert_allclose(found.first["batch"], expected.numpy(), atol=1e-9)
    np.testing.assert_allclose(found.first["layer"], torch.nn.functional.layer_norm(batch, (8,))[:4].numpy(), atol=1e-9)
    np.testing.assert_allclose(found.first["rms"], torch.nn.functional.rms_norm(batch, (8,), eps=1e-5)[:4].numpy())
    assert found.row_means["layer"] < 1e-9 < 0.01 < found.row_means["batch"]
    assert found.column_means["batch"] < 1e-9 < 0.01 < found.column_means["layer"]


@pytest.mark.parametrize(("architecture", "stack", "options"), MODELS)
@pytest.mark.sample(4)
def test_the_feed_forward_of_every_kind(architecture: str, stack: str, options: dict[str, Any]) -> None:
    checkpoint = model(architecture, options)
    trace = checkpoint.trace(TEXT)
    x, network = feedforward_input(checkpoint, trace, stack, 1)
    found = feedforward_numbers(x, network, torch.float32)
    with torch.inference_mode():
        expected = network(torch.from_numpy(x).float()[None])[0].numpy()
    np.testing.assert_allclose(found.out, expected, atol=1e-4)
    alone = each_alone(x, network, 1)
    assert np.flatnonzero(alone.moved).tolist() == [1]
    assert alone.proof.holds
    place = sublayer_at(trace, find_block(checkpoint, stack, 1), f"{stack}.1", "feedforward", slice(2, 3))
    one = row_of_numbers(place, network)
    np.testing.assert_allclose(one.numbers.out[0], found.out[2])
    assert one.numbers.active[0, one.neuron] == one.numbers.active.max()
    assert one.terms_in.sum() == pytest.approx(one.numbers.entering[0, one.neuron])
    assert one.terms_out.sum() == pytest.approx(one.numbers.out[0, 0])
    names: dict[str, Any] = {}
    exec(standalone(one.code, {"x": one.x, **one.given}).text(), names)
    assert names["out"].shape == one.numbers.out[0].shape
    single = one_matrix(x, network, multiplied_out(network))
    if network.W_gate is not None:
        assert single is None
    else:
        assert single is not None
        assert single.proof.holds
        linear = dataclasses.replace(found, out=x @ single.matrix + single.bias)
        rows = np.linalg.norm(linear.out - found.out, axis=1) / np.linalg.norm(found.out, axis=1)
        np.testing.assert_allclose(single.apart, rows)
        assert (single.apart > 0.01).all()
