"""FlashAttention's online softmax: whatever the tiles, the same as the plain softmax, and its code runs."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.bundled import load
from tests.explain.running import one_by_one
from vizformer.explain.softmax_in_blocks import MOST_TILES, online_softmax, online_softmax_steps, tile_sizes
from vizformer.model.masks import Reason
from vizformer.model.records import AttentionRecord, Scoring

TEXTS = {
    "zh-en": "他昨天在学校里学中文。",
    "stories": "The cat sat on the chair and looked.",
    "cloze": "She opened the door.",
}


def sites(model: str) -> list[AttentionRecord]:
    trace = load(model).trace(TEXTS[model])
    return [trace[name] for name in trace.sites]


@pytest.mark.sample(4)
@pytest.mark.parametrize("model", TEXTS)
@pytest.mark.parametrize("tile", [1, 2, 3, 100])
def test_every_row_is_the_plain_softmax_of_the_model(model: str, tile: int) -> None:
    for record in sites(model):
        head = record.n_heads - 1
        for query in range(record.q.shape[1]):
            found = online_softmax(record, head, query, tile)
            own = (record.pattern(head)[query] @ record.v[record.kv_head(head)]).numpy()
            np.testing.assert_allclose(found.z, own, atol=1e-5)
            assert found.plain.holds
            assert found.fused.holds
            assert [t.first for t in found.tiles] == list(range(0, record.k.shape[1], tile))


def test_the_running_numbers_are_those_of_the_keys_so_far() -> None:
    record, query = sites("cloze")[0], 2
    scores = record.scores(1)[query].double().numpy()
    for tile in online_softmax(record, 1, query, 2).tiles:
        seen = scores[: tile.last]
        assert tile.largest == pytest.approx(seen.max())
        assert tile.total == pytest.approx(np.exp(seen - seen.max()).sum())
        shares = np.exp(seen - seen.max())
        np.testing.assert_allclose(tile.output, shares @ record.v[record.kv_head(1)].double().numpy()[: tile.last])


def test_tiles_of_the_future_are_left_out() -> None:
    record = sites("stories")[0]
    found = online_softmax(record, 0, 2, 2)
    assert [tile.skipped for tile in found.tiles] == [False, False] + [True] * (len(found.tiles) - 2)
    assert found.tiles[-1].largest == found.tiles[1].largest


def test_scores_that_would_overflow_do_not() -> None:
    q = torch.full((1, 1, 3), 100.0)
    k, v = torch.tensor([[[1.0], [9.0], [5.0]]]).expand(1, 3, 3), torch.eye(3)[None]
    record = AttentionRecord("encoder.0.self", q, k, v, None, None, Scoring(1.0))
    found = online_softmax(record, 0, 0, 1)
    np.testing.assert_allclose(found.z, [0, 1, 0], atol=1e-12)
    assert found.tiles[1].factor == 0.0  # e^-1600
    assert found.tiles[2].factor == 1.0


def test_a_row_of_blocked_keys_gives_0() -> None:
    reason = torch.full((1, 1, 3), int(Reason.PADDING), dtype=torch.uint8)
    bias = torch.full((1, 1, 3), -torch.inf)
    record = AttentionRecord("encoder.0.self", *torch.randn(3, 1, 3, 4)[:, :, :3], bias, reason, Scoring(0.5))
    found = online_softmax(record, 0, 1, 2)
    assert not found.z.any()
    for step, left in one_by_one(online_softmax_steps(found)):
        np.testing.assert_allclose(left[step.variable], step.result)


@pytest.mark.parametrize("model", TEXTS)
def test_the_code_of_every_step_gives_its_result(model: str) -> None:
    for record in sites(model)[::2]:
        found = online_softmax(record, 0, record.q.shape[1] - 1, 3)
        steps = online_softmax_steps(found)
        assert steps[-1].proof.direct
        assert not any(step.proof.direct for step in steps[:-1])
        for step, left in one_by_one(steps):
            np.testing.assert_allclose(left[step.variable], step.result, atol=1e-5)
        assert steps[-1].result == pytest.approx(
            F.normalize(torch.from_numpy(found.z), dim=0).numpy() * np.linalg.norm(found.z)
        )


def test_tile_sizes_make_few_tiles_and_reach_from_one_key_to_all() -> None:
    assert tile_sizes(7) == (1, 2, 4, 8)
    assert tile_sizes(1) == (1,)
    for n in (1, 2, 31, 33, 400):
        assert all(-(-n // size) <= MOST_TILES for size in tile_sizes(n))
        assert tile_sizes(n)[-1] >= n
    with pytest.raises(ValueError, match="at least one key"):
        online_softmax(sites("cloze")[0], 0, 0, 0)
