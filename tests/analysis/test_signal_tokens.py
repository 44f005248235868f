"""Pictures and sound as rows of numbers."""

import numpy as np
import pytest
import torch

from vizformer.analysis.vectors import signal_tokens


@pytest.mark.parametrize("side", [3, 4, 6, 8, 12])
def test_patches_are_those_of_torchs_unfold(side) -> None:
    picture = np.random.default_rng(0).random((24, 24))
    expected = torch.nn.functional.unfold(torch.from_numpy(picture)[None, None], side, stride=side)[0].T
    np.testing.assert_array_equal(signal_tokens.patches(picture, side), expected.numpy())


def test_squares_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        signal_tokens.patches(np.zeros((24, 24)), 5)


def test_a_token_is_its_patch_times_one_matrix() -> None:
    cut = signal_tokens.patches(signal_tokens.drawn_cat(24), 6)
    weights, rows = signal_tokens.patch_tokens(cut, 10, seed=0)
    assert weights.shape == (36, 10)
    np.testing.assert_allclose(rows[5], sum(cut[5, i] * weights[i] for i in range(36)))


def test_the_picture_is_the_same_on_both_sides_and_not_empty() -> None:
    picture = signal_tokens.drawn_cat(24)
    np.testing.assert_array_equal(picture, picture[:, ::-1])
    assert picture.min() >= 0
    assert picture.max() <= 1
    assert len(np.unique(picture)) == 5


@pytest.mark.parametrize(
    ("seconds", "frames"), [(0.01, 0), (0.025, 1), (0.034, 1), (0.035, 2), (1.0, 98), (30.0, 2998)]
)
def test_frames_of_a_sound(seconds, frames) -> None:
    samples = np.arange(round(seconds * 16_000))
    counted = len(range(0, len(samples) - 400 + 1, 160)) if len(samples) >= 400 else 0
    assert signal_tokens.n_frames(seconds) == frames == counted
