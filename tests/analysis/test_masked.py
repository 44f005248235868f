"""Masks laid over a head, the padded batch, the model run with another mask, leakage."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests import tiny
from vizformer.analysis.leakage import leak
from vizformer.analysis.masked import mask_edit, masked_attention, own_blocked, padded_run, rerun
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit, Reason, Trace
from vizformer.model.masks import causal_mask
from vizformer.model.sparse_masks import window_mask

MODELS = {
    "encoder-decoder": {},
    "decoder-only": tiny.LLAMA,
    "encoder-only": tiny.BERT,
}


def checkpoint(architecture: str) -> Checkpoint:
    return tiny.checkpoint(architecture, **MODELS[architecture])


def traced(model: Checkpoint, text: str) -> Trace:
    return model.trace(text, target="I have a cat." if model.model.config.architecture == "encoder-decoder" else None)


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Checkpoint:
    return checkpoint(request.param)


def test_its_own_mask_is_proved_by_the_models_own_z(model: Checkpoint) -> None:
    trace = traced(model, "我有一只猫。")
    for site in trace.sites:
        found = masked_attention(trace[site], 1)
        assert found.own
        assert found.proof.holds
        np.testing.assert_allclose(found.weights, trace[site].pattern(1).numpy(), atol=1e-6)
        assert np.array_equal(found.bias == -np.inf, found.reasons > 0)


@pytest.mark.parametrize("changes", [tiny.ALIBI, tiny.T5])
def test_a_position_bias_is_part_of_the_scores(changes: dict[str, object]) -> None:
    trace = tiny.checkpoint("decoder-only", **changes).trace("我有一只猫。")
    found = masked_attention(trace["decoder.1.self"], 2)
    assert found.proof.holds
    other = masked_attention(trace["decoder.1.self"], 2, window_mask(len(found.scores), 1))
    assert not other.own
    assert other.proof.holds


def test_another_mask_is_proved_by_the_fused_call() -> None:
    trace = checkpoint("encoder-only").trace("我有一只猫。")
    record = trace["encoder.0.self"]
    mask = window_mask(record.q.shape[1], 1)
    found = masked_attention(record, 2, mask)
    assert not found.own
    assert found.proof.holds
    expected = torch.softmax(record.scores(2).double() + mask.bias[0, 0], dim=-1).numpy()
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)


def test_a_sentence_is_the_same_in_a_padded_batch_as_alone(model: Checkpoint) -> None:
    short, long = traced(model, "猫"), traced(model, "我有一只猫。你好吗？")
    run = padded_run(model, short, long)
    assert run.difference < 1e-5
    stack = next(iter(short.tokens))
    n = len(run.tokens[stack])
    assert n == len(long.tokens[stack]) > len(short.tokens[stack])
    assert run.padding[stack][0].tolist() == [i >= len(short.tokens[stack]) for i in range(n)]
    assert not run.padding[stack][1].any()
    reasons = run.trace[f"{stack}.0.self"].reason(0).numpy()
    assert (reasons[-1][run.padding[stack][0]] == Reason.PADDING).all()


def test_each_stack_is_padded_in_its_own_vocabulary() -> None:
    model = tiny.two_vocabularies()
    short, long = traced(model, "猫"), traced(model, "我有一只猫。你好吗？")
    run = padded_run(model, short, long)
    assert run.difference < 1e-5
    assert run.tokens["encoder"][-1] == model.reader("encoder").tokens([run.tokens["encoder"][-1].id])[0]
    smaller = tiny.two_vocabularies(pad_id=300)  # a row that the source's table has not
    assert padded_run(smaller, traced(smaller, "猫"), traced(smaller, "我有一只猫。")).difference < 1e-5


def test_without_the_mask_the_padding_would_be_felt() -> None:
    """The difference that is asserted above is no matter of course."""
    model = checkpoint("encoder-only")
    short = model.trace("猫")
    ids = [token.id for token in short.tokens["encoder"]]
    loose = model.trace(ids=[*ids, 0, 0, 0])
    apart = (loose.residual("encoder.final")[: len(ids)] - short.residual("encoder.final")).abs().max()
    assert float(apart) > 1e-2


def test_cross_attention_of_the_batch_hides_the_sources_padding_only() -> None:
    model = checkpoint("encoder-decoder")
    run = padded_run(model, traced(model, "猫"), traced(model, "我有一只猫。"))
    reasons = run.trace["decoder.0.cross"].reason(0).numpy()
    assert (reasons[:, run.padding["encoder"][0]] == Reason.PADDING).all()
    assert (reasons[:, ~run.padding["encoder"][0]] == 0).all()


def test_the_model_runs_with_exactly_the_mask_that_was_painted(model: Checkpoint) -> None:
    trace = traced(model, "我有一只猫。")
    kind = "decoder" if "decoder" in trace.tokens else "encoder"
    n = len(trace.tokens[kind])
    wanted = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > 1
    wanted[2] = True  # and one row is blocked as a whole
    again = rerun(model, dict(trace.tokens), mask_edit(trace, kind, wanted))
    layers = [site for site in again.sites if site.startswith(kind) and site.endswith("self")]
    assert len(layers) == 2
    for site in layers:
        assert np.array_equal(again[site].reason(0).numpy() > 0, wanted)
        found = masked_attention(again[site], 0)
        assert found.own
        assert found.proof.holds
        assert found.weights[2].tolist() == [0] * n
    assert bool(torch.isfinite(again.logits).all())
    assert not torch.equal(again.logits, trace.logits)


def test_nothing_painted_is_no_edit_and_the_traces_own_edit_stays() -> None:
    model = checkpoint("decoder-only")
    trace = model.trace("我有一只猫。")
    assert mask_edit(trace, "decoder", own_blocked(trace, "decoder")) is None
    windowed = tiny.checkpoint("decoder-only", sliding_window=2, sliding_layers=(1,)).trace("我有一只猫。")
    assert mask_edit(windowed, "decoder", own_blocked(windowed, "decoder")) is None
    edited = model.trace("我有一只猫。", edit=Edit((Cell("decoder.0.pre", (1, 0), 9.0),)))
    wanted = own_blocked(edited, "decoder")
    wanted[:, 1, 0] = True
    edit = mask_edit(edited, "decoder", wanted)
    assert edit is not None
    assert [cell.tensor for cell in edit.cells] == ["decoder.0.pre", "decoder.0.self.mask", "decoder.1.self.mask"]


def swapped(model: Checkpoint, trace: Trace, stack: str, position: int, edit: Edit | None = None) -> Trace:
    row = list(trace.tokens[stack])
    row[position] = model.tokenizer.tokens([row[position].id + 1])[0]
    return rerun(model, {**trace.tokens, stack: tuple(row)}, edit)


def test_a_causal_model_does_not_leak_and_a_bidirectional_one_does(model: Checkpoint) -> None:
    trace = traced(model, "我有一只猫。")
    for stack, tokens in trace.tokens.items():
        n = len(tokens)
        found = leak(rerun(model, dict(trace.tokens), None), swapped(model, trace, stack, n // 2), stack)
        assert found.moved == (tuple(range(n // 2, n)) if stack == "decoder" else tuple(range(n)))
        assert np.flatnonzero(found.stream[0]).tolist() == [n // 2]  # before the first layer nothing has mixed
        assert (found.stream.shape, found.outputs.shape) == ((3, n), (n,))


def test_without_its_mask_a_decoder_leaks_and_with_a_causal_one_an_encoder_does_not() -> None:
    for architecture, stack, blocks in (("decoder-only", "decoder", False), ("encoder-only", "encoder", True)):
        model = checkpoint(architecture)
        trace = model.trace("我有一只猫。")
        n = len(trace.tokens[stack])
        wanted = ~np.tri(n, dtype=bool) if blocks else np.zeros((n, n), dtype=bool)
        edit = mask_edit(trace, stack, wanted)  # type: ignore[arg-type]
        before, after = rerun(model, dict(trace.tokens), edit), swapped(model, trace, stack, n - 1, edit)
        moved = leak(before, after, stack).moved  # type: ignore[arg-type]
        assert moved == ((n - 1,) if blocks else tuple(range(n)))


def test_layers_with_a_window_are_painted_by_themselves() -> None:
    model = tiny.checkpoint("decoder-only", sliding_window=2, sliding_layers=(1,))
    trace = model.trace("我有一只猫。")
    wanted = own_blocked(trace, "decoder")
    assert not np.array_equal(wanted[0], wanted[1])
    wanted[1] = False
    again = rerun(model, dict(trace.tokens), mask_edit(trace, "decoder", wanted))
    assert torch.equal(again["decoder.0.self"].reason(0), trace["decoder.0.self"].reason(0))
    assert not again["decoder.1.self"].reason(0).any()
    for site in trace.sites:
        found = masked_attention(trace[site], 0)
        assert found.own
        assert found.proof.holds


def test_a_window_lets_a_change_travel_its_reach_per_layer() -> None:
    model = checkpoint("encoder-only")
    trace = model.trace("我有一只猫。你好吗？")
    n = len(trace.tokens["encoder"])
    edit = mask_edit(trace, "encoder", window_mask(n, 1).reason[0, 0].numpy() > 0)
    before, after = rerun(model, dict(trace.tokens), edit), swapped(model, trace, "encoder", n // 2, edit)
    stream = leak(before, after, "encoder").stream
    for layer, row in enumerate(stream):
        assert np.flatnonzero(row).tolist() == list(range(n // 2 - layer, n // 2 + layer + 1))


def test_only_equal_lengths_can_be_compared() -> None:
    model = checkpoint("decoder-only")
    with pytest.raises(TraceError, match="same length"):
        leak(model.trace("猫"), model.trace("我有一只猫。"), "decoder")


def test_the_causal_mask_of_pytorch_is_ours() -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind()
    ours = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(5).bias)
    torch.testing.assert_close(ours, F.scaled_dot_product_attention(q, k, v, is_causal=True))
