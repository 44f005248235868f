"""The scores of previous-token heads and induction heads, on patterns made by hand and on models."""

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.analysis import head_maps, head_scores, induction_score, previous_token_score, repeated_tokens
from vizformer.analysis.heads.induction import repeatable, strongest_head
from vizformer.errors import TraceError
from vizformer.model import Trace


def pattern(n, target):
    """Every query looks at `target(query)` alone; where that is no position, at token 0."""
    made = np.zeros((n, n), np.float32)
    for query in range(n):
        key = target(query)
        made[query, key if 0 <= key <= query else 0] = 1.0
    return made


def test_heads_made_by_hand():
    """One head of each kind, and one that looks at itself; 4 tokens, then the same 4 again."""
    n, period = 8, 4
    heads = np.stack(
        [
            pattern(n, lambda i: i - 1),
            pattern(n, lambda i: i - period + 1),
            pattern(n, lambda i: i),
            pattern(n, lambda i: i - period),
        ]
    )
    # Query 1 of the induction head has nowhere to look and rests on token 0, which is the one before it.
    np.testing.assert_allclose(previous_token_score(heads), [1, 1 / 7, 0, 1 / 7])
    np.testing.assert_allclose(induction_score(heads, period), [0, 1, 0, 0])


def test_the_strongest_head_is_found_by_layer_and_head():
    assert strongest_head(np.array([[0.1, 0.5, 0.2], [0.4, 0.0, 0.75]])) == (1, 2, 0.75)


def test_a_start_mark_moves_the_period():
    head = pattern(9, lambda i: i - 3)  # 4 tokens twice, after a start mark
    assert induction_score(head, 4, start=1) == 1.0
    assert induction_score(head[1:, 1:], 4) == 1.0
    half = head.copy()
    half[6] = 1 / 9  # one of the four queries of the second time looks everywhere
    assert induction_score(half, 4, start=1) == pytest.approx((3 + 1 / 9) / 4)


def test_uniform_causal_attention_is_close_to_nothing():
    causal = np.tril(np.ones((1, 2, 40, 40), np.float32))
    causal /= causal.sum(-1, keepdims=True)
    assert previous_token_score(causal).shape == (1, 2)
    assert induction_score(causal, 20) == pytest.approx(np.mean(1 / np.arange(21, 41)))


@pytest.mark.parametrize(("n", "period", "start"), [(4, 4, 0), (4, 1, 0), (5, 4, 1), (4, 2, -1)])
def test_nothing_is_repeated(n, period, start):
    with pytest.raises(ValueError, match="nothing is repeated"):
        induction_score(np.eye(n, dtype=np.float32), period, start)


def test_one_token_has_none_before_it():
    with pytest.raises(ValueError, match="needs two"):
        previous_token_score(np.ones((1, 1), np.float32))


@pytest.mark.parametrize(("architecture", "kind"), [("decoder-only", "decoder"), ("encoder-only", "encoder")])
def test_scores_of_a_model_are_the_mean_over_its_sequences(architecture, kind):
    model = tiny.model(architecture)
    ids = repeated_tokens(torch.arange(3, 29), sequences=3, period=6, seed=1)
    found = head_scores(model, ids, 6)
    maps = []
    for row in ids:
        trace = Trace()
        with torch.inference_mode():
            model(row[None], trace=trace)
        maps.append(head_maps(trace, kind).weights)
    np.testing.assert_allclose(found.induction, np.mean([induction_score(m, 6) for m in maps], 0), atol=1e-6)
    np.testing.assert_allclose(found.previous_token, np.mean([previous_token_score(m) for m in maps], 0), atol=1e-6)
    assert found.induction.shape == (2, 4)


def test_two_stacks_are_refused():
    with pytest.raises(TraceError, match="one stack"):
        head_scores(tiny.model(), torch.zeros(1, 8, dtype=torch.long), 4)


def test_as_many_tokens_are_repeated_as_the_positions_hold() -> None:
    short = tiny.checkpoint("decoder-only", max_positions=12)
    candidates, period = repeatable(short.model.config.vocab_size, short.tokenizer, 12, 8)
    assert period == 6
    assert len(candidates)
    assert not any(short.tokenizer.is_special(int(id)) for id in candidates)


def test_repeated_tokens():
    ids = repeated_tokens(torch.arange(5, 15), sequences=4, period=10, times=3, seed=2)
    assert ids.shape == (4, 30)
    assert torch.equal(ids[:, :10], ids[:, 20:])
    assert all(sorted(row[:10].tolist()) == list(range(5, 15)) for row in ids)
    assert torch.equal(ids, repeated_tokens(torch.arange(5, 15), sequences=4, period=10, times=3, seed=2))
    assert repeated_tokens(torch.arange(2), sequences=1, period=5).shape == (1, 10)
