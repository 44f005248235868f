"""Rotary positions: the angles, and queries and keys turned by them, pair by pair."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.config import ModelConfig


def angles(config: ModelConfig, n: int) -> Float[ndarray, "n pairs"]:
    """pos * theta^(-2m/d), in radians: row pos, one column per pair (Su et al. 2021, section 3.2.2).

    d is d_head, or as many of the first numbers as the model turns.
    """
    pair = np.arange(config.turned_dims // 2)
    return np.arange(n)[:, None] * config.rope_theta ** (-2.0 * pair / config.turned_dims)


def turn(x: Float[ndarray, "... d_head"], angle: Float[ndarray, "... pairs"]) -> Float[ndarray, "... d_head"]:
    """Each pair (x_m, x_(m + pairs)) turned by its angle, counter-clockwise; what is behind the pairs stays."""
    half = angle.shape[-1]
    first, second, rest = np.split(x, [half, 2 * half], axis=-1)
    cos, sin = np.cos(angle), np.sin(angle)
    turned: ndarray = np.concatenate([first * cos - second * sin, first * sin + second * cos, rest], axis=-1)
    return turned
