"""Experts by hand: what the model's layer makes of the same rows with the same matrices."""

import numpy as np
import pytest
import torch

from vizformer.config import ModelConfig
from vizformer.explain.mixers_by_hand import ROUTER, W_IN, W_OUT, two_routed
from vizformer.model.experts import MixtureOfExperts


@pytest.mark.parametrize("renormalised", [True, False])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_what_the_layer_gives_is_what_the_model_s_layer_gives(k: int, renormalised: bool) -> None:
    layer = MixtureOfExperts(
        ModelConfig(
            vocab_size=4,
            d_model=2,
            n_heads=1,
            d_ff=1,
            n_encoder_layers=0,
            n_decoder_layers=1,
            activation="relu",
            bias=False,
            n_experts=len(ROUTER),
            experts_per_token=k,
            expert_weights="renormalised" if renormalised else "probabilities",
        )
    ).double()
    layer.router.weight.data = torch.from_numpy(ROUTER)
    for expert, w, u in zip(layer.experts, W_IN, W_OUT, strict=True):
        expert.W_in.weight.data, expert.W_out.weight.data = torch.from_numpy(w[None]), torch.from_numpy(u[:, None])
    for degrees in range(0, 360, 15):
        found = two_routed(degrees, k, renormalised=renormalised)
        assert ((found.weights > 0).sum(-1) == k).all()
        with torch.no_grad():
            y = layer(torch.from_numpy(found.x)[None])[0].numpy()
        np.testing.assert_allclose(found.y, y, atol=1e-12)


def test_every_expert_is_some_direction_s_first_choice() -> None:
    found = [two_routed(degrees, 1, renormalised=True).weights[1].argmax() for degrees in range(0, 360, 15)]
    assert {*found} == {0, 1, 2, 3}
