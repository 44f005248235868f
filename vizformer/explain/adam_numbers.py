"""Adam on one weight, step by step.

    m_t = beta_1 m_(t-1) + (1 - beta_1) g_t          m^_t = m_t / (1 - beta_1^t)
    v_t = beta_2 v_(t-1) + (1 - beta_2) g_t^2        v^_t = v_t / (1 - beta_2^t)
    w_t = w_(t-1) - lr_t m^_t / (sqrt(v^_t) + eps)

Source: Kingma & Ba 2015, "Adam: A Method for Stochastic Optimization", Algorithm 1; the values of beta_1, beta_2 and eps
are those of Vaswani et al. 2017, section 5.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.optim.adam import adam as torch_adam

from vizformer.explain.step import Proof
from vizformer.messages import N_

BETA_1, BETA_2, EPS = 0.9, 0.98, 1e-9


@dataclass(frozen=True)
class AdamStep:
    """One update of Adam: gradient, both moments with and without bias correction, learning rate, change and new
    weight.
    """

    step: int
    gradient: float
    m: float
    v: float
    m_hat: float
    v_hat: float
    rate: float
    change: float
    weight: float


def adam(
    weight: float, gradients: Sequence[float], rates: Sequence[float], *, corrected: bool = True
) -> tuple[AdamStep, ...]:
    """The updates for these gradients and learning rates; without `corrected`, m and v have no bias correction."""
    m = v = 0.0
    steps = []
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        m = BETA_1 * m + (1 - BETA_1) * g
        v = BETA_2 * v + (1 - BETA_2) * g * g
        m_hat, v_hat = (m / (1 - BETA_1**t), v / (1 - BETA_2**t)) if corrected else (m, v)
        change = -rate * m_hat / (v_hat**0.5 + EPS)
        weight += change
        steps.append(AdamStep(t, g, m, v, m_hat, v_hat, rate, change, weight))
    return tuple(steps)


def adam_proof(weight: float, gradients: Sequence[float], rates: Sequence[float]) -> Proof:
    """The weights after every update, against torch.optim.Adam with the same gradients and learning rates."""
    # The function of torch.optim.Adam: the first step of an optimizer would import the compiler, which takes 2.6 s.
    w, m, v = (torch.tensor([number], dtype=torch.float64) for number in (weight, 0.0, 0.0))
    count, own = torch.tensor(0.0), []
    for g, rate in zip(gradients, rates, strict=True):
        torch_adam(
            *([w], [torch.tensor([g], dtype=torch.float64)], [m], [v], [], [count]),
            foreach=False,
            has_complex=False,
            amsgrad=False,
            beta1=BETA_1,
            beta2=BETA_2,
            lr=rate,
            weight_decay=0.0,
            eps=EPS,
            maximize=False,
        )
        own.append(w.item())
    found = np.array([step.weight for step in adam(weight, gradients, rates)])
    return Proof.compare(N_("the weights that torch.optim.Adam makes"), found, np.array(own))
