"""The gated delta rule (`vizformer.model.state_rule`) by hand: two tokens, a state of 2 x 2 numbers, beside a sum.

    forget: a S,   read: r = (a S)^T k,   correct: u = b (v - r),   write: S <- a S + k u^T

Linear attention just adds: S <- S + k v^T.

Source: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule", section 3; Katharopoulos et al. 2020,
"Transformers are RNNs", section 3.3 (the sum).
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

VALUES = np.array([[3.0, 1.0], [1.0, 3.0]])


@dataclass(frozen=True)
class Write:
    """What becomes of the state at one token: what is left of it, holds under the key, is written, and the state then."""

    kept: Float[ndarray, "2 2"]
    held: Float[ndarray, " 2"]
    written: Float[ndarray, " 2"]
    state: Float[ndarray, "2 2"]


@dataclass(frozen=True)
class TwoWrites:
    """Both rules after the same two tokens; `read` and `read_sum` are what the state gives for each of the keys."""

    keys: Float[ndarray, "2 2"]
    values: Float[ndarray, "2 2"]
    writes: tuple[Write, Write]
    sums: tuple[Float[ndarray, "2 2"], Float[ndarray, "2 2"]]

    @property
    def read(self) -> Float[ndarray, "2 2"]:
        return self.keys @ self.writes[1].state

    @property
    def read_sum(self) -> Float[ndarray, "2 2"]:
        return self.keys @ self.sums[1]


def two_keys(degrees: int) -> Float[ndarray, "2 2"]:
    """Two keys of length 1, so far apart."""
    angle = math.radians(degrees)
    return np.round(np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]]), 12)  # cos 90 degrees is 0


def two_writes(degrees: int, beta: float, keep: float, values: Float[ndarray, "2 2"] = VALUES) -> TwoWrites:
    """Two tokens whose keys, of length 1, are `degrees` apart; of each `beta` is written, and `keep` is left before it."""
    keys = two_keys(degrees)
    S, total, writes, sums = np.zeros((2, 2)), np.zeros((2, 2)), [], []
    for k, v in zip(keys, values, strict=True):
        kept = keep * S
        held = k @ kept
        u = beta * (v - held)
        S, total = kept + np.outer(k, u), total + np.outer(k, v)
        writes.append(Write(kept, held, u, S))
        sums.append(total)
    return TwoWrites(keys, values, (writes[0], writes[1]), (sums[0], sums[1]))
