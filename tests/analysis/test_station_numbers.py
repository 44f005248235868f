"""The numbers of the stations of the path, against the model's own and against arithmetic written out here."""

import numpy as np
import pytest
import torch

from tests.bundled import load
from vizformer.analysis.one_forward import station_numbers
from vizformer.analysis.one_forward.followed_token import follow_token

SENTENCE = "我有一只猫。"


@pytest.fixture(scope="module")
def forward():
    checkpoint = load("zh-en")
    trace = checkpoint.trace(SENTENCE)
    return (
        checkpoint,
        trace,
        follow_token(checkpoint, trace, [token.text for token in trace.tokens["encoder"]].index("猫")),
    )


def test_weights_times_values_are_what_the_head_finds(forward) -> None:
    _checkpoint, trace, found = forward
    row = station_numbers.head_row(trace, "encoder", found.look)
    record = trace[f"encoder.{found.look.layer}.self"]
    z = record.z(found.look.head)[found.look.query].numpy()
    np.testing.assert_allclose(row.z, z[:32], atol=1e-6)
    np.testing.assert_allclose(row.weighted.sum(axis=0), z[:32], atol=1e-5)
    assert row.d_head == 64
    softmaxed = np.stack([station_numbers.scaled(scores, 1.0) for scores in row.scores])
    np.testing.assert_allclose(softmaxed, found.look.weights, atol=1e-6)


def test_a_factor_changes_scores_before_their_softmax() -> None:
    scores = np.array([1.0, 3.0, np.nan, -2.0])
    weights = station_numbers.scaled(scores, 2.0)
    powers = np.exp([2.0, 6.0, -4.0])
    np.testing.assert_allclose(weights[[0, 1, 3]], powers / powers.sum())
    assert weights[2] == 0
    np.testing.assert_allclose(station_numbers.scaled(scores, 0.0)[[0, 1, 3]], 1 / 3)


def test_all_heads_of_the_layer_and_what_they_give_to_the_token_before(forward) -> None:
    _checkpoint, trace, found = forward
    maps = station_numbers.layer_maps(trace, "encoder", found.look)
    record = trace[f"encoder.{found.look.layer}.self"]
    for head in range(4):
        np.testing.assert_allclose(maps[head], record.pattern(head).numpy(), atol=1e-6)
        share = np.mean([maps[head][i, i - 1] for i in range(1, maps.shape[-1])])
        assert station_numbers.previous_shares(maps)[head] == pytest.approx(share)


def test_without_a_mask_a_row_looks_at_later_tokens(forward) -> None:
    _checkpoint, trace, _found = forward
    seen = station_numbers.unmasked(trace, 16)
    n = len(seen.masked)
    later = np.triu(np.ones((n, n), bool), 1)
    assert np.isnan(seen.masked[later]).all()
    np.testing.assert_allclose(np.nansum(seen.masked, axis=1), 1, atol=1e-5)
    scores = trace["decoder.0.self"].scores(seen.head)
    np.testing.assert_allclose(seen.open, torch.softmax(scores, dim=-1).numpy(), atol=1e-6)
    assert seen.ahead == pytest.approx(float((seen.open * later)[:-1].sum(axis=1).mean()), rel=1e-4)
    others = [
        float(torch.softmax(trace["decoder.0.self"].scores(head), dim=-1).triu(1)[:-1].sum(dim=1).mean())
        for head in range(4)
    ]
    assert seen.ahead == pytest.approx(max(others), rel=1e-5)


def test_a_token_at_another_place_is_what_the_model_would_read(forward) -> None:
    checkpoint, trace, found = forward
    placed = station_numbers.placed(checkpoint, found, "encoder")
    assert placed is not None
    entering = trace.residual("encoder.0.pre")
    at = found.followed
    np.testing.assert_allclose(placed.rows[at], entering[at, :32].numpy(), atol=1e-5)
    ids = [trace.tokens["encoder"][at].id]  # the same token at place 0
    moved = checkpoint.trace(ids=ids, target_ids=[1]).residual("encoder.0.pre")[0]
    np.testing.assert_allclose(placed.rows[0], moved[:32].numpy(), atol=1e-5)
    cosine = torch.cosine_similarity(moved, entering[at], dim=0)
    assert placed.cosines[at] == pytest.approx(float(cosine), abs=1e-5)
    assert station_numbers.placed(load("stories"), stories_walk(), "decoder") is None  # RoPE adds nothing


def stories_walk():
    checkpoint = load("stories")
    return follow_token(checkpoint, checkpoint.trace("The dog was"), 2)


def test_temperatures_and_neighbours(forward) -> None:
    checkpoint, trace, _found = forward
    rows = station_numbers.tempered(trace, 2, [5, 6])
    for temperature, row in zip(station_numbers.TEMPERATURES, rows, strict=True):
        expected = torch.softmax(trace.logits[2].double() / temperature, dim=-1)[[5, 6]]
        np.testing.assert_allclose(row, expected.numpy(), rtol=1e-9)
    id = trace.tokens["encoder"][4].id
    [near] = station_numbers.nearest(checkpoint, [id], "encoder", 3)
    table = checkpoint.model.embedding.weight
    cosines = torch.cosine_similarity(table[id][None], table, dim=1)
    cosines[id] = -1
    assert [one for one, _ in near] == cosines.topk(3).indices.tolist()
    np.testing.assert_allclose([cosine for _, cosine in near], cosines.topk(3).values.numpy(), atol=1e-5)
