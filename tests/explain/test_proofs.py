"""Proofs are worth something only if they fail: a wrong number anywhere turns the right lines red."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from tests import tiny
from tests.explain.running import run
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.explain import TOLERANCE, Proof, attention_steps
from vizformer.messages import N_
from vizformer.model import Trace

SITE, HEAD, QUERY = "decoder.1.self", 1, 2
THROUGH_Z = {"dots", "scores", "mask", "shift", "exp", "sum", "weights", "z"}
AFTER = {"head_out", "attn_out", "add"}


def fresh(norm_order: str) -> tuple[Checkpoint, Trace]:
    checkpoint = tiny.checkpoint(norm_order=norm_order)
    return checkpoint, checkpoint.trace("我有 cat", target="The cats are here")


def failed(checkpoint: Checkpoint, trace: Trace, site: str = SITE) -> set[str]:
    return {step.key for step in attention_steps(checkpoint, trace, site, HEAD, QUERY) if not step.proof.holds}


def after(norm_order: str) -> set[str]:
    return AFTER | ({"norm"} if norm_order == "post" else set())


orders = pytest.mark.parametrize("norm_order", ["post", "pre"])


def uneven(like: Tensor) -> Tensor:
    """Never the same at two places: softmax does not change when all keys move together, nor a norm when a row does."""
    return 1 + torch.rand(like.shape, generator=torch.Generator().manual_seed(0))


@orders
@pytest.mark.parametrize(
    ("name", "red"), [("v", {"v"} | THROUGH_Z), ("k", {"k"} | THROUGH_Z), ("q", {"input", "q"} | THROUGH_Z)]
)
def test_recorded_operands_that_are_off(norm_order: str, name: str, red: set[str]) -> None:
    checkpoint, trace = fresh(norm_order)
    assert failed(checkpoint, trace) == set()
    record = trace[SITE]
    recorded = getattr(record, name)
    for by in (1e-3, float("nan")):
        trace._records[SITE] = replace(record, **{name: recorded + by * uneven(recorded)})
        assert failed(checkpoint, trace) == red
    off = recorded.clone()
    off[HEAD - 1] += 1.0  # another head's numbers are another head's proof
    trace._records[SITE] = replace(record, **{name: off})
    assert failed(checkpoint, trace) == set()


@orders
def test_swapped_heads(norm_order: str) -> None:
    checkpoint, trace = fresh(norm_order)
    record = trace[SITE]
    swapped = {name: getattr(record, name)[[1, 0, 2, 3]] for name in ("q", "k", "v")}
    trace._records[SITE] = replace(record, **swapped)
    assert failed(checkpoint, trace) == {"input", "q", "k", "v"} | THROUGH_Z


def change(path: str, rows: slice = slice(None), columns: slice | None = None) -> Callable[[Checkpoint], None]:
    def apply(checkpoint: Checkpoint) -> None:
        weight: Tensor = checkpoint.model.get_parameter(path)
        where = rows if columns is None else (rows, columns)
        weight[where] += 0.01 * uneven(weight[where])

    return apply


OWN, OTHER = slice(HEAD * 4, HEAD * 4 + 4), slice(0, 4)
BLOCK = "decoder.layers.1"
WEIGHTS = [
    (f"{BLOCK}.self_attention.W_Q.weight", OWN, None, {"input", "q"} | THROUGH_Z | AFTER),
    (f"{BLOCK}.self_attention.W_Q.bias", OWN, None, {"input", "q"} | THROUGH_Z | AFTER),
    (f"{BLOCK}.self_attention.W_K.weight", OWN, None, {"k"} | THROUGH_Z | AFTER),
    (f"{BLOCK}.self_attention.W_V.weight", OWN, None, {"v", "z"} | THROUGH_Z | AFTER),
    (f"{BLOCK}.self_attention.W_V.bias", OTHER, None, AFTER),
    (f"{BLOCK}.self_attention.W_O.weight", slice(None), OWN, AFTER),
    (f"{BLOCK}.self_attention.W_O.weight", slice(None), OTHER, AFTER),
    (f"{BLOCK}.self_attention.W_O.bias", slice(0, 1), None, AFTER),
]


@orders
@pytest.mark.parametrize(
    ("path", "rows", "columns", "red"),
    WEIGHTS,
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value)[-24:],  # the same in every process
)
def test_weights_changed_after_the_trace(
    norm_order: str, path: str, rows: slice, columns: slice | None, red: set[str]
) -> None:
    checkpoint, trace = fresh(norm_order)
    change(path, rows, columns)(checkpoint)
    assert failed(checkpoint, trace) == red | (after(norm_order) if red >= AFTER else set())


def test_the_norm_changed_after_the_trace() -> None:
    for kind in ("weight", "bias"):
        checkpoint, trace = fresh("post")
        change(f"{BLOCK}.self_norm.{kind}", slice(3, 4))(checkpoint)
        assert failed(checkpoint, trace) == AFTER | {"norm"}
        checkpoint, trace = fresh("pre")
        change(f"{BLOCK}.self_norm.{kind}", slice(3, 4))(checkpoint)
        assert failed(checkpoint, trace) == {"input", "q", "k", "v"} | THROUGH_Z | AFTER


@orders
def test_a_recorded_residual_stream_that_is_off(norm_order: str) -> None:
    checkpoint, trace = fresh(norm_order)
    trace._residuals["decoder.1.pre"] = trace.residual("decoder.1.pre") + torch.linspace(0, 1e-2, 16)
    assert failed(checkpoint, trace) == {"input", "q", "k", "v"} | THROUGH_Z | after(norm_order)
    checkpoint, trace = fresh(norm_order)
    trace._residuals["decoder.1.mid_self"] = trace.residual("decoder.1.mid_self") + 1e-3
    assert failed(checkpoint, trace) == after(norm_order)
    assert failed(checkpoint, trace, "decoder.1.cross") != set()


@orders
def test_a_mask_that_was_not_the_models(norm_order: str) -> None:
    """z is re-run with the recorded mask, so it agrees; what the model added to the residual stream does not."""
    checkpoint, trace = fresh(norm_order)
    record = trace[SITE]
    assert record.bias is not None
    trace._records[SITE] = replace(record, bias=torch.zeros_like(record.bias))
    assert failed(checkpoint, trace) == after(norm_order)


@orders
def test_a_scale_that_was_not_the_models(norm_order: str) -> None:
    checkpoint, trace = fresh(norm_order)
    trace._records[SITE] = replace(trace[SITE], scoring=replace(trace[SITE].scoring, scale=0.6))
    assert failed(checkpoint, trace) == after(norm_order)


@orders
def test_the_encoders_output_changed_under_cross_attention(norm_order: str) -> None:
    checkpoint, trace = fresh(norm_order)
    assert failed(checkpoint, trace, "decoder.0.cross") == set()
    trace._residuals["encoder.final"] = trace.residual("encoder.final") + 1e-2
    assert failed(checkpoint, trace, "decoder.0.cross") >= {"k", "v", "z"}


def test_the_trace_of_another_model() -> None:
    checkpoint, _ = fresh("post")
    other = tiny.checkpoint(seed=7).trace("我有 cat", target="The cats are here")
    assert {"q", "k", "v", "z", "norm"} <= failed(checkpoint, other)
    for options in (dict(d_model=24), dict(n_heads=2)):
        trace = tiny.checkpoint(**options).trace("我有 cat", target="The cats")
        with pytest.raises(TraceError, match=r"decoder.1.self .*tiny: the trace is of another model"):
            attention_steps(checkpoint, trace, SITE, HEAD, QUERY)


def test_the_rule_of_a_proof() -> None:
    anchor = N_("here")
    for value in (0.0, 0.5, -40.0):
        limit = TOLERANCE * max(1.0, abs(value))
        recorded = np.array([value, 1.0])
        assert Proof.compare(anchor, recorded + 0.99 * limit * np.array([1, 0]), recorded).holds
        off = Proof.compare(anchor, recorded + 1.01 * limit * np.array([1, 0]), recorded)
        assert not off.holds
        assert off.difference == pytest.approx(1.01 * limit)
    assert not Proof.compare(anchor, np.array([np.nan]), np.array([0.0])).holds
    assert not Proof.compare(anchor, np.array([0.0]), np.array([np.nan])).holds
    assert not Proof.compare(anchor, np.array([np.inf]), np.array([0.0])).holds


def test_a_fully_blocked_row() -> None:
    """Every weight is 0 and so is z, as from the fused call; nothing is NaN, and the proofs hold."""
    for norm_order in ("post", "pre"):
        checkpoint, trace = tiny.checkpoint("encoder-only", norm_order=norm_order), Trace()
        with torch.inference_mode():
            checkpoint.model(tiny.ids(4), padding=torch.ones(1, 4, dtype=torch.bool), trace=trace)
        steps = {step.key: step for step in attention_steps(checkpoint, trace, "encoder.1.self", 2, 1)}
        assert all(step.proof.holds for step in steps.values())
        assert not any(np.isnan(step.result).any() for step in steps.values())
        assert (steps["weights"].result == 0).all()
        assert (steps["z"].result == 0).all()
        assert steps["mask"].blocked is not None
        assert steps["mask"].blocked.all()
        assert "4 of 4 keys are blocked (padding)" in str(steps["mask"].text)
        assert "all of them are blocked" in str(steps["weights"].text)
        scope = run(list(steps.values()))
        for step in steps.values():
            found = np.atleast_1d(scope[step.variable].double().numpy())
            np.testing.assert_allclose(found, step.result, atol=1e-5, err_msg=step.key)


@pytest.mark.parametrize(
    ("site", "head", "query", "said"),
    [
        ("decoder.7.self", 0, 0, r"no attention site 'decoder.7.self'. It has: encoder.0.self"),
        ("decoder.1.selfish", 0, 0, "no attention site"),
        ("", 0, 0, "no attention site"),
        (SITE, 4, 0, "no head 4 at decoder.1.self: choose 0 to 3"),
        (SITE, -1, 0, "no head -1 at decoder.1.self: choose 0 to 3"),
        (SITE, 0, 99, r"no position 99: choose 0 to \d+"),
        (SITE, 0, -99, "no position -99"),
    ],
)
def test_places_that_do_not_exist(site: str, head: int, query: int, said: str) -> None:
    checkpoint, trace = fresh("post")
    with pytest.raises(TraceError, match=said):
        attention_steps(checkpoint, trace, site, head, query)
    smaller = tiny.checkpoint(n_decoder_layers=1)
    with pytest.raises(TraceError, match=r"decoder.1.self is not a site of tiny: the trace is of another model"):
        attention_steps(smaller, trace, SITE, 0, 0)
