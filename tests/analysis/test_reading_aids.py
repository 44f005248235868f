"""Keys left out, heads put together, a score taken apart: each held against a loop over the whole maps."""

import math

import numpy as np
import pytest

from tests.analysis.test_head_overview import KINDS_OF_MODEL, N, by_numpy, traced
from vizformer.analysis import (
    TraceNumbers,
    aggregates,
    head_maps,
    head_overview,
    kinds,
    layer_aggregate,
    n_layers,
    pair_terms,
    site_name,
    without_keys,
)
from vizformer.components.contract import pools
from vizformer.model import Cell, Edit, Reason, Trace
from vizformer.model.records import AttentionRecord

NOTHING_SEEN = Edit(
    cells=tuple(Cell("decoder.0.self.mask", (row, key), -math.inf) for row in range(10) for key in range(N))
)


def every_kind(name: str) -> list[tuple[Trace, str]]:
    trace = traced(*KINDS_OF_MODEL[name])
    return [(trace, kind) for kind in kinds(trace)]


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(2)
def test_without_keys_the_others_share_all_of_the_attention(name: str) -> None:
    left_out = (0, 17, 18)
    for trace, kind in every_kind(name):
        before, after = head_maps(trace, kind), head_maps(without_keys(trace, kind, left_out), kind)
        expected = before.weights.astype(float)
        expected[..., left_out] = 0
        total = expected.sum(-1, keepdims=True)
        expected = np.divide(expected, total, out=np.zeros_like(expected), where=total > 0)
        np.testing.assert_allclose(after.weights, expected, atol=2e-5)
        np.testing.assert_array_equal(after.scores, before.scores)
        changed = before.reasons != after.reasons
        assert (after.reasons[changed] == Reason.LEFT_OUT).all()
        np.testing.assert_array_equal(np.unique(np.nonzero(changed)[2]), left_out)
        assert (before.reasons[changed] == Reason.VISIBLE).all()
        assert head_maps(trace, kind).reasons.max() < Reason.LEFT_OUT  # the trace itself is as it was


@pytest.mark.parametrize("name", ["window in one layer", "alibi", "both directions"])
def test_what_is_computed_elsewhere_follows_the_keys_left_out(name: str) -> None:
    for trace, kind in every_kind(name):
        other = without_keys(trace, kind, (0,))
        whole = head_maps(other, kind)
        found = head_overview(other, kind, pools(N), pools(N))
        assert found.measures.first.max() == 0
        np.testing.assert_allclose(
            found.largest[..., 0],
            np.maximum.reduceat(np.maximum.reduceat(whole.weights, pools(N), axis=2), pools(N), axis=3)[..., 0],
            atol=1e-5,
        )
        for layer in range(n_layers(trace, kind)):
            assert TraceNumbers(other).heads(kind).operands(layer, 3) is not None
            np.testing.assert_allclose(by_numpy(other, kind, layer, 3), whole.weights[layer, 3], atol=2e-6)
            np.testing.assert_array_equal(TraceNumbers(other).heads(kind).pattern(layer, 3), whole.weights[layer, 3])
        assert (TraceNumbers(other).heads(kind).blocked()[..., 0] > 0).all()


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(2)
def test_mean_and_largest_are_those_of_all_heads(name: str) -> None:
    for trace, kind in every_kind(name):
        maps = head_maps(trace, kind).weights
        np.testing.assert_allclose(np.stack(list(aggregates(trace, kind, "mean"))), maps.mean(1), atol=1e-6)
        # heads one by one and all at once round apart with some processors
        np.testing.assert_allclose(np.stack(list(aggregates(trace, kind, "max"))), maps.max(1), rtol=1e-6, atol=1e-7)


def rolled_out(maps: np.ndarray) -> list[np.ndarray]:
    """Every cell by itself: the shares of the layer below, mixed by half of what is read and half of what was there."""
    n = maps.shape[-1]
    found: list[np.ndarray] = []
    for layer in maps.astype(float):
        below, here = found[-1] if found else np.eye(n), np.zeros((n, n))
        for i in range(n):
            shares = [0.5 * np.mean([head[i, j] for head in layer]) + (0.5 if i == j else 0.0) for j in range(n)]
            for j in range(n):
                here[i] += shares[j] / sum(shares) * below[j]
        found.append(here)
    return found


@pytest.mark.parametrize("name", ["causal, learned", "rope, shared keys", "window in one layer", "both directions"])
@pytest.mark.sample(1)
def test_the_rollout_is_that_of_a_loop_over_all_cells(name: str) -> None:
    ((trace, kind),) = every_kind(name)
    found = list(aggregates(trace, kind, "rollout"))
    small = np.stack([layer[:, :40, :40] for layer in head_maps(trace, kind).weights])
    if name == "both directions":  # no token is seen by later ones alone: the whole text, without the loop
        whole = head_maps(trace, kind).weights.mean(1).astype(float)
        mixed = [(layer + np.eye(N)) / 2 for layer in whole]
        np.testing.assert_allclose(found[1], mixed[1] @ mixed[0], atol=1e-6)
    else:
        for one, expected in zip(found, rolled_out(small), strict=True):
            np.testing.assert_allclose(one[:40, :40], expected, atol=1e-6)
    for one in found:
        np.testing.assert_allclose(one.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(2)
def test_the_rollout_of_a_whole_text_is_the_product_of_its_layers(name: str) -> None:
    for trace, kind in every_kind(name):
        if kind == "cross":
            continue
        before = np.eye(len(head_maps(trace, kind).weights[0, 0]))
        for layer, found in zip(head_maps(trace, kind).weights, aggregates(trace, kind, "rollout"), strict=True):
            mixed = (layer.mean(0, dtype=float) + np.eye(len(before))) / 2
            before = mixed / mixed.sum(-1, keepdims=True) @ before
            np.testing.assert_allclose(found, before, atol=1e-6)


def test_one_layer_is_put_together_alone_as_among_all() -> None:
    trace = traced(*KINDS_OF_MODEL["encoder and decoder"])
    for kind in kinds(trace):
        for how in ("mean", "max"):
            for layer, found in enumerate(aggregates(trace, kind, how)):
                np.testing.assert_array_equal(layer_aggregate(trace, kind, how, layer), found)


def test_a_row_that_sees_nothing_keeps_what_it_has_in_the_rollout() -> None:
    trace = traced("decoder-only", {}, NOTHING_SEEN)
    first = next(aggregates(trace, "decoder", "rollout"))
    np.testing.assert_array_equal(first[:10], np.eye(N)[:10])


def test_cross_attention_has_no_rollout() -> None:
    trace = traced("encoder-decoder", {})
    with pytest.raises(ValueError, match="two"):
        next(aggregates(trace, "cross", "rollout"))


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_the_terms_of_a_pair_sum_to_its_score(name: str) -> None:
    for trace, kind in every_kind(name):
        for layer, head, query, key in ((0, 0, 0, 0), (1, 3, 140, 120), (1, 2, 99, 0)):
            found = pair_terms(trace, site_name(kind, layer), head, query, key)
            heads = TraceNumbers(trace).heads(kind)
            assert found.terms.sum() + found.position_bias == pytest.approx(found.score, abs=1e-12)
            assert found.score == pytest.approx(heads.scores(layer, head)[query, key], abs=1e-5)
            assert found.weight == pytest.approx(heads.pattern(layer, head)[query, key], abs=2e-6)
            np.testing.assert_allclose(found.terms, found.query * found.key * trace[site_name(kind, layer)].scale)
            assert (np.diff(found.terms[found.order]) <= 0).all()
            assert found.proof.holds
            assert not found.proof.direct


def test_the_proof_of_a_pair_fails_where_the_model_made_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, fused = traced("decoder-only", {}), AttentionRecord.z
    assert pair_terms(trace, "decoder.1.self", 2, 60, 3).proof.holds
    monkeypatch.setattr(AttentionRecord, "z", lambda record, head: fused(record, head) + 1e-3)
    assert not pair_terms(trace, "decoder.1.self", 2, 60, 3).proof.holds
