"""Who may look at whom, and why not."""

import math

import pytest
import torch

from tests import tiny
from vizformer.model import Reason
from vizformer.model.masks import causal_mask, combine, padding_mask, prefix_mask


def test_causal_blocks_exactly_the_future() -> None:
    mask = causal_mask(5)
    assert mask.bias.shape == mask.reason.shape == (1, 1, 5, 5)
    for query in range(5):
        for key in range(5):
            blocked = key > query
            assert mask.bias[0, 0, query, key] == (-math.inf if blocked else 0.0)
            assert mask.reason[0, 0, query, key] == (Reason.FUTURE if blocked else Reason.VISIBLE)


def test_causal_is_aligned_to_the_end() -> None:
    """With a cache there are more keys than queries, and the last query sees the last key (not: only the first)."""
    assert (causal_mask(1, 4).bias == 0).all()
    assert torch.equal(causal_mask(2, 5).bias, causal_mask(5).bias[:, :, -2:])
    assert torch.equal(causal_mask(2, 5).reason, causal_mask(5).reason[:, :, -2:])


@pytest.mark.parametrize("prefix", [0, 1, 3, 6])
def test_prefix(prefix: int) -> None:
    mask = prefix_mask(6, prefix)
    found = mask.reason[0, 0] > 0
    assert torch.equal(mask.bias[0, 0], torch.zeros(6, 6).masked_fill(found, -math.inf))
    for i in range(6):
        for j in range(6):
            assert bool(found[i, j]) == (j > i and j >= prefix)
    assert set(mask.reason.unique().tolist()) <= {0, Reason.FUTURE}


def test_a_prefix_of_nothing_is_causal_and_a_whole_one_is_open() -> None:
    assert torch.equal(prefix_mask(5, 0).bias, causal_mask(5).bias)
    assert torch.equal(prefix_mask(5, 1).bias, causal_mask(5).bias)  # the first key was open to all before
    assert (prefix_mask(5, 5).bias == 0).all()


def test_padding_blocks_keys_for_every_query() -> None:
    mask = padding_mask(tiny.right_padded([1, 3]))
    assert mask.bias.shape == (2, 1, 1, 3)
    assert mask.bias[:, 0, 0].tolist() == [[0, -math.inf, -math.inf], [0, 0, 0]]
    assert mask.reason[:, 0, 0].tolist() == [[0, 1, 1], [0, 0, 0]]
    assert mask.reason.dtype == torch.uint8


def test_combined_masks_block_what_either_blocks_and_the_first_says_why() -> None:
    padding, causal = padding_mask(tiny.right_padded([2, 3])), causal_mask(3)
    both = combine([padding, causal])
    assert both is not None
    assert both.bias.shape == (2, 1, 3, 3)
    assert not both.bias.isnan().any()
    blocked = torch.isneginf(padding.bias) | torch.isneginf(causal.bias)
    assert torch.equal(torch.isneginf(both.bias), blocked)
    assert both.reason[0, 0].tolist() == [[0, 2, 1], [0, 0, 1], [0, 0, 1]]  # padding goes before the future
    swapped = combine([causal, padding])
    assert swapped is not None
    assert swapped.reason[0, 0].tolist() == [[0, 2, 2], [0, 0, 2], [0, 0, 1]]


def test_combining_with_nothing() -> None:
    causal = causal_mask(3)
    assert combine([]) is None
    assert combine([None, None]) is None
    assert combine([None, causal]) is causal
    assert combine([causal, None]) is causal
