"""Rotary positions: the angles, and the rotation of queries and keys by them, pair by pair."""

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.config import ModelConfig
from vizformer.explain.arrays import stored


def angles(config: ModelConfig, n: int) -> Float[ndarray, "n pairs"]:
    """pos * theta^(-2m/d), in radians: row pos, one column per pair (Su et al. 2021, section 3.2.2).

    d is d_head.  Models that were fitted to longer texts turn
    some pairs by less (`vizformer.model.positions.rope_frequencies`).
    """
    d = config.d_head
    pair = np.arange(d // 2)
    frequency: ndarray = config.rope_theta ** (-2.0 * pair / d)
    slowed = slowing(config)
    return np.arange(n)[:, None] * (frequency if slowed is None else frequency / slowed)


def slowing(config: ModelConfig) -> Float[ndarray, " pairs"] | None:
    """The divisor of each pair's angle for longer texts (1: unchanged); None if no angle is divided."""
    if config.positions != "rope" or config.rope_scaling == "none":
        return None
    frequency: ndarray = config.rope_theta ** (-2.0 * np.arange(config.d_head // 2) / config.d_head)
    if config.rope_scaling == "linear":
        return np.full_like(frequency, config.rope_factor)
    length = 2 * np.pi / frequency  # tokens in which a pair turns once
    trained, low, high = config.rope_trained_positions, config.rope_low_turns, config.rope_high_turns
    kept = (trained / length - low) / (high - low)
    mixed = 1.0 / ((1.0 - kept) / config.rope_factor + kept)
    slow_or_fast = np.where(length > trained / low, config.rope_factor, 1.0)
    between = (length <= trained / low) & (length >= trained / high)
    return np.where(between, mixed, slow_or_fast)


def turn(
    x: Float[ndarray, "... d_head"],
    angle: Float[ndarray, "... pairs"],
    dtype: torch.dtype = torch.float32,
) -> Float[ndarray, "... d_head"]:
    """Each pair (x_m, x_(m + pairs)) rotated counter-clockwise by its angle.

    `dtype` is the model's dtype: in half precision it rounds cosines, products and sums.
    """
    first, second = np.split(x, 2, axis=-1)
    cos, sin = stored(np.cos(angle), dtype), stored(np.sin(angle), dtype)
    products = [stored(a * b, dtype) for a, b in ((first, cos), (second, sin), (first, sin), (second, cos))]
    turned = (stored(products[0] - products[1], dtype), stored(products[2] + products[3], dtype))
    return np.concatenate(turned, axis=-1)
