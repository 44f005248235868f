"""The gated delta rule and the state space: by their recurrence, by their map, with their state."""

import pytest
import torch

from tests import tiny
from vizformer.errors import TraceError
from vizformer.model import Cache, Cell, Edit, Trace
from vizformer.model.state_rule import CHUNK, StateGates, apply_state_rule, effective_map


def numbers(n: int, heads: int = 2, d_key: int = 5, d_value: int = 3) -> tuple[torch.Tensor, ...]:
    made = torch.Generator().manual_seed(1)
    q, k = (torch.nn.functional.normalize(torch.randn(1, heads, n, d_key, generator=made), dim=-1) for _ in "qk")
    v = torch.randn(1, heads, n, d_value, generator=made)
    beta, decay = torch.rand(1, heads, n, generator=made), -0.3 * torch.rand(1, heads, n, generator=made)
    return q, k, v, beta, decay


SKIP = torch.tensor([0.7, -1.5])


def recurrence(q, k, v, beta, decay, skip=None):
    """Token by token, in float64."""
    q, k, v, beta, decay = (x[0].double() for x in (q, k, v, beta, decay))
    found = torch.zeros_like(v)
    for head in range(len(q)):
        state = torch.zeros(k.shape[-1], v.shape[-1]).double()
        for i in range(q.shape[1]):
            state = state * decay[head, i].exp()
            held = state.T @ k[head, i] if skip is None else 0.0
            state = state + torch.outer(k[head, i], beta[head, i] * (v[head, i] - held))
            found[head, i] = state.T @ q[head, i] + (0.0 if skip is None else skip[head] * v[head, i])
    return found


@pytest.mark.parametrize("skip", [None, SKIP], ids=["delta", "space"])
@pytest.mark.parametrize("n", [1, CHUNK, 2 * CHUNK + 9])
def test_rule_and_map_give_what_the_recurrence_gives(n: int, skip: torch.Tensor | None) -> None:
    """|M v - o| / |o| at most 1e-6 with a map in float32."""
    q, k, v, beta, decay = numbers(n)
    expected = recurrence(q, k, v, beta, decay, skip)
    found, state = apply_state_rule(q, k, v, beta, decay, skip=skip)
    assert float((found[0] - expected).norm() / expected.norm()) < 1e-6
    assert state.shape == (1, 2, 5, 3)
    M = effective_map(q[0], k[0], StateGates(beta[0], decay[0], skip=skip)).float()
    assert float((M @ v[0] - expected).norm() / expected.norm()) < 1e-6
    assert torch.equal(M.triu(1), torch.zeros_like(M))  # no token reads a later one
    some = effective_map(q[0, :, n // 2 :], k[0], StateGates(beta[0], decay[0], n // 2, skip))
    tiny.assert_close(some.float(), M[:, n // 2 :])


def test_a_key_written_twice_holds_the_second_value_and_not_the_sum() -> None:
    k = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]])
    v = torch.tensor([[[[3.0], [5.0]]]])
    o, _ = apply_state_rule(k, k, v, torch.ones(1, 1, 2), torch.zeros(1, 1, 2))
    assert o.flatten().tolist() == [3.0, 5.0]
    M = effective_map(k[0], k[0], StateGates(torch.ones(1, 2), torch.zeros(1, 2)))
    assert M[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_state_space_adds_what_is_written_twice() -> None:
    k, v = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]]), torch.tensor([[[[3.0], [5.0]]]])
    o, _ = apply_state_rule(k, k, v, torch.ones(1, 1, 2), torch.zeros(1, 1, 2), skip=torch.zeros(1))
    assert o.flatten().tolist() == [3.0, 8.0]


@pytest.mark.parametrize("skip", [None, SKIP], ids=["delta", "space"])
def test_the_state_in_parts_is_that_of_the_whole(skip: torch.Tensor | None) -> None:
    parts, state, found = numbers(90), None, []
    for at in (slice(0, 1), slice(1, 70), slice(70, 90)):
        o, state = apply_state_rule(*(x[:, :, at] for x in parts), state, skip)
        found.append(o)
    whole, last = apply_state_rule(*parts, skip=skip)
    tiny.assert_close(torch.cat(found, dim=2), whole)
    tiny.assert_close(state, last)


def test_the_bytes_of_a_state_do_not_grow_with_the_text() -> None:
    model = tiny.model("decoder-only", **{**tiny.HYBRID, "state_layers": (0, 1)})
    sizes = []
    for n in (5, 30):
        cache = Cache()
        with torch.inference_mode():
            model.decode(tiny.ids(n), cache=cache)
        sizes.append(cache.nbytes)
    assert sizes[0] == sizes[1] == 2 * 4 * (6 * 5 * 7 + (2 * 3 * 5 + 6 * 7) * 3)


@pytest.mark.parametrize(("options", "n_heads"), [(tiny.HYBRID, 6), (tiny.MAMBA2, 4)])
def test_the_map_of_a_traced_layer_mixes_what_the_layer_has_mixed(options: dict, n_heads: int) -> None:
    model, trace = tiny.model("decoder-only", **options), Trace()
    with torch.inference_mode():
        model(tiny.ids(9), trace=trace)
    record = trace["decoder.0.self"]
    assert record.n_heads == n_heads
    for head in range(n_heads):
        M, z = record.pattern(head), record.z(head)
        assert float((M @ record.v[head] - z).norm() / z.norm()) < 2e-6
        assert float(M.min()) < 0
        shares = record.shares(head)
        tiny.assert_close(shares.sum(-1), torch.ones(9))
        tiny.assert_close(record.of_queries(3, 7).pattern(head), M[3:7])
        tiny.assert_close(record.of_queries(3, 7).z(head), z[3:7])
    read = torch.cat([record.read(head) for head in range(n_heads)], dim=1)
    layer = model.decoder.layers[0]
    brought = layer.self_attention.W_O(read)
    tiny.assert_close(trace.residual("decoder.0.pre") + brought, trace.residual("decoder.0.mid"))
    if n_heads == 4:  # as many as the other layers have
        return
    few = trace["decoder.1.self"].padded(6)
    tiny.assert_close(few.pattern(3), trace["decoder.1.self"].pattern(3))
    assert float(few.pattern(5).abs().max()) == 0.0


def test_what_has_no_meaning_without_a_softmax_is_refused_in_words() -> None:
    model, trace = tiny.model("decoder-only", **tiny.HYBRID), Trace()
    with torch.inference_mode():
        model(tiny.ids(5), trace=trace)
        with pytest.raises(TraceError, match="no scores go through a softmax"):
            trace["decoder.0.self"].scores(0)
        with pytest.raises(TraceError, match="no mask blocks them"):
            model(tiny.ids(5), edit=Edit((Cell("decoder.0.self.mask", (2, 1), 0.0),)))
        changed = model(tiny.ids(5), edit=Edit((Cell("decoder.0.self.v", (2, 1, 0), 9.0),)))
    assert not torch.equal(changed, model(tiny.ids(5)))
