"""The padded batch, and the model run with other masks."""

import dataclasses

import numpy as np
import pytest
import torch

from tests import tiny
from tests.analysis.three_kinds import MODELS, checkpoint, traced
from vizformer.analysis.masks import (
    expectations,
    layers_masked_alike,
    mask_edit,
    own_blocked,
    padded_run,
    painted_run,
    rerun,
)
from vizformer.checkpoints import Checkpoint
from vizformer.explain import masked_attention
from vizformer.model import Cell, Edit, Patch, Reason


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Checkpoint:
    return checkpoint(request.param)


def test_a_sentence_is_the_same_in_a_padded_batch_as_alone(model: Checkpoint) -> None:
    short, long = traced(model, "猫"), traced(model, "我有一只猫。你好吗？")
    run = padded_run(model, short, long)
    assert run.difference < 1e-5
    stack = next(iter(short.tokens))
    n = len(run.tokens[stack])
    assert n == len(long.tokens[stack]) > len(short.tokens[stack])
    assert run.padding[stack][0].tolist() == [i >= len(short.tokens[stack]) for i in range(n)]
    assert not run.padding[stack][1].any()
    assert run.unused(stack) == tuple(range(len(short.tokens[stack]), n))
    reasons = run.trace[f"{stack}.0.self"].reason(0).numpy()
    assert (reasons[-1][run.padding[stack][0]] == Reason.PADDING).all()


def test_each_stack_is_padded_in_its_own_vocabulary() -> None:
    model = tiny.two_vocabularies()
    short, long = traced(model, "猫"), traced(model, "我有一只猫。你好吗？")
    run = padded_run(model, short, long)
    assert run.difference < 1e-5
    assert run.tokens["encoder"][-1] == model.tokenizer_of("encoder").tokens([run.tokens["encoder"][-1].id])[0]
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
    whole = Edit(
        (Cell("decoder.0.pre", (1, 0), 9.0),),
        unscaled=frozenset({"decoder.0.self"}),
        temperatures={"decoder.1.self": 2.0},
        patches=(Patch("decoder.0.self.z", (1,)),),
        skipped=frozenset({"decoder.1"}),
    )
    edited = model.trace("我有一只猫。", edit=whole)
    wanted = own_blocked(edited, "decoder")
    wanted[:, 1, 0] = True
    edit = mask_edit(edited, "decoder", wanted)
    assert edit is not None
    assert [cell.tensor for cell in edit.cells] == ["decoder.0.pre", "decoder.0.self.mask", "decoder.1.self.mask"]
    assert dataclasses.replace(edit, cells=whole.cells) == whole


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


def test_painted_cells_are_turned_over_in_the_layers_that_have_the_same_mask() -> None:
    model = tiny.checkpoint("decoder-only", sliding_window=2, sliding_layers=(1,))
    trace = model.trace("我有一只猫。")
    assert layers_masked_alike(trace, "decoder", 0) == (0,)
    assert layers_masked_alike(checkpoint("decoder-only").trace("我有一只猫。"), "decoder", 1) == (0, 1)
    own = own_blocked(trace, "decoder")
    found = own_blocked(painted_run(model, trace, "decoder", ((2, 0), (1, 3)), (1,)), "decoder")
    assert [cell.tolist() for cell in np.argwhere(found != own)] == [[1, 1, 3], [1, 2, 0]]


def test_what_is_expected_before_and_after_is_the_softmax_of_the_logits() -> None:
    model = checkpoint("decoder-only")
    trace = model.trace("我有一只猫。")
    after = painted_run(model, trace, "decoder", ((2, 0), (2, 1)), (0, 1))
    rows = expectations(model, trace, after)
    assert len(rows) == len(trace.tokens["decoder"])
    for i, row in enumerate(rows):
        for logits, token, p in (
            (trace.logits[i], row.before, row.before_probability),
            (after.logits[i], row.after, row.after_probability),
        ):
            assert token.id == int(logits.argmax())
            assert p == pytest.approx(float(torch.softmax(logits.double(), -1)[token.id]))
        assert row.moved == pytest.approx(float((trace.logits[i] - after.logits[i]).abs().max()))
    assert rows[1].moved == 0  # before the row that was painted nothing moves
    assert rows[2].moved > 0
