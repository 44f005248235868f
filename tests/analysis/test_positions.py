"""The sinusoidal code, tokens in another order, and what schemes do to scores."""

import math

import numpy as np
import pytest
import torch

from vizformer.analysis import positions
from vizformer.model import Trace
from vizformer.model.positions import sinusoidal_encoding
from vizformer.options import Positions

SCHEMES: tuple[Positions, ...] = ("none", "sinusoidal", "learned", "rope", "alibi", "relative")
IDS = [5, 6, 7, 5, 9, 11]


def test_waves_are_the_code_between_its_positions() -> None:
    dims = [0, 1, 6, 15]
    found = positions.waves(16, dims, np.arange(40.0))
    assert np.abs(found - sinusoidal_encoding(40, 16).numpy()[:, dims].T).max() < 1e-6
    assert found[:, 0].tolist() == [0, 1, 0, 1]
    lengths = 2 * math.pi / positions.frequencies(16)
    assert np.all(np.diff(lengths) > 0)  # low dimensions fast, high ones slow
    assert lengths[0] == pytest.approx(2 * math.pi)
    between = positions.waves(16, [0], np.array([math.pi / 2]))
    assert between[0, 0] == pytest.approx(1.0)


@pytest.mark.parametrize("k", [0, 1, 7])
def test_the_shift_is_a_rotation_that_leads_k_positions_on(k: int) -> None:
    turn = positions.shift_matrix(k, 16)
    rows = sinusoidal_encoding(60, 16).double().numpy()
    assert np.abs(rows[k:] - rows[: 60 - k] @ turn.T).max() < 1e-6
    assert np.abs(turn @ turn.T - np.eye(16)).max() < 1e-12
    assert np.linalg.det(turn) == pytest.approx(1.0)
    for even in range(0, 16, 2):  # nothing outside the 2 x 2 blocks
        turn[even : even + 2, even : even + 2] = 0
    assert not turn.any()


def test_the_promises_of_the_code_and_that_they_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    found = positions.code_facts(100, 32, 3)
    assert found.largest <= 1.0
    assert found.norms == pytest.approx((4.0, 4.0), abs=1e-6)
    assert found.closest[0] > 0.5
    assert found.spread < 1e-5
    assert found.asymmetry == 0
    assert found.shift_error < 1e-6
    by_distance = positions.product_by_distance(32, 20)
    rows = sinusoidal_encoding(50, 32).double().numpy()
    assert by_distance == pytest.approx([rows[13] @ rows[13 + apart] for apart in range(21)], abs=1e-5)
    gap = math.sqrt(2 * (16 - by_distance[found.closest[1]]))
    assert found.closest[0] == pytest.approx(gap, abs=1e-5)

    wrong = torch.randn(100, 32, generator=torch.Generator().manual_seed(0))
    wrong[7] = wrong[40]
    monkeypatch.setattr(positions, "sinusoidal_encoding", lambda n, d: wrong)
    other = positions.code_facts(100, 32, 3)
    assert other.largest > 1
    assert other.closest == (pytest.approx(0.0, abs=1e-6), 33)
    assert other.spread > 1
    assert other.shift_error > 0.1


def test_schemes_share_their_weights_and_a_seed_is_a_model() -> None:
    models = {scheme: positions.small_model(scheme, 20, causal=True) for scheme in SCHEMES}
    weights = dict(models["none"].named_parameters())
    for model in models.values():
        for name, parameter in weights.items():
            assert torch.equal(dict(model.named_parameters())[name], parameter)
    again = positions.small_model("relative", 20, causal=True)
    for one, other in zip(again.parameters(), models["relative"].parameters(), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(
        positions.small_model("none", 20, causal=True, seed=1).embedding.weight, models["none"].embedding.weight
    )
    tables = positions.position_tables(models["learned"])
    copied = positions.small_model("learned", 20, causal=True, seed=3, tables_of=models["learned"])
    assert torch.equal(positions.position_tables(copied)[0], tables[0])


@pytest.mark.parametrize("order", [[5, 4, 3, 2, 1, 0], [2, 0, 5, 1, 4, 3]])
@pytest.mark.sample(1)
def test_only_without_positions_and_masks_rows_follow_their_tokens(order: list[int]) -> None:
    mirrored = order == sorted(order, reverse=True)
    for causal in (False, True):
        for scheme in SCHEMES:
            found = positions.shuffle(positions.small_model(scheme, 20, causal=causal), IDS, order)
            # ALiBi knows how far but not on which side: a mirror image is the same to it
            blind = not causal and (scheme == "none" or (scheme == "alibi" and mirrored))
            assert (found.moved.max() < 1e-5) == blind, (scheme, causal)
            assert (found.sets < 1e-5) == blind, (scheme, causal)
            assert (found.n_unmoved == 6) == blind, (scheme, causal)
            rows = found.after[[order.index(i) for i in range(6)]]
            assert found.moved == pytest.approx(np.abs(found.before - rows).max(axis=1))


def test_a_causal_model_keeps_the_row_of_a_first_token_that_stays() -> None:
    found = positions.shuffle(positions.small_model("none", 20, causal=True), IDS, [0, 5, 4, 3, 2, 1])
    assert found.moved[0] == 0
    assert found.moved[1:].min() > 0.01
    assert found.n_unmoved == 1
    with pytest.raises(ValueError, match="not a permutation"):
        positions.shuffle(positions.small_model("none", 20, causal=True), IDS, [0, 0, 1, 2, 3, 4])


def test_effects_on_scores() -> None:
    found = {s: positions.score_effect(positions.small_model(s, 20, causal=True), IDS) for s in SCHEMES}
    below = np.tril(np.ones((6, 6))) > 0
    for scheme, effect in found.items():
        assert effect.shape == (4, 6, 6)
        assert np.isnan(effect[:, ~below]).all()
        assert (np.abs(effect[:, below]).max() < 1e-6) == (scheme == "none")
    distance = np.arange(6)[:, None] - np.arange(6)
    for head in range(4):
        slope = 2.0 ** (-2 * (head + 1))
        assert found["alibi"][head][below] == pytest.approx(-slope * distance[below], abs=1e-5)
    model = positions.small_model("relative", 20, causal=True)
    table = positions.position_tables(model)[0].numpy()
    buckets = positions.bucket_map(6, 32, 128, both_sides=False)
    for head in range(4):
        assert found["relative"][head][below] == pytest.approx(table[buckets[below], head], abs=1e-4)
        assert positions.bias_by_distance(model, 5)[head] == pytest.approx(table[:6, head])
    assert positions.score_effect(positions.small_model("alibi", 20, causal=False), IDS)[0, 0, 5] < -1
    with pytest.raises(ValueError, match="adds nothing to the scores"):
        positions.bias_by_distance(positions.small_model("rope", 20, causal=True), 5)


def test_a_rotary_score_is_the_models_and_depends_on_the_distance_only() -> None:
    model = positions.small_model("rope", 20, causal=True)
    trace = Trace()
    model(torch.tensor([IDS]), trace=trace)
    rows = positions.unturned(model, IDS)
    for head, i, j in ((0, 3, 1), (2, 5, 5), (3, 4, 0)):
        pair = (rows[0][head, i], rows[1][head, j], 2)
        here = positions.rotary_pair(*pair, (i, j))
        assert here.score == pytest.approx(float(trace["decoder.0.self"].scores(head)[i, j]), abs=1e-5)
        q = trace["decoder.0.self"].q[head, i].numpy()
        assert here.query[1] == pytest.approx(q[[2, 10]], abs=1e-5)
        assert np.linalg.norm(here.query[1]) == pytest.approx(np.linalg.norm(here.query[0]))
        assert here.part == pytest.approx(here.query[1] @ here.key[1])
        moved = positions.rotary_pair(*pair, (i + 50, j + 50))
        assert (moved.score, moved.part) == pytest.approx((here.score, here.part), abs=1e-9)
        apart = positions.rotary_pair(*pair, (i + 3, j))
        assert abs(apart.score - here.score) > 1e-3


def test_smoothing_does_not_look_across_the_border() -> None:
    curve = np.concatenate([np.ones(64), np.full(192, 5.0)])
    assert np.allclose(positions.running_mean(curve, 33, 64), curve)
    assert np.allclose(positions.running_mean(curve[:64], 33, 64), 1.0)
    risen = positions.running_mean(np.arange(10.0), 5, 6)
    assert [risen[2], risen[5], risen[6]] == [2.0, 4.0, 7.0]


def test_another_order_is_never_the_one_that_it_was() -> None:
    assert positions.other_order(4, "reverse", 3) == (3, 2, 1, 0)
    for seed in range(20):
        drawn = positions.other_order(3, "random", seed)
        assert sorted(drawn) == [0, 1, 2] != list(drawn)
    assert positions.other_order(1, "random", 0) == (0,)


def test_products_and_cosines_are_those_of_the_rows() -> None:
    rows = sinusoidal_encoding(6, 16).double().numpy()
    found = positions.code_products(6, 16)
    assert found[2, 5] == pytest.approx(float(rows[2] @ rows[5]))
    assert np.allclose(found[0], positions.product_by_distance(16, 5), atol=1e-6)
    assert np.allclose(positions.cosines(3 * rows), found / 8)  # every row has the length sqrt(d / 2)


def test_a_pair_of_dimensions_turns_once_in_its_wavelength() -> None:
    turned = 2 * np.pi / positions.frequencies(16)
    assert [positions.wavelength(16, pair) for pair in range(8)] == pytest.approx(turned.tolist())


@pytest.mark.parametrize("scheme", ["sinusoidal", "learned"])
def test_the_rows_of_the_input_add_up_to_it(scheme: Positions) -> None:
    model = positions.small_model(scheme, 50, causal=True)
    embedded, added = positions.input_rows(model, [5, 3, 8])
    assert np.allclose(8 * embedded + added, model.embed(torch.tensor([[5, 3, 8]]))[0], atol=1e-6)
    with pytest.raises(ValueError, match="nothing"):
        positions.input_rows(positions.small_model("rope", 50, causal=True), [5])


@pytest.mark.parametrize("n", [1, 2, 9])
def test_the_penalties_of_alibi_are_what_its_model_takes_off(n: int) -> None:
    shares, slope = positions.alibi_penalties(n, 4)
    taken = -positions.bias_by_distance(positions.small_model("alibi", 20, causal=True), max(n - 1, 1))[0]
    assert slope == pytest.approx(taken[1])
    for query in range(n):
        for key in range(n):
            expected = taken[query - key] / taken[n - 1] if key < query else 0.0
            assert shares[query, key] == pytest.approx(expected)
