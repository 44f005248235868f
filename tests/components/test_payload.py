"""Heads on their way to the browser: what arrives is what was sent."""

import numpy as np
import pytest

from vizformer.components.attention import Selection
from vizformer.components.contract import Operands, thumbnails
from vizformer.components.packing import (
    HeadsPayload,
    fits,
    pack_chosen,
    pack_heads,
    pack_layer,
    pack_operands,
    quantise,
)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)


def heads(layers: int, count: int, queries: int, keys: int) -> tuple[np.ndarray, np.ndarray]:
    scores = np.random.default_rng(0).normal(size=(layers, count, queries, keys)).astype(np.float32)
    return softmax(scores), scores


def test_few_weights_arrive_unchanged() -> None:
    weights, _ = heads(2, 3, 5, 7)
    column = pack_heads(weights).columns["weights"]
    assert column.dtype == np.float32
    assert np.array_equal(column, weights.ravel())


def test_many_weights_are_off_by_at_most_half_a_step() -> None:
    weights, _ = heads(12, 12, 50, 50)
    column = pack_heads(weights).columns["weights"]
    assert column.dtype == np.uint16
    assert column.shape == (12 * 12 * 50 * 50,)
    assert np.abs(column.reshape(weights.shape) / 65535 - weights).max() <= 0.5 / 65535 + 1e-9


def test_zero_and_one_are_exact() -> None:
    assert quantise(np.array([0.0, 1.0, 0.5])).tolist() == [0, 65535, 32768]


def test_scores_and_reasons_arrive_unchanged() -> None:
    weights, scores = heads(2, 2, 4, 4)
    reasons = np.triu(np.full((4, 4), 2), 1)
    payload = pack_heads(weights, scores, reasons)
    assert payload.columns["scores"].dtype == np.float32
    assert np.array_equal(payload.columns["scores"], scores.ravel())
    assert payload.columns["reasons"].dtype == np.uint8
    assert np.array_equal(payload.columns["reasons"].reshape(4, 4), reasons)
    assert payload.complete
    assert "thumbs" not in payload.columns


def test_reasons_stay_away_where_everything_is_visible() -> None:
    assert "reasons" not in pack_heads(heads(1, 1, 3, 3)[0], None, np.zeros((3, 3), np.uint8)).columns


def test_long_sequences_get_thumbnails_that_keep_the_largest_weight() -> None:
    weights = np.zeros((1, 2, 100, 70), np.float32)
    weights[0, 1, 99, 69] = 0.25
    payload = pack_heads(weights)
    thumbs = payload.columns["thumbs"].reshape(1, 2, *payload.thumb_shape)
    assert payload.thumb_shape == (32, 32)
    assert thumbs.dtype == np.uint8
    assert thumbs[0, 1, 31, 31] == round(255 * 0.25**0.5)
    assert np.count_nonzero(thumbs) == 1


@pytest.mark.parametrize("length", [33, 64, 100, 512])
def test_every_cell_belongs_to_one_pool(length: int) -> None:
    for at in range(0, length, 7):
        row = np.zeros((1, length), np.float32)
        row[0, at] = 1.0
        thumb = thumbnails(row)
        assert thumb.shape == (1, 32)
        assert np.count_nonzero(thumb) == 1
        assert abs(int(thumb.argmax()) - at * 32 // length) <= 1


def test_a_pool_is_visible_as_soon_as_one_of_its_cells_is() -> None:
    weights, _ = heads(1, 1, 64, 64)
    reasons = np.triu(np.full((64, 64), 2, np.uint8), 1)
    payload = pack_heads(weights, None, reasons)
    small = payload.columns["thumb_reasons"].reshape(payload.thumb_shape)
    assert np.array_equal(small, np.triu(np.full((32, 32), 2), 1))  # the diagonal pools hold visible cells


def test_what_does_not_fit_becomes_thumbnails_and_the_chosen_head() -> None:
    weights, scores = heads(3, 4, 40, 50)
    payload = pack_heads(weights, scores, chosen=(2, 1), limit=100_000)
    assert not payload.complete
    assert payload.chosen == (2, 1)
    assert payload.shape == (3, 4, 40, 50)
    assert np.array_equal(payload.columns["weights"], weights[2, 1].ravel())
    assert np.array_equal(payload.columns["scores"], scores[2, 1].ravel())
    assert np.array_equal(payload.columns["thumbs"], thumbnails(weights).ravel())


def test_fits_is_the_rule_that_pack_heads_follows() -> None:
    weights, scores = heads(2, 2, 10, 10)
    assert fits(weights.shape, limit=2400)
    assert pack_heads(weights, scores, limit=2400).complete
    assert not fits(weights.shape, limit=2399)
    assert not pack_heads(weights, scores, limit=2399).complete
    assert fits(weights.shape, scored=False, limit=800)
    assert pack_heads(weights, limit=800).complete


def test_layers_that_differ_have_reasons_of_their_own() -> None:
    weights, _ = heads(2, 3, 40, 40)
    future = np.triu(np.full((40, 40), 2, np.uint8), 1)
    near = future + np.tri(40, k=-9, dtype=np.uint8) * 3
    every = np.stack([future, near])
    assert np.array_equal(pack_heads(weights, None, every).columns["reasons"], every.ravel())
    same = pack_heads(weights, None, np.stack([near, near])).columns
    assert same.keys() == pack_heads(weights, None, near).columns.keys()
    assert np.array_equal(same["reasons"], near.ravel())
    one = pack_heads(weights, None, every, chosen=(1, 2), limit=1)
    assert np.array_equal(one.columns["reasons"], near.ravel())
    assert one.columns["thumb_reasons"].shape == (2 * 32 * 32,)
    assert np.array_equal(one.columns["thumb_reasons"], pack_heads(weights, None, every).columns["thumb_reasons"])
    with pytest.raises(ValueError, match="reasons of shape"):
        pack_heads(weights, None, every[:1])


def test_one_head_at_a_time_is_the_same_as_all_at_once() -> None:
    weights, scores = heads(2, 3, 40, 40)
    reasons = np.triu(np.full((40, 40), 2, np.uint8), 1)
    at_once = pack_heads(weights, scores, reasons, chosen=(1, 2), limit=1)
    by_itself = pack_chosen(thumbnails(weights), weights[1, 2], scores[1, 2], reasons, chosen=(1, 2))
    assert at_once.columns.keys() == by_itself.columns.keys()
    for name, column in at_once.columns.items():
        assert np.array_equal(column, by_itself.columns[name]), name


def test_operands_travel_with_their_mask_as_runs() -> None:
    weights, _ = heads(2, 3, 40, 40)
    q, k = np.random.default_rng(1).normal(size=(2, 40, 8)).astype(np.float32)
    future = np.triu(np.full((40, 40), 2, np.uint8), 1)
    window = np.where(np.tril(np.ones((40, 40)), -8) > 0, np.uint8(3), future)
    payload = pack_operands(
        thumbnails(weights), Operands(q, k, np.arange(79.0)), np.stack([future, window]), chosen=(1, 2)
    )
    assert (payload.held, payload.shape, payload.thumb_shape) == ("head", (2, 3, 40, 40), (32, 32))
    columns = payload.columns
    lengths = np.diff(columns["run_starts"], append=1600)
    assert np.array_equal(np.repeat(columns["run_reasons"], lengths), window.ravel())
    assert len(columns["run_starts"]) < 3 * 40
    assert np.array_equal(columns["q"], q.ravel())
    assert np.array_equal(columns["by_distance"], np.arange(79, dtype=np.float32))
    one = pack_heads(weights, None, np.stack([future, window]), chosen=(1, 2), limit=1)
    assert np.array_equal(columns["thumb_reasons"], one.columns["thumb_reasons"])
    assert "weights" not in columns
    assert "run_starts" not in pack_operands(thumbnails(weights), Operands(q, k, None), chosen=(0, 0)).columns


def test_operands_that_do_not_fit_each_other_are_refused() -> None:
    weights, _ = heads(2, 3, 40, 40)
    small, q = thumbnails(weights), np.zeros((40, 8), np.float32)
    for operands, says in (
        ((q, np.zeros((40, 7), np.float32), None), "one d_head"),
        ((q, q[:30], None), "do not belong"),
        ((q, q, np.zeros(80)), "79 numbers"),
    ):
        with pytest.raises(ValueError, match=says):
            pack_operands(small, Operands(*operands), chosen=(0, 0))
    with pytest.raises(ValueError, match=r"\(2, 0\)"):
        pack_operands(small, Operands(q, q, None), chosen=(2, 0))
    with pytest.raises(ValueError, match="reasons of shape"):
        pack_operands(small, Operands(q, q, None), np.zeros((3, 40, 40), np.uint8), chosen=(0, 0))


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 512), (512, 1), (512, 512)])
def test_all_sizes(queries: int, keys: int) -> None:
    payload = pack_heads(np.full((1, 1, queries, keys), 1 / keys, np.float32))
    assert isinstance(payload, HeadsPayload)
    assert payload.thumb_shape == (min(32, queries), min(32, keys))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w, s, r: (w[0], s, r), "layers, heads, queries, keys"),
        (lambda w, s, r: (w[:, :, :0], s, r), "none of them 0"),
        (lambda w, s, r: (w * 3, s, r), "0..1"),
        (lambda w, s, r: (np.where(w > 0.5, -np.inf, w), s, r), "0..1"),
        (lambda w, s, r: (w, s[:, :1], r), "scores of shape"),
        (lambda w, s, r: (w, s, r[:2]), "reasons of shape"),
    ],
)
def test_what_is_no_attention_is_refused(change, says: str) -> None:
    weights, scores = heads(2, 2, 4, 4)
    weights[0, 0, 0] = [1, 0, 0, 0]
    with pytest.raises(ValueError, match=says):
        pack_heads(*change(weights, scores, np.zeros((4, 4), np.uint8)))


def test_a_head_that_does_not_exist_is_refused() -> None:
    weights, _ = heads(2, 2, 4, 4)
    with pytest.raises(ValueError, match=r"\(2, 0\)"):
        pack_heads(weights, chosen=(2, 0))
    with pytest.raises(ValueError, match=r"\(0, 2\)"):
        pack_chosen(thumbnails(weights), weights[0, 0], chosen=(0, 2))
    with pytest.raises(ValueError, match="do not belong"):
        pack_chosen(thumbnails(weights), np.zeros((9, 9), np.float32), chosen=(0, 0))


def test_measures_travel_with_the_heads_and_must_be_theirs() -> None:
    payload = pack_heads(heads(2, 3, 5, 5)[0])
    found = payload.measured(entropy=np.arange(6.0).reshape(2, 3), distance=None)
    assert found.columns["measure_entropy"].tolist() == [0, 1, 2, 3, 4, 5]
    assert "measure_distance" not in found.columns
    assert Selection(order="entropy").within(found).order == "entropy"
    assert Selection(order="distance").within(found).order == "layer"
    assert Selection(order="habit").within(found).order == "layer"
    assert Selection(order="habit").within(found.measured(own=np.zeros((2, 3)))).order == "habit"
    assert Selection.parse({"order": "colour"}).order == "layer"
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        payload.measured(entropy=np.zeros((3, 2)))


def test_a_map_is_read_back_from_its_payload():
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(np.ones(5), size=(2, 3, 4)).astype(np.float32)
    reasons = np.zeros((2, 4, 5), np.uint8)
    reasons[1, 0, 4] = 2
    found, why = pack_heads(weights, None, reasons).map_of(1, 2)
    np.testing.assert_array_equal(found, weights[1, 2])
    np.testing.assert_array_equal(why, reasons[1])
    layer = pack_layer(weights[1], reasons[1], layer=1, layers=2)
    np.testing.assert_allclose(layer.map_of(1, 2)[0], weights[1, 2], atol=1e-5)  # uint16 at most
    with pytest.raises(ValueError, match="not in this payload"):
        layer.map_of(0, 2)
