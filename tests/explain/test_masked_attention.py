"""A mask laid over a head: its own and others, each proved by an independent computation."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests import tiny
from vizformer.explain import masked_attention
from vizformer.model import Reason
from vizformer.model.masks import causal_mask, padding_mask, window_mask


@pytest.mark.parametrize(
    ("architecture", "changes"), [("encoder-decoder", {}), ("decoder-only", tiny.LLAMA), ("encoder-only", tiny.BERT)]
)
def test_its_own_mask_is_proved_by_the_models_own_z(architecture: str, changes: dict[str, object]) -> None:
    target = "I have a cat." if architecture == "encoder-decoder" else None
    trace = tiny.checkpoint(architecture, **changes).trace("我有一只猫。", target=target)
    for site in trace.sites:
        found = masked_attention(trace[site], 1)
        assert found.own
        assert found.proof.holds
        np.testing.assert_allclose(found.weights, trace[site].pattern(1).numpy(), atol=1e-6)
        assert np.array_equal(found.bias == -np.inf, found.reasons > 0)


@pytest.mark.parametrize("changes", [tiny.ALIBI, tiny.T5])
def test_a_position_bias_is_part_of_the_scores(changes: dict[str, object]) -> None:
    trace = tiny.checkpoint("decoder-only", **changes).trace("我有一只猫。")
    found = masked_attention(trace["decoder.1.self"], 2)
    assert found.proof.holds
    other = masked_attention(trace["decoder.1.self"], 2, window_mask(len(found.scores), 1))
    assert not other.own
    assert other.proof.holds


def test_another_mask_is_proved_by_the_fused_call() -> None:
    trace = tiny.checkpoint("encoder-only", **tiny.BERT).trace("我有一只猫。")
    record = trace["encoder.0.self"]
    mask = window_mask(record.q.shape[1], 1)
    found = masked_attention(record, 2, mask)
    assert not found.own
    assert found.proof.holds
    expected = torch.softmax(record.scores(2).double() + mask.bias[0, 0], dim=-1).numpy()
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)


def test_blocked_open_and_blind_are_told_from_the_reasons() -> None:
    trace = tiny.checkpoint("encoder-only").trace("我有一只猫。")
    record = trace["encoder.0.self"]
    n = record.q.shape[1]
    found = masked_attention(record, 0, padding_mask(torch.arange(n)[None] >= n - 2))
    assert found.padding_keys == (*[False] * (n - 2), True, True)
    assert found.n_open == n * (n - 2)
    assert found.blocked.tolist() == [list(found.padding_keys)] * n
    assert found.blind == ()
    everything = masked_attention(record, 0, padding_mask(torch.ones(1, n, dtype=torch.bool)))
    assert (everything.blind, everything.n_open) == (tuple(range(n)), 0)
    causal = masked_attention(record, 0, causal_mask(n))
    assert not any(causal.padding_keys)  # what is blocked there is the future
    assert (causal.reasons[0, 1:] == Reason.FUTURE).all()


def test_the_telling_row_spreads_its_weights_most_among_those_that_may_be_chosen() -> None:
    record = tiny.checkpoint("decoder-only").trace("我有一只猫。")["decoder.0.self"]
    found = masked_attention(record, 0)
    n = len(found.weights)
    telling = found.telling_row()
    assert telling is not None
    i, seen = telling
    largest = found.weights.max(axis=1)
    assert largest[i] == largest[1 : n - 1].min()  # row 0 sees one key, the last row all of them
    assert sorted(seen) == list(range(i + 1))
    assert seen[0] == found.weights[i].argmax()
    assert [found.scores[i, key] for key in seen] == sorted(found.scores[i, : i + 1], reverse=True)
    other = found.telling_row(unused=(i,))
    assert other is not None
    assert other[0] == min((row for row in range(1, n - 1) if row != i), key=lambda row: largest[row])
    alone = found.telling_row(unused=range(n - 1))
    assert alone is not None
    assert alone[0] == n - 1  # nothing better is left
    assert found.telling_row(unused=range(n)) is None
    everything = masked_attention(record, 0, padding_mask(torch.ones(1, n, dtype=torch.bool)))
    assert everything.telling_row() is None


def test_the_causal_mask_of_pytorch_is_ours() -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind()
    ours = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(5).bias)
    torch.testing.assert_close(ours, F.scaled_dot_product_attention(q, k, v, is_causal=True))
