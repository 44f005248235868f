"""Rotary positions: the angles, and queries and keys turned by them, pair by pair."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.config import ModelConfig


def angles(config: ModelConfig, n: int) -> Float[ndarray, "n pairs"]:
    """pos * theta^(-2m/d_head), in radians: row pos, one column per pair (Su et al. 2021, section 3.2.2)."""
    pair = np.arange(config.d_head // 2)
    return np.arange(n)[:, None] * config.rope_theta ** (-2.0 * pair / config.d_head)


def turn(x: Float[ndarray, "... d_head"], angle: Float[ndarray, "... pairs"]) -> Float[ndarray, "... d_head"]:
    """Each pair (x_m, x_(m + d_head/2)) turned by its angle, counter-clockwise."""
    first, second = np.split(x, 2, axis=-1)
    cos, sin = np.cos(angle), np.sin(angle)
    turned: ndarray = np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)
    return turned
