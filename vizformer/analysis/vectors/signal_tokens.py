"""How pictures and sound become rows of numbers, as a Transformer reads them.

Source: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", section 3.1 (patches); Radford et al. 2022, "Robust
Speech Recognition via Large-Scale Weak Supervision", section 2.2 (frames of 25 ms, one each 10 ms).
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

RATE, FRAME_MS, HOP_MS = 16_000, 25, 10  # samples of a second; what a frame covers; from one frame to the next


def drawn_cat(side: int) -> Float[ndarray, "side side"]:
    """A small picture without a file: a cat's face, 0 = black, 1 = white."""
    y, x = (np.mgrid[:side, :side] + 0.5) / side * 2 - 1  # -1..1, downwards and to the right
    picture = np.full((side, side), 0.95)
    picture[(x / 0.75) ** 2 + ((y - 0.2) / 0.65) ** 2 < 1] = 0.55
    for at in (-0.5, 0.5):
        picture[(np.abs(x - at) < 0.45 * (y + 0.95)) & (y > -0.9) & (y < -0.1)] = 0.45
        picture[((x - at * 0.6) / 0.12) ** 2 + ((y - 0.05) / 0.16) ** 2 < 1] = 0.05
    picture[(np.abs(x) < 0.12 - 0.6 * (y - 0.3)) & (y > 0.3) & (y < 0.5)] = 0.2
    return picture


def patches(picture: Float[ndarray, "height width"], side: int) -> Float[ndarray, "n_patches numbers"]:
    """The picture cut into squares, row by row from the top left; each is laid out as one row of side^2 numbers.

    Raises:
        ValueError: the squares do not fit into the picture.
    """
    height, width = picture.shape
    if height % side or width % side:
        raise ValueError(f"squares of {side} do not fit into {height} x {width}")
    cut = picture.reshape(height // side, side, width // side, side)
    return cut.transpose(0, 2, 1, 3).reshape(-1, side * side)


def patch_tokens(patches: Float[ndarray, "n numbers"], d_model: int, seed: int) -> tuple[ndarray, ndarray]:
    """(W [numbers, d_model], rows [n, d_model]): x = p W with a matrix that is drawn, as before any training."""
    numbers = patches.shape[1]
    weights = np.random.default_rng(seed).normal(scale=numbers**-0.5, size=(numbers, d_model))
    return weights, patches @ weights


def n_frames(seconds: float) -> int:
    """Whole frames of a recording: 1 + floor((T - length) / hop) samples; 0 where it is shorter than one."""
    samples, length, hop = round(seconds * RATE), RATE * FRAME_MS // 1000, RATE * HOP_MS // 1000
    return 0 if samples < length else 1 + (samples - length) // hop
