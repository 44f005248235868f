"""Linear attention: both ways of bracketing agree, the causal form sees no later key, and the counts are PyTorch's."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from tests.bundled import load
from vizformer.explain.attention_without_softmax import bracketing, is_causal, linear_attention, phi, state

TEXTS = {"zh-en": "他昨天在学校里学中文。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}


def test_phi_is_elu_plus_one() -> None:
    x = torch.linspace(-30, 30, 401, dtype=torch.float64)
    np.testing.assert_allclose(phi(x.numpy()), (F.elu(x) + 1).numpy(), atol=1e-12)


@pytest.mark.parametrize("model", TEXTS)
@pytest.mark.sample(1)
def test_both_ways_agree_at_every_head(model: str) -> None:
    trace = load(model).trace(TEXTS[model])
    for site in trace.sites:
        record = trace[site]
        causal = site.startswith("decoder") and site.endswith("self")
        for head in range(record.n_heads):
            assert is_causal(record, head) == causal
            found = linear_attention(record, head)
            assert found.proof.holds, (site, head)
            q, k, v = record.q[head], record.k[record.kv_head(head)], record.v[record.kv_head(head)]
            products = (F.elu(q) + 1) @ (F.elu(k) + 1).T
            products = products.tril() if causal else products
            own = products / products.sum(-1, keepdim=True) @ v
            np.testing.assert_allclose(found.z, own.numpy(), atol=1e-4)
            np.testing.assert_allclose(found.weights.sum(1), 1, atol=1e-5)
            np.testing.assert_allclose(found.softmax, record.pattern(head).numpy(), atol=1e-7)


def test_the_state_of_a_query_gives_its_row() -> None:
    trace = load("stories").trace(TEXTS["stories"])
    record, head, query = trace["decoder.1.self"], 3, 4
    kv = record.kv_head(head)
    k = phi(record.k[kv, : query + 1].double().numpy())
    q = phi(record.q[head, query].double().numpy())
    row = q @ state(record, head, query) / (q @ k.sum(0))
    np.testing.assert_allclose(row, linear_attention(record, head).z[query])


def test_it_is_another_function_than_the_softmax() -> None:
    trace = load("stories").trace(TEXTS["stories"])
    found = linear_attention(trace["decoder.2.self"], 0)
    assert found.apart[0] == pytest.approx(0, abs=1e-5)  # the first query sees one key: its weight is 1 either way
    assert found.apart[1:].min() > 0.01


@pytest.mark.parametrize(("n", "d"), [(7, 32), (32, 32), (100, 16)])
def test_the_counts_are_those_of_pytorch(n: int, d: int) -> None:
    q, k, v = torch.randn(3, n, d)
    found = bracketing(n, d)
    for product, count in (
        (lambda: (q @ k.T) @ v, found.through_weights),
        (lambda: q @ (k.T @ v), found.through_state),
    ):
        with FlopCounterMode(display=False) as counter:
            product()
        assert counter.get_total_flops() // 2 == count
    assert (found.through_weights < found.through_state) == (n < d)
