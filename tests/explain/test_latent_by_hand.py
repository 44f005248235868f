"""Latent attention by hand: what the model's layer makes of the same latents, with its keys and without."""

import numpy as np
import pytest
import torch

from vizformer.config import ModelConfig
from vizformer.explain.mixers_by_hand import D_HEAD, HEADS, WIDEST, two_latents
from vizformer.model.latent_attention import LatentAttention
from vizformer.model.mixing import mix


@pytest.mark.parametrize(("width", "heads"), [(1, 1), (2, 2), (3, 1), (4, 4)])
def test_both_ways_give_what_the_model_mixes(width: int, heads: int) -> None:
    found = two_latents(width, heads)
    layer = LatentAttention(
        ModelConfig(
            vocab_size=4,
            d_model=4 * heads,
            n_heads=heads,
            d_ff=4,
            n_encoder_layers=0,
            n_decoder_layers=1,
            head_dim=2 + D_HEAD,
            latent_value_dim=D_HEAD,
            positions="rope",
            rope_dims=2,
            latent_dim=width,
            attention_scale=D_HEAD**-0.5,
        )
    ).double()
    layer.W_K.weight.data, layer.W_V.weight.data = (
        torch.from_numpy(of.reshape(-1, width)) for of in (found.W_UK, found.W_UV)
    )
    turned = torch.zeros(1, heads, 2, 2).double()  # nothing in the rotary part
    q, c = torch.cat([turned, torch.from_numpy(found.queries)[None]], -1), torch.from_numpy(found.latents)[None, None]
    with torch.no_grad():
        z = layer.absorbed(q, turned[:, :1], c, None)
        k, v = (of.weight.reshape(heads, D_HEAD, width) for of in (layer.W_K, layer.W_V))
        wanted = mix(q[..., 2:], c @ k.mT, c @ v.mT, None, layer.scoring)
    np.testing.assert_allclose(found.mixed_latents, z[0].numpy(), atol=1e-12)
    np.testing.assert_allclose(found.mixed, wanted[0].numpy(), atol=1e-12)


def test_both_ways_agree_at_every_width_and_the_smaller_ones_are_its_first_numbers() -> None:
    widest = two_latents(WIDEST, HEADS)
    for width in range(1, WIDEST + 1):
        found = two_latents(width, HEADS)
        np.testing.assert_array_equal(found.scores, found.absorbed)
        assert found.error < 1e-12
        np.testing.assert_array_equal(found.latents, widest.latents[:, :width])
    assert len(np.unique(two_latents(2, 2).scores)) == 7  # there is something to see
