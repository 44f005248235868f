"""The learning rate schedule of Vaswani et al. 2017."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float
from numpy import ndarray


def inverse_square_root(step: int, *, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """lr = factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), for step = 1, 2, ...

    It grows linearly for `warmup` steps and then falls with the inverse square root of the step.
    Source: Vaswani et al. 2017, section 5.3, equation 3.
    """
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def peak(d_model: int, warmup: int) -> float:
    """The largest of these learning rates, at step = warmup, where the two curves meet: (d_model warmup)^-0.5."""
    return inverse_square_root(warmup, d_model=d_model, warmup=warmup)


def rates(steps: Iterable[int], d_model: int, warmup: int) -> Float[ndarray, " steps"]:
    """The learning rate at each of these steps."""
    return np.array([inverse_square_root(step, d_model=d_model, warmup=warmup) for step in steps])


def unbounded(steps: Iterable[int], d_model: int, warmup: int) -> tuple[Float[ndarray, " s"], Float[ndarray, " s"]]:
    """The two curves, of which the smaller one counts: d_model^-0.5 step warmup^-1.5, and d_model^-0.5 step^-0.5."""
    at = np.array(list(steps), dtype=np.float64)
    return d_model**-0.5 * at * warmup**-1.5, d_model**-0.5 * at**-0.5
