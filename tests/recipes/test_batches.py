"""Batches of similar length: every pair once, none too large, the order decided by the seed."""

import random
from itertools import pairwise

import pytest
import torch

from recipes.batches import pair_batches

PAD = 0


def some_pairs(n: int = 200) -> list[tuple[list[int], list[int]]]:
    """Ids that name the pair, so that none can be mistaken for another."""
    rng = random.Random(5)
    return [([i + 1] * rng.randint(1, 30), [i + 1] * rng.randint(2, 25)) for i in range(n)]


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_every_pair_once_within_the_limit(seed: int | None) -> None:
    pairs = some_pairs()
    found = []
    for batch in pair_batches(pairs, tokens_per_batch=300, pad_id=PAD, seed=seed):
        assert batch.source.shape[0] == batch.target.shape[0]
        assert batch.source.dtype == torch.long
        for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
            real = ([id for id in source if id != PAD], [id for id in target if id != PAD])
            assert source == real[0] + [PAD] * (len(source) - len(real[0]))  # padding on the right only
            assert target == real[1] + [PAD] * (len(target) - len(real[1]))
            found.append(real)
        assert batch.source.numel() + batch.target.numel() <= 300
        assert (batch.source != PAD).any(0).all()  # no column of padding only
        assert (batch.target != PAD).any(0).all()
    assert sorted(found) == sorted(pairs)


def test_little_of_the_work_is_padding() -> None:
    rng = random.Random(6)
    lengths = [rng.randint(3, 30) for _ in range(1000)]  # a translation is about as long as its source
    pairs = [([1] * n, [1] * max(2, n + rng.randint(-2, 2))) for n in lengths]
    batches = list(pair_batches(pairs, tokens_per_batch=600, pad_id=PAD, seed=0))
    sizes = [batch.source.numel() + batch.target.numel() for batch in batches]
    real = [int((batch.source != PAD).sum() + (batch.target != PAD).sum()) for batch in batches]
    assert sum(real) / sum(sizes) > 0.85
    assert len(batches) < sum(real) / 600 * 1.15  # and the batches are full


def test_translations_of_any_length_cost_little_padding() -> None:
    """Neighbours are alike in both lengths: a sum of lengths alone leaves a quarter of padding here."""
    rng = random.Random(8)
    lengths = [rng.randint(5, 25) for _ in range(4000)]
    pairs = [([1] * n, [1] * max(3, n + rng.randint(-6, 6))) for n in lengths]
    batches = list(pair_batches(pairs, tokens_per_batch=2000, pad_id=PAD, seed=0))
    sizes = sum(batch.source.numel() + batch.target.numel() for batch in batches)
    assert sum(len(source) + len(target) for source, target in pairs) / sizes > 0.88


def as_lists(seed: int | None) -> list[list[list[int]]]:
    return [batch.source.tolist() for batch in pair_batches(some_pairs(), tokens_per_batch=300, pad_id=PAD, seed=seed)]


def test_the_seed_decides_the_order() -> None:
    assert as_lists(1) == as_lists(1)
    assert as_lists(1) != as_lists(2)
    assert as_lists(None) == as_lists(None)
    as_sets = [{tuple(map(tuple, batch)) for batch in as_lists(seed)} for seed in (1, 2)]
    assert as_sets[0] != as_sets[1]  # not only the order of the batches: also who is with whom


def test_training_does_not_go_from_short_to_long() -> None:
    """Batches come in any order of lengths; without a seed, from short sources to long ones."""
    pairs = some_pairs(1000)
    longest = {}
    for seed in (None, 0):
        batches = pair_batches(pairs, tokens_per_batch=300, pad_id=PAD, seed=seed)
        longest[seed] = [batch.source.shape[1] for batch in batches]
    assert longest[None] == sorted(longest[None])
    rises = sum(after > before for before, after in pairwise(longest[0])) / len(longest[0])
    assert 0.3 < rises < 0.7


def test_a_pair_longer_than_the_limit_has_its_own_batch() -> None:
    pairs = [([1] * 50, [1] * 50), ([2], [2, 2]), ([3], [3, 3])]
    batches = list(pair_batches(pairs, tokens_per_batch=20, pad_id=PAD, seed=0))
    assert sorted(batch.source.shape[0] for batch in batches) == [1, 2]
