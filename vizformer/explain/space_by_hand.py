"""A state space (`vizformer.model.state_rule`) by hand: two tokens, token by token and as a map.

    S <- a S + b (dt v)^T,  o = S^T c + D v,  a = e^(-r dt)     and     o = M v,  M = L * (C B^T) diag(dt) + D I

Each token asks with its own key (c = b); L_21 = a_2, and above the diagonal L is 0.

Source: Dao & Gu 2024, "Transformers are SSMs", sections 3 and 5.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain.delta_by_hand import VALUES, two_keys


@dataclass(frozen=True)
class TwoSteps:
    """Two tokens both ways: `states` and `read` token by token, `left` (L), `scores` (C B^T) and `map` at once."""

    keys: Float[ndarray, "2 2"]
    steps: Float[ndarray, " 2"]
    keep: float
    states: tuple[Float[ndarray, "2 2"], Float[ndarray, "2 2"]]
    read: Float[ndarray, "2 2"]
    left: Float[ndarray, "2 2"]
    scores: Float[ndarray, "2 2"]
    map: Float[ndarray, "2 2"]


def two_steps(degrees: int, step: float, rate: float, skip: float, values: Float[ndarray, "2 2"] = VALUES) -> TwoSteps:
    """Two tokens whose keys, of length 1, are `degrees` apart; the first one has the step 1, the second one `step`."""
    keys, steps = two_keys(degrees), np.array([1.0, step])
    S, states, read = np.zeros((2, 2)), [], []
    for k, dt, v in zip(keys, steps, values, strict=True):
        S = np.exp(-rate * dt) * S + np.outer(k, dt * v)
        states.append(S)
        read.append(k @ S + skip * v)
    keep = float(np.exp(-rate * step))
    left, scores = np.array([[1.0, 0.0], [keep, 1.0]]), keys @ keys.T
    return TwoSteps(
        keys,
        steps,
        keep,
        (states[0], states[1]),
        np.stack(read),
        left,
        scores,
        left * scores * steps + skip * np.eye(2),
    )
