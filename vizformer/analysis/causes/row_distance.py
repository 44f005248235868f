"""How far one row of the output moves, for many runs at once.

    KL(P || P') = sum_t P(t) (ln P(t) - ln P'(t)), in nats
    change of the logit and of the probability of one token: P' minus P

where P is the distribution of the run without an intervention.
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor


def row_effects(
    base: Float[Tensor, " vocab_size"], logits: Float[Tensor, "runs vocab_size"], token: int
) -> Float[ndarray, "3 runs"]:
    """KL, change of the logit, change of the probability of `token`, of each run."""
    p, q = base.double().log_softmax(-1), logits.double().log_softmax(-1)
    divergence = (p.exp() * (p - q)).nan_to_num_(0.0).sum(-1)  # (a token that can never come: 0 ln 0)
    logit = logits[:, token].double() - base[token].double()
    probability = q[:, token].exp() - p[token].exp()
    return np.stack([each.cpu().numpy() for each in (divergence, logit, probability)])
