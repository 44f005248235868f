"""The same mask in four notations gives the same numbers; each mistake does the harm it is said to do."""

import math

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.analysis.masks import (
    PRECISIONS,
    agreement,
    blind_output,
    blind_row,
    given_away,
    in_every_precision,
    in_precision,
    kept_by_blocked,
    left_over,
    masked_after,
    mixed_up,
    naive_softmax,
    nan_rows,
    notations,
    poisoned,
    results,
    zeroed,
)
from vizformer.explain import masked_attention
from vizformer.explain.arrays import softmax

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


def test_mixed_up_shows_the_future_alone_and_the_last_row_is_nan() -> None:
    found = mixed_up(SCORES, BLOCKED)
    assert (found[:-1][~BLOCKED[:-1]] == 0).all()
    np.testing.assert_allclose(found[:-1].sum(axis=1), 1)
    assert np.isnan(found[-1]).all()
    assert nan_rows(found) == 1
    found[0, 0] = np.nan  # not the whole row
    assert nan_rows(found) == 1


def test_after_the_softmax_rows_no_longer_sum_to_one_and_the_future_is_felt() -> None:
    found = masked_after(SCORES, BLOCKED)
    right = naive_softmax(np.where(BLOCKED, -np.inf, SCORES))
    sums = found.sum(axis=1)
    np.testing.assert_array_equal(sums, left_over(SCORES, BLOCKED))
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


def test_what_blocked_cells_keep_is_their_share_of_the_softmax_over_zeros() -> None:
    e = np.exp(np.where(BLOCKED, 0.0, SCORES))
    np.testing.assert_allclose(kept_by_blocked(SCORES, BLOCKED), (e * BLOCKED).sum(axis=1) / e.sum(axis=1))
    assert kept_by_blocked(SCORES, BLOCKED)[-1] == 0  # the last row blocks nothing


def test_one_blind_row_is_nan_and_the_others_are_right() -> None:
    found = blind_row(SCORES, BLOCKED, 2)
    assert np.isnan(found[2]).all()
    others = [0, 1, 3, 4]
    np.testing.assert_allclose(found[others], softmax(np.where(BLOCKED, -np.inf, SCORES))[others])


def test_every_way_is_tried_in_every_precision() -> None:
    found = in_every_precision(SCORES[1], BLOCKED[1])
    assert len({(o.how, o.value, o.precision) for o in found}) == len(found) == 15
    assert [(o.how, o.value) for o in found if o.refused] == [("fill", -1e9)]  # in float16
    for o in found:
        assert repr(o) == repr(in_precision(SCORES[1], BLOCKED[1], o.precision, o.how, o.value))  # (NaN is not NaN)


def test_the_fused_call_gives_zero_where_all_is_blocked() -> None:
    record = tiny.checkpoint("decoder-only").trace("我有一只猫。")["decoder.0.self"]
    blocked = masked_attention(record, 0).reasons > 0
    blocked[3] = True
    z = results(record, 0, blocked)["additive"]
    assert (z[3] == 0).all()
    assert np.isfinite(z).all()
    assert blind_output(record, 0, masked_attention(record, 0).blocked, 3) == 0
