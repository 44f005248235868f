"""The position bias of the scores: ALiBi's slopes and T5's buckets, recomputed from the distances in float64."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from vizformer.config import ModelConfig
from vizformer.explain.arrays import float64, stored
from vizformer.model.transformer import Transformer


class Rotation(NamedTuple):
    """The rotation of a text: the angles of its positions, their base theta, and their divisors for longer texts."""

    angles: Float[ndarray, "n pairs"]
    theta: float
    slowed: Float[ndarray, " pairs"] | None


def frequencies(theta: float, d_head: int) -> Float[ndarray, " pairs"]:
    """theta^(-2m/d_head), in radians: by how much pair m turns from one position to the next (Su et al. 2021, 3.2.2)."""
    found: ndarray = theta ** (-2.0 * np.arange(d_head // 2) / d_head)
    return found


def angles(config: ModelConfig, n: int) -> Float[ndarray, "n pairs"]:
    """pos * theta^(-2m/d_head), in radians: row pos, one column per pair.

    Models that were fitted to longer texts turn some pairs by less (`vizformer.model.positions.rope_frequencies`).
    """
    frequency, slowed = frequencies(config.rope_theta, config.d_head), slowing(config)
    return np.arange(n)[:, None] * (frequency if slowed is None else frequency / slowed)


def slowing(config: ModelConfig) -> Float[ndarray, " pairs"] | None:
    """The divisor of each pair's angle for longer texts (1: unchanged); None if no angle is divided."""
    if config.positions != "rope" or config.rope_scaling == "none":
        return None
    frequency = frequencies(config.rope_theta, config.d_head)
    if config.rope_scaling == "linear":
        return np.full_like(frequency, config.rope_factor)
    turns = config.rope_trained_positions * frequency / (2 * np.pi)  # of a pair, in the texts of the first training
    kept = np.clip((turns - config.rope_low_turns) / (config.rope_high_turns - config.rope_low_turns), 0.0, 1.0)
    return 1.0 / ((1.0 - kept) / config.rope_factor + kept)


@dataclass(frozen=True)
class Slopes:
    """ALiBi's bias -slope_h * |i - j|; `slopes` has one entry per head, `dtype` is the dtype in which the model adds
    them.
    """

    slopes: Float[ndarray, " n_heads"]
    dtype: torch.dtype = torch.float32

    def bias(self, relative: Int[ndarray, "*at n_k"]) -> Float[ndarray, "n_heads *at n_k"]:
        """-slope_h * |j - i| for the relative positions j - i, in every head."""
        return stored(np.multiply.outer(self.slopes, -np.abs(relative)).astype(np.float64), self.dtype)


@dataclass(frozen=True)
class Buckets:
    """T5's bias table[bucket(j - i), h]."""

    # the learned numbers of the stack, a row per bucket and a column per head
    table: Float[ndarray, "buckets n_heads"]
    max_distance: int  # the last bucket serves every distance from here on
    both_sides: bool  # whether the stack looks both ways (an encoder)
    stack: str  # "encoder" or "decoder", whose table it is

    @property
    def per_side(self) -> int:
        """The number of buckets for keys before the query (an encoder has as many for keys behind it)."""
        return len(self.table) // 2 if self.both_sides else len(self.table)

    @property
    def single(self) -> int:
        """Each distance below this one has a bucket of its own."""
        return self.per_side // 2

    def rows(self, relative: Int[ndarray, "*at n_k"]) -> Int[ndarray, "*at n_k"]:
        """The row of the table for each relative position j - i."""
        behind = (relative > 0) * self.per_side if self.both_sides else 0
        distance = np.abs(relative) if self.both_sides else np.maximum(-relative, 0)
        shared = self.per_side - self.single
        stretch = np.log(np.maximum(distance, 1) / self.single) / np.log(self.max_distance / self.single)
        far = np.minimum(self.single + np.trunc(stretch * shared).astype(np.int64), self.per_side - 1)
        return behind + np.where(distance < self.single, distance, far)

    def bias(self, relative: Int[ndarray, "*at n_k"]) -> Float[ndarray, "n_heads *at n_k"]:
        """table[bucket(j - i), h] for the relative positions j - i, in every head."""
        return np.moveaxis(self.table[self.rows(relative)], -1, 0)


def position_bias(model: Transformer, stack: str) -> Slopes | Buckets | None:
    """The position bias of a stack's self-attention; None for other kinds of positions."""
    config = model.config
    if config.positions == "alibi":
        slopes = np.array([slope(head, config.n_heads) for head in range(config.n_heads)])
        return Slopes(slopes, model.embedding.weight.dtype)
    module = model.encoder if stack == "encoder" else model.decoder
    if module is None or not config.has_relative_bias:
        return None
    assert module.relative_bias is not None
    return Buckets(float64(module.relative_bias.weight), config.relative_max_distance, stack == "encoder", stack)


def slope(head: int, n_heads: int) -> float:
    """2^(-8(h+1)/n_heads). If n_heads is no power of two, the slopes of the power P below it, then every second one of
    2P.

    Source: Press, Smith & Lewis 2021, "Train Short, Test Long", section 3, and their implementation.
    """
    power = 2 ** int(np.log2(n_heads))
    exponent = 8 * (head + 1) / power if head < power else 8 * (2 * (head - power) + 1) / (2 * power)
    return float(2.0**-exponent)


def relative_positions(n: int) -> Int[ndarray, "n n"]:
    """The relative positions j - i: query i in row i, key j in column j."""
    return np.arange(n)[None, :] - np.arange(n)[:, None]


# Rotary positions: the angles, and the rotation of queries and keys by them, pair by pair.
def rotation(config: ModelConfig, n: int) -> Rotation | None:
    """The rotation of n positions; None in a model without rotary positions."""
    return Rotation(angles(config, n), config.rope_theta, slowing(config)) if config.positions == "rope" else None


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
