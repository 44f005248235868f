"""The heads of long texts: the small maps and the one head are those of the whole maps."""

import math

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.analysis import (
    Kind,
    TraceNumbers,
    head_maps,
    head_overview,
    kinds,
    n_layers,
    sinks,
    site_name,
)
from vizformer.analysis.heads import measures
from vizformer.analysis.heads.maps import records_of
from vizformer.analysis.heads.measures import records_overview
from vizformer.components.contract import THUMBNAIL, pools, shades, thumbnails
from vizformer.model import Cell, Edit, Trace, Transformer
from vizformer.model.records import weights_of

N = 300  # tokens: pools of 9 and of 10 cells
WINDOW = {"sliding_window": 40, "sliding_layers": (1,)}
KINDS_OF_MODEL = {
    "encoder and decoder": ("encoder-decoder", {}),
    "causal, learned": ("decoder-only", {"positions": "learned"}),
    "rope, shared keys": ("decoder-only", tiny.LLAMA),
    "window in one layer": ("decoder-only", {**tiny.LLAMA, **WINDOW}),
    "alibi": ("decoder-only", tiny.ALIBI),
    "buckets": ("encoder-decoder", tiny.T5_1),
    "both directions": ("encoder-only", tiny.BERT),
}


def traced(architecture: str, options: dict[str, object], edit: Edit | None = None) -> Trace:
    torch.manual_seed(5)
    model = Transformer(tiny.config(architecture, max_positions=N, **options)).eval()
    trace = Trace()
    ids = torch.randint(4, 29, (1, N))
    rows = (ids, ids[:, : N // 2]) if architecture == "encoder-decoder" else (ids,)
    with torch.inference_mode():
        model(*rows, trace=trace, edit=edit)
    return trace


def assert_like_the_whole_maps(trace: Trace) -> None:
    for kind in kinds(trace):
        maps = head_maps(trace, kind)
        queries, keys = maps.weights.shape[2:]
        small = shades(head_overview(trace, kind, pools(queries), pools(keys)).largest)
        assert small.shape == (*maps.weights.shape[:2], THUMBNAIL, THUMBNAIL)
        # another order of the sums in float32 may round to the neighbouring one of 256 shades
        assert np.abs(small.astype(int) - thumbnails(maps.weights)).max() <= 1
        assert (small == thumbnails(maps.weights)).mean() > 0.999
        heads = TraceNumbers(trace).heads(kind)
        reasons = heads.blocked()
        np.testing.assert_array_equal(np.broadcast_to(reasons, maps.reasons.shape), maps.reasons)
        for layer in range(n_layers(trace, kind)):
            some = [heads.pattern(layer, head, range(100, 140), range(90, 133)) for head in range(heads.shape[1])]
            np.testing.assert_allclose(
                some, maps.weights[layer, :, 100:140, 90:133], atol=1e-6
            )  # other sizes, other sums
            rows = trace[site_name(kind, layer)].of_queries(100, 140)
            np.testing.assert_array_equal(rows.reason(0), trace[site_name(kind, layer)].reason(0)[100:140])
            np.testing.assert_array_equal(heads.pattern(layer, 3), maps.weights[layer, 3])
            np.testing.assert_array_equal(heads.scores(layer, 3), maps.scores[layer, 3])


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_small_maps_and_one_head_are_those_of_the_whole_maps(name: str) -> None:
    assert_like_the_whole_maps(traced(*KINDS_OF_MODEL[name]))


def test_rows_that_see_nothing_are_empty_in_the_small_maps() -> None:
    blocked = Edit(
        cells=tuple(Cell("decoder.0.self.mask", (row, key), -math.inf) for row in range(10) for key in range(N))
    )
    trace = traced("decoder-only", {}, blocked)
    assert_like_the_whole_maps(trace)
    small = head_overview(trace, "decoder", pools(N), pools(N)).largest
    assert (small[0, :, 0] == 0).all()
    assert (small[1, :, 0, 0] > 0).all()


@pytest.mark.parametrize(("n", "passes"), [(40, 2), (N, 14)])
def test_a_short_text_takes_one_pass_over_each_layer_and_a_long_one_few_numbers_at_once(monkeypatch, n, passes) -> None:
    trace, held = traced("decoder-only", {}), list[int]()
    monkeypatch.setattr(
        measures, "weights_of", lambda *given: held.append((found := weights_of(*given)).numel()) or found
    )
    records = [one.of_queries(0, n) for one in records_of(trace, "decoder")]
    records_overview(records, pools(n), pools(N))
    assert len(held) == passes
    assert max(held) <= measures.AT_ONCE


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_the_measures_are_those_of_the_whole_maps(name: str) -> None:
    trace = traced(*KINDS_OF_MODEL[name])
    for kind in kinds(trace):
        weights = head_maps(trace, kind).weights.astype(float)
        n_q, n_k = weights.shape[2:]
        found = head_overview(trace, kind, pools(n_q), pools(n_k)).measures
        entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1).mean(-1)
        np.testing.assert_allclose(found.entropy, entropy, atol=1e-4)
        np.testing.assert_allclose(found.first, weights[..., 0].mean(-1), atol=1e-5)
        np.testing.assert_allclose(found.last, weights[..., -1].mean(-1), atol=1e-5)
        np.testing.assert_allclose(found.received, weights.mean(-2), atol=1e-5)
        if kind == "cross":
            assert [found.distance, found.previous, found.own, found.next] == [None] * 4
            continue
        apart = np.abs(np.subtract.outer(np.arange(n_q), np.arange(n_k)))
        np.testing.assert_allclose(found.distance, (weights * apart).sum(-1).mean(-1), rtol=1e-4)
        diagonals = {step: np.diagonal(weights, step, 2, 3) for step in (-1, 0, 1)}
        np.testing.assert_allclose(found.previous, diagonals[-1].mean(-1), atol=1e-5)
        np.testing.assert_allclose(found.own, diagonals[0][..., 1:].mean(-1), atol=1e-5)
        np.testing.assert_allclose(found.next, diagonals[1].mean(-1), atol=1e-5)


def test_rows_that_see_nothing_do_not_count_in_the_measures() -> None:
    blocked = Edit(
        cells=tuple(Cell("decoder.0.self.mask", (row, key), -math.inf) for row in range(10) for key in range(N))
    )
    trace = traced("decoder-only", {}, blocked)
    weights = head_maps(trace, "decoder").weights.astype(float)
    found = head_overview(trace, "decoder", pools(N), pools(N)).measures
    np.testing.assert_allclose(found.first[0], weights[0, :, 10:, 0].mean(-1), atol=1e-5)
    entropy = -(weights[0, :, 10:] * np.log(np.where(weights[0, :, 10:] > 0, weights[0, :, 10:], 1))).sum(-1).mean(-1)
    np.testing.assert_allclose(found.entropy[0], entropy, atol=1e-4)


def test_a_key_that_many_heads_look_at_is_a_sink() -> None:
    received = np.full((2, 5, 40), 0.01, np.float32)
    received[1, 2, 7] = 0.4  # one head of ten
    received[:, :2, 3] = 0.5  # four
    received[0, 0, 9] = 0.29
    assert sinks(received) == (3, 7)
    short = np.full((2, 5, 2), 0.5, np.float32)  # two tokens share the attention: neither is a sink
    assert sinks(short) == ()


def test_masks_are_sent_once_where_all_layers_have_the_same() -> None:
    assert TraceNumbers(traced("decoder-only", {})).heads("decoder").blocked().shape == (N, N)
    windowed = traced("decoder-only", {**tiny.LLAMA, **WINDOW})
    assert TraceNumbers(windowed).heads("decoder").blocked().shape == (2, N, N)
    assert TraceNumbers(traced("decoder-only", {"n_decoder_layers": 1})).heads("decoder").blocked().shape == (N, N)


def by_numpy(trace: Trace, kind: Kind, layer: int, head: int) -> np.ndarray:
    """The weights that follow from the operands, in float64."""
    found = TraceNumbers(trace).heads(kind).operands(layer, head)
    assert found is not None
    scores = found.q.astype(float) @ found.k.astype(float).T
    if found.by_distance is not None:
        query, key = np.indices(scores.shape)
        scores += found.by_distance[key - query + len(scores) - 1]
    reasons = TraceNumbers(trace).heads(kind).blocked()
    scores[(reasons if reasons.ndim == 2 else reasons[layer]) > 0] = -np.inf
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(top), top, 0))
    return powers / np.maximum(powers.sum(-1, keepdims=True), 1e-300)  # a row that sees nothing has no weights


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_the_map_follows_from_the_operands(name: str) -> None:
    trace = traced(*KINDS_OF_MODEL[name])
    for kind in kinds(trace):
        for layer in range(n_layers(trace, kind)):
            whole = TraceNumbers(trace).heads(kind).pattern(layer, 3)
            np.testing.assert_allclose(by_numpy(trace, kind, layer, 3), whole, atol=2e-6)


def test_a_number_set_in_the_mask_has_no_operands() -> None:
    half = Edit(cells=(Cell("decoder.0.self.mask", (20, 3), -1.5),))
    trace = traced("decoder-only", {}, half)
    assert TraceNumbers(trace).heads("decoder").operands(0, 1) is None
    assert TraceNumbers(trace).heads("decoder").operands(1, 1) is not None
    blocked = Edit(cells=(Cell("decoder.0.self.mask", (20, 3), -math.inf),))
    assert TraceNumbers(traced("decoder-only", {}, blocked)).heads("decoder").operands(0, 1) is not None
