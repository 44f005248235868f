"""The same mask in four notations gives the same numbers; each mistake does the harm it is said to do."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests import tiny
from vizformer.analysis.mask_mistakes import (
    PRECISIONS,
    agreement,
    given_away,
    in_precision,
    masked_after,
    mixed_up,
    naive_softmax,
    notations,
    poisoned,
    results,
    zeroed,
)
from vizformer.analysis.masked import masked_attention
from vizformer.explain.arrays import softmax
from vizformer.web.lessons.masks.mask_conventions import CODES
from vizformer.web.lessons.masks.wording import NOTATIONS

BLOCKED = ~np.tri(5, dtype=bool)
SCORES = np.random.default_rng(0).normal(size=(5, 5)) * 2


def test_four_notations_of_one_mask() -> None:
    found = notations(BLOCKED)
    assert (found["tutorial"] == 0).tolist() == BLOCKED.tolist()
    assert found["module"].tolist() == BLOCKED.tolist()
    assert found["fused"].tolist() == (~BLOCKED).tolist()
    assert np.isneginf(found["additive"]).tolist() == BLOCKED.tolist()
    assert not found["additive"][~BLOCKED].any()


@pytest.mark.parametrize("changes", [{}, tiny.LLAMA, tiny.ALIBI])
def test_every_call_gives_the_same_z_from_its_own_notation(changes: dict[str, object]) -> None:
    trace = tiny.checkpoint("decoder-only", **changes).trace("我有一只猫。")
    record = trace["decoder.1.self"]
    blocked = record.reason(1).numpy() > 0
    for name, difference in agreement(record, 1, blocked).items():
        assert difference < 1e-5, name
    if not changes:
        for z in results(record, 1, blocked).values():
            np.testing.assert_allclose(z, record.z(1).numpy(), atol=1e-5)


@pytest.mark.parametrize("name", NOTATIONS)
def test_the_code_beside_each_notation_runs_and_gives_the_same(name: str) -> None:
    q, k, v = torch.randn(3, 1, 5, 8, dtype=torch.float64).unbind()
    attention = nn.MultiheadAttention(8, 1, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        attention.in_proj_weight.copy_(torch.eye(8).repeat(3, 1))
        attention.out_proj.weight.copy_(torch.eye(8))
    scope = {
        "torch": torch,
        "math": math,
        "F": F,
        "q": q,
        "k": k,
        "v": v,
        "attention": attention,
        "scores": q @ k.transpose(-1, -2) / math.sqrt(8),
        "mask": torch.from_numpy(notations(BLOCKED)[name]),
    }
    exec(NOTATIONS[name], scope)
    torch.testing.assert_close(scope["z"], F.scaled_dot_product_attention(q, k, v, is_causal=True))


def test_mixed_up_shows_the_future_alone_and_the_last_row_is_nan() -> None:
    found = mixed_up(SCORES, BLOCKED)
    assert (found[:-1][~BLOCKED[:-1]] == 0).all()
    np.testing.assert_allclose(found[:-1].sum(axis=1), 1)
    assert np.isnan(found[-1]).all()


def test_after_the_softmax_rows_no_longer_sum_to_one_and_the_future_is_felt() -> None:
    found = masked_after(SCORES, BLOCKED)
    right = naive_softmax(np.where(BLOCKED, -np.inf, SCORES))
    sums = found.sum(axis=1)
    assert (sums[:-1] < 1).all()
    assert sums[-1] == pytest.approx(1)
    np.testing.assert_allclose(1 - sums, given_away(SCORES, BLOCKED), atol=1e-12)
    np.testing.assert_allclose(found / sums[:, None], right)  # divided by the sum it would be right again
    changed = SCORES.copy()
    changed[0, 4] += 3  # a score of the future
    assert masked_after(changed, BLOCKED)[0, 0] != pytest.approx(found[0, 0])
    np.testing.assert_array_equal(naive_softmax(np.where(BLOCKED, -np.inf, changed)), right)


def test_a_zero_keeps_a_share() -> None:
    found = zeroed(SCORES, BLOCKED)
    assert (found[BLOCKED] > 0).all()
    assert found[0, 1] / found[0, 0] == pytest.approx(1 / math.exp(SCORES[0, 0]))


def test_a_row_with_nothing_left_is_nan_and_poisons_every_row() -> None:
    scores = np.where(BLOCKED, -np.inf, SCORES)
    weights = naive_softmax(scores)
    scores[2] = -np.inf
    assert np.isnan(naive_softmax(scores)[2]).all()
    assert np.isfinite(naive_softmax(scores)[[0, 1, 3, 4]]).all()
    assert poisoned(weights, 2).all()  # rows 0 and 1 do not even see position 2


@pytest.mark.parametrize("precision", PRECISIONS)
def test_minus_infinity_is_right_in_every_precision(precision: str) -> None:
    found = in_precision(SCORES[1], BLOCKED[1], precision, "fill", -math.inf)  # type: ignore[arg-type]
    assert not found.refused
    assert found.blocked_weight == 0
    assert math.isnan(found.blind_weight)


def test_half_precision_refuses_or_overflows() -> None:
    refused = in_precision(SCORES[1], BLOCKED[1], "float16", "fill", -1e9)
    assert refused.refused
    with pytest.raises(RuntimeError):
        torch.zeros(2, dtype=torch.float16).masked_fill(torch.tensor([True, False]), -1e9)
    added = in_precision(SCORES[1], BLOCKED[1], "float16", "add", -1e9)
    assert added.stored == -math.inf
    assert (added.blocked_weight, math.isnan(added.blind_weight)) == (0, True)
    assert in_precision(SCORES[1], BLOCKED[1], "bfloat16", "add", -1e9).stored == pytest.approx(-1e9, rel=0.01)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_finite_number_looks_at_what_is_blocked_where_all_is_blocked(precision: str) -> None:
    found = in_precision(SCORES[1], BLOCKED[1], precision, "fill", None)  # type: ignore[arg-type]
    assert found.blocked_weight == 0
    assert found.blind_weight == pytest.approx(1, abs=0.01)


def test_the_fused_call_gives_zero_where_all_is_blocked() -> None:
    record = tiny.checkpoint("decoder-only").trace("我有一只猫。")["decoder.0.self"]
    blocked = masked_attention(record, 0).reasons > 0
    blocked[3] = True
    z = results(record, 0, blocked)["additive"]
    assert (z[3] == 0).all()
    assert np.isfinite(z).all()


@pytest.mark.parametrize("mistake", CODES)
def test_the_code_beside_each_mistake_does_what_is_shown(mistake: str) -> None:
    scores = np.where(BLOCKED, -np.inf, SCORES) if mistake == "blind" else SCORES
    if mistake == "blind":
        scores[2] = -np.inf
    scope = {"torch": torch, "math": math, "scores": torch.from_numpy(scores), "blocked": torch.from_numpy(BLOCKED)}
    exec(CODES[mistake], scope)
    expected = {
        "after": lambda: masked_after(SCORES, BLOCKED),
        "zero": lambda: zeroed(SCORES, BLOCKED),
        "half": lambda: softmax(np.where(BLOCKED, -np.inf, SCORES)),
        "blind": lambda: softmax(scores),
    }[mistake]()
    np.testing.assert_allclose(scope["weights"].numpy(), expected)  # type: ignore[attr-defined]
