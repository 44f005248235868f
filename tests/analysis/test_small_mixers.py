"""Layers of every mixer: maps that give back what was computed, and costs that are those of a cache."""

import numpy as np
import pytest
import torch

from vizformer.analysis.heads.small_mixers import MIXERS, WINDOW, Mixer, mixed, mixer_cost, small_mixer
from vizformer.model import Cache

IDS = (70, 11, 8, 70, 912, 8, 5)


@pytest.mark.parametrize("kind", MIXERS)
def test_the_map_gives_the_output_back_and_sees_no_later_token(kind: Mixer) -> None:
    found = mixed(kind, IDS)
    assert found.error < 1e-6
    assert not np.triu(found.maps, 1).any()
    np.testing.assert_array_equal(found.maps, mixed(kind, IDS).maps)  # from a seed
    sums = found.maps.sum(-1)
    assert (found.maps < 0).any() == (kind in ("delta", "space"))
    if kind in ("softmax", "grouped", "latent", "window"):
        np.testing.assert_allclose(sums, 1.0, atol=1e-6)
    elif kind == "sink":
        assert (sums < 1).all()
    near = {"window": WINDOW, "convolution": len(found.maps)}.get(kind)
    assert near is None or not found.maps[:, -1, :-near].any()
    assert near is not None or (found.maps[:, -1, :-WINDOW] != 0).any()


@pytest.mark.parametrize("kind", [kind for kind in MIXERS if kind != "window"])
def test_the_numbers_kept_are_those_of_a_cache(kind: Mixer) -> None:
    cache = Cache()
    with torch.inference_mode():
        small_mixer(kind, 20).decode(torch.arange(9)[None], cache=cache)
    assert 4 * mixer_cost(kind, 9).kept == cache.nbytes


def test_a_window_and_a_state_end_the_growth() -> None:
    for kind in MIXERS:
        ends = mixer_cost(kind, 1000) == mixer_cost(kind, 10**6)
        assert ends == (kind in ("window", "delta", "space", "convolution"))
