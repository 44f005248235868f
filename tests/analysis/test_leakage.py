"""One token replaced: which outputs move, with the model's own mask and with others."""

import numpy as np
import pytest
import torch

from tests import tiny
from tests.analysis.three_kinds import MODELS, checkpoint, traced
from vizformer.analysis.masks import leak, leak_of, own_blocked, replacements, run_blocked
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Checkpoint:
    return checkpoint(request.param)


def test_a_causal_model_does_not_leak_and_a_bidirectional_one_does(model: Checkpoint) -> None:
    trace = traced(model, "我有一只猫。")
    for stack, tokens in trace.tokens.items():
        n = len(tokens)
        other = tokens[n // 2].id + 1
        found = leak_of(model, trace, stack, n // 2, other, run_blocked(trace, stack, "own"))
        assert found.moved == (tuple(range(n // 2, n)) if stack == "decoder" else tuple(range(n)))
        assert np.flatnonzero(found.stream[0]).tolist() == [n // 2]  # before the first layer nothing has mixed
        assert (found.stream.shape, found.outputs.shape) == ((3, n), (n,))


@pytest.mark.parametrize(
    ("architecture", "stack", "run"), [("decoder-only", "decoder", "open"), ("encoder-only", "encoder", "causal")]
)
def test_without_its_mask_a_decoder_leaks_and_with_a_causal_one_an_encoder_does_not(
    architecture: str, stack: str, run: str
) -> None:
    model = checkpoint(architecture)
    trace = model.trace("我有一只猫。")
    n = len(trace.tokens[stack])
    other = trace.tokens[stack][-1].id + 1
    found = leak_of(model, trace, stack, n - 1, other, run_blocked(trace, stack, run))
    assert found.moved == ((n - 1,) if run == "causal" else tuple(range(n)))


def test_a_window_lets_a_change_travel_its_reach_per_layer() -> None:
    model = checkpoint("encoder-only")
    trace = model.trace("我有一只猫。你好吗？")
    n = len(trace.tokens["encoder"])
    other = trace.tokens["encoder"][n // 2].id + 1
    found = leak_of(model, trace, "encoder", n // 2, other, run_blocked(trace, "encoder", "window", 1))
    for layer, row in enumerate(found.stream):
        assert np.flatnonzero(row).tolist() == list(range(n // 2 - layer, n // 2 + layer + 1))


def test_only_equal_lengths_can_be_compared() -> None:
    model = checkpoint("decoder-only")
    with pytest.raises(TraceError, match="same length"):
        leak(model.trace("猫"), model.trace("我有一只猫。"), "decoder")


def test_each_mask_of_a_run_blocks_what_its_name_says() -> None:
    trace = tiny.checkpoint("decoder-only", sliding_window=3, sliding_layers=(1,)).trace("我有一只猫。")
    own = own_blocked(trace, "decoder")
    n = own.shape[-1]
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    future = ~np.tri(n, dtype=bool)
    assert np.array_equal(run_blocked(trace, "decoder", "own"), own)
    assert not run_blocked(trace, "decoder", "open").any()
    assert np.array_equal(run_blocked(trace, "decoder", "causal"), np.stack([future, future]))
    assert np.array_equal(run_blocked(trace, "decoder", "window", 1), own | (distance > 1))  # on top of its own
    assert run_blocked(trace, "decoder", "window", 1).shape == own.shape == (2, n, n)


def test_replacements_are_near_the_token_and_never_itself(model: Checkpoint) -> None:
    trace = traced(model, "我有一只猫。")
    for stack, row in trace.tokens.items():
        table = model.model.token_table(stack).weight.detach()
        similar = torch.nn.functional.cosine_similarity(table, table[row[1].id][None])
        ranks = similar.argsort(descending=True).argsort().tolist()
        found = replacements(model, trace, stack, 1, count=3)
        assert row[1].id not in [token.id for token in found]
        assert len({token.id for token in found}) == len(found)
        assert not any(token.special for token in found)
        near = [token for token in found if token.id not in {other.id for other in row}]
        assert [ranks[token.id] for token in near] == sorted(ranks[token.id] for token in near)
        others = [token for token in row if not token.special and token.id != row[1].id]
        assert {token.id for token in others} <= {token.id for token in found}
