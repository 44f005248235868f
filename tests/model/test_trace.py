"""What a forward leaves behind: names, identities, and that looking changes nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
import torch
import torch.nn.functional as F

from tests import tiny
from vizformer.errors import TraceError
from vizformer.model import Trace, Transformer

SITES = {
    "encoder-decoder": [
        "encoder.0.self",
        "encoder.1.self",
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.1.self",
        "decoder.1.cross",
    ],
    "decoder-only": ["decoder.0.self", "decoder.1.self"],
    "encoder-only": ["encoder.0.self", "encoder.1.self"],
}
RESIDUALS = {
    "encoder-only": [
        "encoder.0.pre",
        "encoder.0.mid",
        "encoder.0.post",
        "encoder.1.pre",
        "encoder.1.mid",
        "encoder.1.post",
        "encoder.final",
    ],
    "decoder-only": [
        "decoder.0.pre",
        "decoder.0.mid",
        "decoder.0.post",
        "decoder.1.pre",
        "decoder.1.mid",
        "decoder.1.post",
        "decoder.final",
    ],
}
RESIDUALS["encoder-decoder"] = RESIDUALS["encoder-only"] + [
    "decoder.0.pre",
    "decoder.0.mid_self",
    "decoder.0.mid_cross",
    "decoder.0.post",
    "decoder.1.pre",
    "decoder.1.mid_self",
    "decoder.1.mid_cross",
    "decoder.1.post",
    "decoder.final",
]
kinds = pytest.mark.parametrize(("architecture", "norm_order"), list(product(tiny.STACKS, ("post", "pre"))))


def traced(
    architecture: str, norm_order: str = "post", n: int = 7, m: int = 5
) -> tuple[Transformer, list[torch.Tensor], torch.Tensor, Trace]:
    model = tiny.model(architecture, norm_order=norm_order, final_norm=norm_order == "pre")
    ids = [tiny.ids(n), tiny.ids(m, seed=1)][: 2 if architecture == "encoder-decoder" else 1]
    trace = Trace()
    with torch.inference_mode():
        return model, ids, model(*ids, trace=trace), trace


@kinds
def test_names_are_as_documented(architecture: str, norm_order: str) -> None:
    *_, trace = traced(architecture, norm_order)
    assert list(trace.sites) == SITES[architecture]
    assert list(trace.residuals) == RESIDUALS[architecture]


@kinds
def test_looking_changes_nothing(architecture: str, norm_order: str) -> None:
    model, ids, logits, trace = traced(architecture, norm_order)
    with torch.inference_mode():
        assert torch.equal(model(*ids), logits)
    assert torch.equal(trace.logits, logits[0])


@kinds
@torch.inference_mode()
def test_identities(architecture: str, norm_order: str) -> None:
    model, ids, _, trace = traced(architecture, norm_order)
    for site in trace.sites:
        record = trace[site]
        n_q = ids[-1].shape[1] if site.startswith("decoder") else ids[0].shape[1]
        n_k = ids[0].shape[1] if site.endswith("cross") else n_q
        assert (record.n_heads, record.scale) == (4, 0.5)
        for head in range(4):
            pattern, scores = record.pattern(head), record.scores(head)
            assert pattern.shape == scores.shape == (n_q, n_k)
            tiny.assert_close(pattern.sum(-1), torch.ones(n_q), 1e-6)
            assert (pattern >= 0).all()
            tiny.assert_close(scores, record.q[head] @ record.k[head].T / 2, 1e-6)
            assert scores.isfinite().all()  # before the mask
            tiny.assert_close(pattern @ record.v[head], record.z(head), 1e-6)
            future = torch.ones(n_q, n_k, dtype=torch.bool).triu(1)
            if site.startswith("decoder") and site.endswith("self"):
                assert (pattern[future] == 0).all()
                assert torch.equal(record.reason(head) == 2, future)
            else:
                assert (pattern > 0).all()
                assert (record.reason(head) == 0).all()
                assert record.reason(head).dtype == torch.uint8
    for stack in ("encoder", "decoder"):
        if f"{stack}.final" in trace.residuals:
            assert torch.equal(trace.residual(f"{stack}.0.post"), trace.residual(f"{stack}.1.pre"))
            final = trace.residual(f"{stack}.1.post")
            if norm_order == "pre":
                final = getattr(model, stack).final_norm(final)
            assert torch.equal(trace.residual(f"{stack}.final"), final)
    last = "decoder.final" if "decoder.final" in trace.residuals else "encoder.final"
    tiny.assert_close(trace.logits, model.logits(trace.residual(last)), 1e-6)


@kinds
@torch.inference_mode()
def test_the_sublayers_lie_between_the_residuals(architecture: str, norm_order: str) -> None:
    """From z back to the residual stream: W_O over all heads, add, norm."""
    model, _, _, trace = traced(architecture, norm_order)
    for site in trace.sites:
        stack, layer, kind = site.split(".")
        block = getattr(model, stack).layers[int(layer)]
        middle = "mid_self" if f"{stack}.{layer}.cross" in trace.sites else "mid"
        before, after = ("pre", middle) if kind == "self" else ("mid_self", "mid_cross")
        attention, norm = getattr(block, f"{kind}_attention"), getattr(block, f"{kind}_norm")
        z = torch.cat([trace[site].z(head) for head in range(4)], dim=-1)
        x = trace.residual(f"{stack}.{layer}.{before}")
        out = x + F.linear(z, attention.W_O.weight, attention.W_O.bias)
        tiny.assert_close(trace.residual(f"{stack}.{layer}.{after}"), norm(out) if norm_order == "post" else out)


def test_a_fully_blocked_row_gives_zero() -> None:
    model, trace = tiny.model("encoder-only"), Trace()
    with torch.inference_mode():
        logits = model(tiny.ids(4), padding=torch.ones(1, 4, dtype=torch.bool), trace=trace)
    assert logits.isfinite().all()
    for head in range(4):
        assert (trace["encoder.0.self"].pattern(head) == 0).all()
        assert (trace["encoder.0.self"].z(head) == 0).all()
        assert (trace["encoder.0.self"].reason(head) == 1).all()


def test_only_the_first_item_of_a_batch_is_kept() -> None:
    model, trace = tiny.model(), Trace()
    source, target = torch.cat([tiny.ids(6), tiny.ids(6, seed=8)]), torch.cat([tiny.ids(5), tiny.ids(5, seed=9)])
    padding = tiny.right_padded([4, 6])
    with torch.inference_mode():
        model(source, target, padding=padding, trace=trace)
        model(source[:1], target[:1], padding=padding[:1], trace=(alone := Trace()))
    tiny.assert_close(trace.logits, alone.logits)
    for name in alone.residuals:
        tiny.assert_close(trace.residual(name), alone.residual(name))
    for site in alone.sites:
        tiny.assert_close(trace[site].pattern(2), alone[site].pattern(2))
        assert torch.equal(trace[site].reason(2), alone[site].reason(2))


def test_one_model_serves_many_threads() -> None:
    """Eight forwards at once, over and over: each trace holds its own text's numbers, bit for bit."""
    model, workers = tiny.model(), 8
    inputs = [(tiny.ids(5 + i, seed=i), tiny.ids(4 + i, seed=50 + i)) for i in range(workers)]
    expected = []
    with torch.inference_mode():
        for source, target in inputs:
            model(source, target, trace=(trace := Trace()))
            expected.append(trace)
    together = threading.Barrier(workers, timeout=60)

    def work(index: int) -> list[Trace]:
        traces = []
        for _ in range(5):
            together.wait()
            with torch.inference_mode():
                model(*inputs[index], trace=(trace := Trace()))
            traces.append(trace)
        return traces

    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(work, range(workers)))
    for alone, traces in zip(expected, results, strict=True):
        for trace in traces:
            assert trace.sites == alone.sites
            assert torch.equal(trace.logits, alone.logits)
            for site in alone.sites:
                assert torch.equal(trace[site].q, alone[site].q)
                assert torch.equal(trace[site].v, alone[site].v)
            for name in alone.residuals:
                assert torch.equal(trace.residual(name), alone.residual(name))


def test_the_model_keeps_nothing() -> None:
    """A trace is an argument: after the forward the model is as before."""
    model = tiny.model()
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    with torch.inference_mode():
        model(tiny.ids(4), tiny.ids(3), trace=Trace())
    assert {name: set(vars(module)) for name, module in model.named_modules()} == before
    assert not any(module._forward_hooks for module in model.modules())


def test_a_trace_needs_no_inference_mode_and_holds_no_graph() -> None:
    model, trace = tiny.model(), Trace()
    logits = model(tiny.ids(4), tiny.ids(3), trace=trace)
    assert logits.requires_grad
    kept = [*trace.residuals.values(), trace.logits, *(trace[site].q for site in trace.sites)]
    assert not any(tensor.requires_grad for tensor in kept)


def test_bytes_kept() -> None:
    """For n tokens: per layer q, k, v, mask and four residuals at most; no n x n map per head."""
    *_, trace = traced("decoder-only", n=32)
    n, d, layers = 32, 16, 2
    floats = layers * 3 * n * d + (3 * layers + 1) * n * d + n * 29 + n * n  # one causal mask serves every layer
    assert trace.nbytes <= 4 * floats + n * n
    assert trace.nbytes >= 4 * (layers * 3 * n * d + (2 * layers + 1) * n * d + n * 29)
    assert trace.nbytes < 4 * layers * 4 * n * n + trace.nbytes / 2  # what the maps alone would take
    assert Trace().nbytes == 0


def test_the_first_point_that_is_not_finite_is_named() -> None:
    model, ids, _, trace = traced("encoder-decoder")
    assert trace.first_not_finite() is None
    with torch.inference_mode():
        model.decoder.layers[1].cross_attention.W_O.bias[0] = torch.inf  # one number of a row, the others stay finite
        model(*ids, trace=(trace := Trace()))
    assert trace.first_not_finite() == "decoder.1.mid_cross"
    trace = traced("decoder-only")[-1]
    for name in ("decoder.1.post", "decoder.final"):  # one row, the others are finite to the end
        trace._residuals[name] = trace.residual(name).clone()
        trace._residuals[name][2, 0] = torch.inf
    assert trace.first_not_finite() == "decoder.1.post"


def test_errors_name_value_rule_and_way_out() -> None:
    *_, trace = traced("encoder-decoder")
    with pytest.raises(
        TraceError, match=r"no attention site 'decoder.9.self'. It has: encoder.0.self, .*decoder.1.cross"
    ):
        trace["decoder.9.self"]
    with pytest.raises(TraceError, match=r"no residual stream 'decoder.0.mid'. It has: .*decoder.0.mid_self"):
        trace.residual("decoder.0.mid")
    record = trace["decoder.0.cross"]
    for ask in (record.scores, record.pattern, record.z, record.reason):
        for head in (4, -1):
            with pytest.raises(TraceError, match=rf"no head {head} at decoder.0.cross: choose 0 to 3"):
                ask(head)
    with pytest.raises(TraceError, match="empty: pass it to a forward"):
        Trace().logits  # noqa: B018
    with pytest.raises(TraceError, match="no attention site"):
        Trace()["decoder.0.self"]


def test_what_was_traced_cannot_be_replaced_from_outside() -> None:
    *_, trace = traced("decoder-only")
    with pytest.raises(TypeError):
        trace.residuals["decoder.0.pre"] = torch.zeros(1)  # type: ignore[index]
    with pytest.raises(AttributeError):
        trace["decoder.0.self"].q = torch.zeros(1)  # type: ignore[misc]
