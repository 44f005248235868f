"""What the Attention page computes, at the edges, held against the whole maps each time.

One token, the model's limit, rows that see nothing, shared keys, windows, 400 heads, 1,000 tokens of source.
"""

import math

import numpy as np
import pytest
import torch

from tests import tiny
from tests.analysis.test_head_overview import by_numpy
from vizformer.analysis import (
    TraceNumbers,
    aggregates,
    head_maps,
    head_overview,
    kinds,
    pair_terms,
    site_name,
    without_keys,
)
from vizformer.components.attention import pack, pack_heads
from vizformer.components.contract import pools, shades, thumbnails
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit, Trace, Transformer

WINDOW = {**tiny.LLAMA, "sliding_window": 40, "sliding_layers": (0, 1)}
LIMIT = 200


def traced(architecture: str, n: int, target: int = 0, edit: Edit | None = None, **options: object) -> Trace:
    torch.manual_seed(5)
    longest = max(n, target)
    model = Transformer(tiny.config(architecture, **{"max_positions": longest, **options})).eval()
    trace = Trace()
    rows = [torch.randint(4, 29, (1, length)) for length in (n, target) if length]
    with torch.inference_mode():
        model(*rows, trace=trace, edit=edit)
    return trace


def assert_all_views_agree(trace: Trace) -> None:
    for kind in kinds(trace):
        maps = head_maps(trace, kind)
        n_q, n_k = maps.weights.shape[2:]
        assert np.isfinite(maps.weights).all()
        found = head_overview(trace, kind, pools(n_q), pools(n_k))
        assert np.abs(shades(found.largest).astype(int) - thumbnails(maps.weights)).max() <= 1
        measures = found.measures
        assert all(np.isfinite(one).all() for one in (measures.entropy, measures.first, measures.received))
        assert (measures.entropy <= math.log(n_k) + 1e-5).all()
        layer, head = maps.weights.shape[0] - 1, maps.weights.shape[1] - 1
        operands = TraceNumbers(trace).heads(kind).operands(layer, head)
        assert operands is not None
        whole = maps.weights[layer, head]
        np.testing.assert_allclose(by_numpy(trace, kind, layer, head), whole, atol=2e-6)
        payload = pack(TraceNumbers(trace).heads(kind), chosen=(layer, head), limit=1)
        np.testing.assert_array_equal(payload.columns["q"], operands.q.ravel())
        assert payload.shape == maps.weights.shape
        assert pack_heads(maps.weights, maps.scores, maps.reasons, chosen=(layer, head), limit=1).shape == payload.shape
        np.testing.assert_allclose(list(aggregates(trace, kind, "mean"))[layer], maps.weights[layer].mean(0), atol=1e-6)
        without = head_maps(without_keys(trace, kind, (0,)), kind).weights
        sums = without.sum(-1)
        assert without[..., 0].max() == 0
        assert (np.isclose(sums, 1, atol=1e-5) | (sums == 0)).all()
        pair = pair_terms(trace, site_name(kind, layer), head, n_q - 1, 0)
        assert pair.proof.holds
        assert pair.weight == pytest.approx(whole[n_q - 1, 0], abs=2e-6)


@pytest.mark.parametrize("options", [{}, tiny.LLAMA, WINDOW, tiny.ALIBI], ids=["causal", "gqa", "window", "alibi"])
@pytest.mark.parametrize("n", [1, 2, 33, LIMIT])
@pytest.mark.sample(5)
def test_one_token_two_and_as_many_as_the_model_reads(n: int, options: dict[str, object]) -> None:
    assert_all_views_agree(traced("decoder-only", n, max_positions=LIMIT, **options))


def test_one_token_more_than_the_model_reads_says_by_how_many() -> None:
    model = tiny.model("decoder-only", max_positions=LIMIT)
    with pytest.raises(TraceError, match=r"The text has 201 tokens; this model accepts 200\. Shorten it by 1\."):
        model(tiny.ids(LIMIT + 1), trace=Trace())


def test_a_thousand_tokens_of_source_and_a_few_of_target() -> None:
    assert_all_views_agree(traced("encoder-decoder", 1000, 7))


def test_rows_and_columns_that_are_blocked_altogether() -> None:
    rows = tuple(Cell("decoder.0.self.mask", (row, key), -math.inf) for row in (0, 50, 51, 199) for key in range(LIMIT))
    columns = tuple(Cell("decoder.0.self.mask", (row, 20), -math.inf) for row in range(LIMIT))
    trace = traced("decoder-only", LIMIT, edit=Edit(cells=rows + columns))
    assert (head_maps(trace, "decoder").weights[0][:, [0, 50, 199]] == 0).all()
    assert pair_terms(trace, "decoder.0.self", 1, 50, 3).weight == 0
    assert_all_views_agree(trace)


@pytest.mark.sweep
def test_four_hundred_heads() -> None:
    trace = traced("decoder-only", 40, n_heads=20, d_model=80, n_decoder_layers=20)
    assert head_overview(trace, "decoder", pools(40), pools(40)).measures.entropy.shape == (20, 20)
    assert_all_views_agree(trace)
