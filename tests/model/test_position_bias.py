"""ALiBi and T5's buckets: against loops written from the papers, and what they do to a whole model."""

from typing import Any

import pytest
import torch

from tests import eager_transformer, tiny
from vizformer.errors import TraceError
from vizformer.generation import Sampling, stream
from vizformer.model import Cache, Edit, Trace, Transformer
from vizformer.model.positions import alibi_bias, alibi_slopes, relative_bias, relative_buckets, relative_positions

BOTH = pytest.mark.parametrize("options", [tiny.ALIBI, tiny.T5], ids=["alibi", "T5"])
STACKS = pytest.mark.parametrize("architecture", tiny.STACKS)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 4, 6, 8, 12, 16, 25, 40])
def test_slopes_against_a_geometric_series(n_heads: int) -> None:
    expected = torch.tensor([eager_transformer.slope(head, n_heads) for head in range(n_heads)])
    torch.testing.assert_close(alibi_slopes(n_heads), expected, rtol=1e-6, atol=0)


def test_the_slopes_of_the_paper() -> None:
    """Section 3: 8 heads have 1/2^1 to 1/2^8; 16 heads 1/2^0.5 to 1/2^8.  12 heads borrow from 16."""
    eight = [2.0**-h for h in range(1, 9)]
    assert alibi_slopes(8).tolist() == eight
    assert alibi_slopes(16)[[0, -1]].tolist() == pytest.approx([2**-0.5, 2**-8])
    assert alibi_slopes(12).tolist() == pytest.approx([*eight, 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5])


@pytest.mark.parametrize("both_sides", [True, False])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (4, 8), (8, 6), (8, 16), (10, 30), (32, 256), (20, 1000)])
def test_buckets_against_whole_numbers(buckets: int, furthest: int, both_sides: bool) -> None:
    relative = torch.arange(-2 * furthest, 2 * furthest + 1)[None]
    found = relative_buckets(relative, buckets, furthest, both_sides=both_sides)
    expected = [eager_transformer.bucket(r, buckets, furthest, both_sides) for r in relative[0].tolist()]
    assert found[0].tolist() == expected
    assert found.min() == 0
    # A distance of 0 in the second half would be one behind the query and at it.
    assert (buckets // 2 in expected) != both_sides


def test_the_buckets_of_t5() -> None:
    """32 buckets, 128 tokens: a bucket each up to 16 (8 on each side), the last from 16 * 8^(15/16) = 112.4 on."""
    before = relative_buckets(-torch.arange(200)[None], both_sides=False)[0].tolist()
    assert before[:17] == [*range(16), 16]
    assert before[112:] == [30] + [31] * 87
    assert before == sorted(before)
    behind = relative_buckets(torch.arange(1, 200)[None], both_sides=True)[0].tolist()
    assert behind[:8] == [17, 18, 19, 20, 21, 22, 23, 24]
    assert relative_buckets(torch.arange(1, 200)[None], both_sides=False).unique().tolist() == [0]


def test_biases_cell_by_cell() -> None:
    table = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    slopes = alibi_slopes(3)
    for n_q, n_k in ((5, 5), (1, 9), (3, 9)):
        relative, alibi = relative_positions(n_q, n_k), alibi_bias(slopes, n_q, n_k)
        learned = relative_bias(table, n_q, n_k, 6, both_sides=True)
        assert alibi.shape == learned.shape == (1, 3, n_q, n_k)
        for query in range(n_q):
            for key in range(n_k):
                distance = key - (query + n_k - n_q)  # the last query stands at the last key
                assert relative[query, key] == distance
                for head in range(3):
                    assert alibi[0, head, query, key] == -slopes[head] * abs(distance)
                    assert learned[0, head, query, key] == table[eager_transformer.bucket(distance, 8, 6, True), head]


def inputs(architecture: str, n: int = 9, m: int = 8) -> list[torch.Tensor]:
    return [tiny.ids(n), tiny.ids(m, seed=1)][: 2 if architecture == "encoder-decoder" else 1]


def traced(model: Transformer, *ids: torch.Tensor) -> Trace:
    with torch.inference_mode():
        logits, quiet = model(*ids, trace=(trace := Trace())), model(*ids)
    assert torch.equal(logits, quiet)
    return trace


@STACKS
@BOTH
def test_the_bias_is_apart_from_the_mask(architecture: str, options: dict[str, Any]) -> None:
    model = tiny.model(architecture, **options)
    trace = traced(model, *inputs(architecture))
    for site in trace.sites:
        record, stack = trace[site], site.split(".")[0]
        if site.endswith("cross"):
            assert record.position_bias is None
            assert torch.equal(record.scores(1), record.content_scores(1))
            continue
        n = record.q.shape[1]
        assert torch.equal(record.position_bias, model.position_bias(stack, n)[0])
        assert record.position_bias.isfinite().all()
        assert (record.bias is None) == (stack == "encoder")
        future = torch.ones(n, n, dtype=torch.bool).triu(1)
        for head in range(4):
            assert torch.equal(record.scores(head), record.content_scores(head) + record.position_bias[head])
            assert torch.equal(record.reason(head) != 0, future & (stack == "decoder"))
            tiny.assert_close(record.pattern(head) @ record.v[record.kv_head(head)], record.z(head), 1e-6)
    places = [trace[site].position_bias for site in trace.sites if site.startswith("decoder") and "self" in site]
    assert len({place.data_ptr() for place in places}) <= 1  # one for all layers, kept once


@STACKS
@BOTH
def test_only_the_distance_counts(architecture: str, options: dict[str, Any]) -> None:
    """The same token everywhere: what is left in the scores depends on j - i alone, and does depend on it."""
    model = tiny.model(architecture, **options)
    trace = traced(model, *(torch.full_like(ids, 7) for ids in inputs(architecture)))
    for site in (f"{stack}.0.self" for stack in ("encoder", "decoder") if f"{stack}.0.self" in trace.sites):
        for head in range(4):
            scores = trace[site].scores(head)
            tiny.assert_close(scores[1:, 1:], scores[:-1, :-1], 1e-6)
            assert scores[-1].unique().numel() > 2


@BOTH
def test_a_model_with_them_tells_orders_apart(options: dict[str, Any]) -> None:
    """Without positions an encoder gives the same rows in another order; the biases end that."""
    order = torch.tensor([3, 0, 4, 1, 2])
    for positions, same in ((options["positions"], False), ("none", True)):
        model = tiny.model("encoder-only", **{**options, "positions": positions})
        ids = tiny.ids(5)
        rows, shuffled = model(ids)[0], model(ids[:, order])[0]
        assert torch.allclose(rows[order], shuffled, atol=1e-5) == same


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
@BOTH
def test_the_future_changes_nothing(architecture: str, options: dict[str, Any]) -> None:
    model, ids = tiny.model(architecture, **options), inputs(architecture)
    other = ids[-1].clone()
    other[0, 5:] = (other[0, 5:] + 1) % 20 + 3
    one, two = (model(*ids[:-1], last) for last in (ids[-1], other))
    tiny.assert_close(one[:, :5], two[:, :5], 1e-6)
    assert not torch.allclose(one[:, 5:], two[:, 5:], atol=1e-3)


@BOTH
def test_one_token_at_a_time(options: dict[str, Any]) -> None:
    """With the cache the newest query stands at the end, not at the beginning."""
    model, ids = tiny.model("decoder-only", **options), tiny.ids(20)
    whole, cache = model.decode(ids), Cache()
    for position in range(20):
        row = model.decode(ids[:, position : position + 1], cache=cache)
        tiny.assert_close(row[0, 0], whole[0, position])


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
@BOTH
@pytest.mark.sample(1)
def test_no_table_ends_before_max_positions(architecture: str, options: dict[str, Any]) -> None:
    """max_positions is a limit of the input only: the same weights go on as far as it is set."""
    short, long = (tiny.model(architecture, max_positions=n, eos_id=None, **options) for n in (8, 40))
    assert all(torch.equal(a, b) for a, b in zip(short.parameters(), long.parameters(), strict=True))
    source = tiny.ids(6)
    ids = tiny.ids(40)
    rows = long(ids) if architecture == "decoder-only" else long(source, ids)
    assert rows.isfinite().all()
    start = ([1, 5, 6], []) if architecture == "decoder-only" else (source[0].tolist(), [1])
    cold = Sampling(temperature=0.0)
    cached, afresh = (
        [step.id for step in stream(long, *start, max_new=30, sampling=cold, edit=edit)] for edit in (None, Edit())
    )
    assert cached == afresh
    assert len(cached) == 30
    with pytest.raises(TraceError, match="this model accepts 8"):
        short(*((ids,) if architecture == "decoder-only" else (source, ids)))


def test_what_is_trained() -> None:
    """A T5 table per stack, small at the start, and every bucket that occurs gets a gradient; slopes are fixed."""
    model = Transformer(tiny.config(**tiny.T5))
    tables = [parameter for name, parameter in model.named_parameters() if "relative_bias" in name]
    assert [tuple(table.shape) for table in tables] == [(8, 4), (8, 4)]
    assert all(0.005 < float(table.detach().std()) < 0.05 for table in tables)
    model(tiny.ids(12), tiny.ids(12, seed=1)).square().sum().backward()
    encoder, decoder = (table.grad.abs().sum(1) for table in tables)
    assert (encoder > 0).tolist() == [True, True, True, True, False, True, True, True]
    assert (decoder > 0).all()
    assert not any("slopes" in name for name, _ in Transformer(tiny.config(**tiny.ALIBI)).named_parameters())
    assert "alibi_slopes" not in Transformer(tiny.config(**tiny.ALIBI)).state_dict()


def test_a_model_built_without_memory_gets_its_slopes() -> None:
    with torch.device("meta"):
        model = Transformer(tiny.config(**tiny.ALIBI))
    assert not list(model.buffers())
    model.materialise_buffers()
    assert torch.equal(model.alibi_slopes, alibi_slopes(4))


def test_half_precision_rounds_the_bias_once() -> None:
    """It is worked out in float32 (at 2049 tokens float16 no longer counts in ones), and recorded as it is added."""
    model = tiny.model("decoder-only", **tiny.ALIBI).half()
    bias = model.position_bias("decoder", 1, 2999)[0, 0, 0]
    assert bias.dtype == torch.float32
    assert bias.unique().numel() == 3000
    trace = Trace()
    model(torch.tensor([[3, 7, 5, 9]]), trace=trace)
    recorded = trace["decoder.0.self"].position_bias
    assert torch.equal(recorded, model.position_bias("decoder", 4)[0].half())


def test_a_stack_that_is_not_there() -> None:
    with pytest.raises(TraceError, match="no encoder"):
        tiny.model("decoder-only", **tiny.T5).position_bias("encoder", 3)
    with pytest.raises(TraceError, match="no decoder"):
        tiny.model("encoder-only", **tiny.T5).position_bias("decoder", 3)
    assert tiny.model(positions="rope").position_bias("encoder", 3) is None
