"""Latent attention by hand: what a layer makes of the same latents, with its keys and without."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from vizformer.explain.mixers_by_hand import HEADS, WIDEST, two_latents


@pytest.mark.parametrize(("width", "heads"), [(1, 1), (2, 2), (3, 1), (4, 4)])
def test_both_ways_give_what_torch_mixes_of_the_keys_and_values(width: int, heads: int) -> None:
    found = two_latents(width, heads)
    c, q, up_k, up_v = (torch.from_numpy(one) for one in (found.latents, found.queries, found.W_UK, found.W_UV))
    wanted = F.scaled_dot_product_attention(q, c @ up_k.mT, c @ up_v.mT)
    np.testing.assert_allclose(found.mixed, wanted.numpy(), atol=1e-12)
    np.testing.assert_allclose(found.mixed_latents, wanted.numpy(), atol=1e-12)


def test_both_ways_agree_at_every_width_and_the_smaller_ones_are_its_first_numbers() -> None:
    widest = two_latents(WIDEST, HEADS)
    for width in range(1, WIDEST + 1):
        found = two_latents(width, HEADS)
        np.testing.assert_array_equal(found.scores, found.absorbed)
        assert found.error < 1e-12
        np.testing.assert_array_equal(found.latents, widest.latents[:, :width])
    assert len(np.unique(two_latents(2, 2).scores)) == 7  # there is something to see
