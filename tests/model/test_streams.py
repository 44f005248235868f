"""Several residual streams: what the lens, edits and runs that begin later make of them, and what is refused."""

from typing import Any

import pytest
import torch

from tests import tiny
from vizformer.analysis import (
    input_attribution,
    logit_attribution,
    logit_lens,
    score_split,
)
from vizformer.analysis.causes.model_graph import ModelGraph
from vizformer.errors import ConfigError, TraceError
from vizformer.explain import attention_steps, layer_steps
from vizformer.explain.block_rows import block_stream, stack_stream
from vizformer.model import Cell, Edit
from vizformer.model.streams import StreamEnds
from vizformer.model.trace_file import open_trace

TEXT = "I have a cat."


@pytest.fixture(scope="module")
def checkpoint() -> Any:
    return tiny.checkpoint("decoder-only", **tiny.GEMMA3N)


@pytest.fixture(scope="module")
def trace(checkpoint: Any) -> Any:
    return checkpoint.trace(TEXT)


def ended_after(checkpoint: Any, trace: Any, layers: int) -> torch.Tensor:
    """The logits of the model with its first layers alone."""
    model, ids = checkpoint.model, checkpoint.tensor(trace.tokens["decoder"])
    run, x = model.forward_pass("decoder", ids), model.decoder.split(model.embed(ids))
    for layer in range(layers):
        x = model.decoder.layers[layer](x, run, f"decoder.{layer}")
    found: torch.Tensor = model.logits(model.decoder.final_norm(model.decoder.ends.merge(x)))[0]
    return found


def test_the_lens_is_the_model_that_ends_after_a_layer(checkpoint: Any, trace: Any) -> None:
    lens = logit_lens(checkpoint, trace, count=1)
    with torch.inference_mode():
        for layers in range(5):
            expected = ended_after(checkpoint, trace, layers).double().softmax(-1).amax(-1)
            tiny.assert_close(torch.from_numpy(lens.probabilities[layers, :, 0]), expected, 1e-6)
    assert lens.proof.holds


def test_streams_are_made_as_long_as_the_first(checkpoint: Any) -> None:
    ends = checkpoint.model.decoder.ends
    assert isinstance(ends, StreamEnds)
    x = torch.randn(2, 16)
    streams = ends.split(x)
    assert torch.equal(streams[:, 0], x)
    tiny.assert_close(streams.norm(dim=-1), x.norm(dim=-1)[:, None].expand(2, 3))


@pytest.mark.parametrize("point", ["pre", "mid_self", "mid", "mid_feedforward", "post", "stream_1"])
def test_a_number_set_by_hand_is_followed(checkpoint: Any, trace: Any, point: str) -> None:
    changed = checkpoint.trace(TEXT, edit=Edit(cells=(Cell(f"decoder.1.{point}", (1, 2), 3.0),)))
    assert not torch.equal(changed.logits, trace.logits)
    for layer in range(4):
        steps = layer_steps(checkpoint, changed, f"decoder.{layer}")
        assert all(step.proof.holds for step in steps), [step.key for step in steps if not step.proof.holds]
        assert all(step.proof.holds for step in attention_steps(checkpoint, changed, f"decoder.{layer}.self", 0, -1))
        assert block_stream(checkpoint, changed, "decoder", layer, 1).worst.holds
    edited = [step.key for step in layer_steps(checkpoint, changed, "decoder.1") if step.edited]
    assert edited == {"pre": ["input"], "post": ["correct.corrected"]}.get(point, [])


def test_a_layer_left_out_leaves_all_streams_as_they_were(checkpoint: Any, trace: Any) -> None:
    without = checkpoint.trace(TEXT, edit=Edit(skipped=frozenset({"decoder.2"})))
    for point in ("post", "stream_1", "stream_2"):
        tiny.assert_close(without.residual(f"decoder.2.{point}"), trace.residual(f"decoder.1.{point}"))


def test_a_trace_is_kept_with_all_streams(trace: Any, tmp_path: Any) -> None:
    trace.save(tmp_path / "trace.safetensors")
    again = open_trace(tmp_path / "trace.safetensors")
    assert torch.equal(again.residual("decoder.3.stream_2"), trace.residual("decoder.3.stream_2"))
    names = stack_stream(trace, "decoder", 0).names
    assert not any("stream" in name for name in names)
    assert [name for name in names if name.endswith("pre")] == [f"{layer}.pre" for layer in range(4)]


def test_what_needs_a_plain_sum_is_refused(checkpoint: Any, trace: Any) -> None:
    several = "several residual streams"
    for split in (
        lambda: logit_attribution(checkpoint, trace, 1, 3),
        lambda: score_split(checkpoint, trace, "decoder.2.self", 0, 2, 1),
    ):
        with pytest.raises(TraceError, match=several):
            split()
    with pytest.raises(TraceError, match="reads its tokens again"):
        input_attribution(checkpoint, trace, 1, 3)
    with pytest.raises(TraceError, match="plain sum"):
        ModelGraph(checkpoint)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(n_streams=1), "n_streams=1: these are two or more"),
        (dict(norm_order="pre"), "n_streams=3: these are two or more, and need norm_order='sandwich'"),
        (dict(layer_scale=True), "n_streams=3: these are two or more"),
        (dict(laurel_rank=None), "n_streams without laurel_rank: give both"),
        (dict(n_streams=None), "laurel_rank without n_streams: give both"),
        (dict(layer_input_dim=None), "n_streams=3: this needs layer_input_dim"),
        (dict(layer_input_vocab=999), "layer_input_vocab=999: this is an option of layer_input_dim"),
        (dict(gate_sparsity=(0.5, 0.5)), "gate_sparsity=.*: must be a number from 0 to below 1 for each of 4 layers"),
        (dict(gate_sparsity=(0.5, 0.5, 1.0, 0.0)), "gate_sparsity=.*: must be a number from 0 to below 1"),
        (dict(feedforward="plain"), "gate_sparsity=.*: must be a number from 0 to below 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        tiny.config("decoder-only", **{**tiny.GEMMA3N, **changes})
