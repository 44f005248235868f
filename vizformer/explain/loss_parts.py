"""The loss of a prediction, number by number: cross-entropy, label smoothing, and the gradients of both for the logits.

    p = softmax(z),  L = -ln p_y = ln sum_j e^(z_j) - z_y
    q_j = (1 - eps) [j = y] + eps / V,  L_eps = -sum_j q_j ln p_j,  dL_eps / dz_j = p_j - q_j

z are the logits of one row, y the right token, V the entries of the vocabulary; losses are in nats.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor
from torch.optim.adam import adam as torch_adam

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain.arrays import float64
from vizformer.explain.step import Proof
from vizformer.messages import N_
from vizformer.model.trace import Trace
from vizformer.text import Token
from vizformer.training.loss import smoothing_floor

AT_ONCE = 64  # rows of the logits that are held in float64
SHOWN = 5  # tokens whose numbers are written out, the most probable ones

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


@dataclass(frozen=True)
class Asked:
    """A row of the logits and its target token."""

    row: int  # the index of the row
    read: Token  # the token at this position; [MASK] if the right one is hidden
    right: Token  # the target


def asked_rows(checkpoint: AnyCheckpoint, trace: Trace, hidden: Sequence[Token] = ()) -> tuple[Asked, ...]:
    """The target of every row of a text.

    A decoder's target is the next token (in an encoder-decoder the last one is the end mark; how a decoder-only model's
    text continues is not known, so its last row has no target).  An encoder's target is the token that [MASK] hides.

    Args:
        hidden: the tokens of the text, where the model is an encoder and `trace` was made with some of them hidden.
    """
    config = checkpoint.model.config
    if config.architecture == "encoder-only":
        read = trace.tokens["encoder"]
        return tuple(
            Asked(row, here, right)
            for row, (here, right) in enumerate(zip(read, hidden, strict=True))
            if here.id == config.mask_id
        )
    read = trace.tokens["decoder"]
    right = [token.id for token in read[1:]]
    if config.architecture == "encoder-decoder" and config.eos_id is not None:
        right.append(config.eos_id)
    named = checkpoint.tokenizer.tokens(right)
    return tuple(Asked(row, read[row], token) for row, token in enumerate(named))


@dataclass(frozen=True)
class Losses:
    asked: tuple[Asked, ...]  # the rows and their targets
    right: Float[ndarray, " rows"]  # the logit of the right token, z_y
    log_sums: Float[ndarray, " rows"]  # ln sum_j e^(z_j)
    losses: Float[ndarray, " rows"]  # log_sums - right
    proof: Proof  # against PyTorch's cross_entropy of the model's own logits

    @property
    def total(self) -> float:
        return float(self.losses.sum())

    @property
    def mean(self) -> float:
        return float(self.losses.mean())

    @property
    def perplexity(self) -> float:
        """e^mean: the number of equally probable tokens with the same mean loss."""
        return math.exp(self.mean)

    @property
    def probabilities(self) -> Float[ndarray, " rows"]:
        """The probability of the right token in each row, e^-loss."""
        return np.exp(-self.losses)

    def padded_mean(self, padding: int) -> float:
        """The mean if `padding` positions with a loss of 0 are counted too, which makes it too small."""
        return self.total / (len(self.losses) + padding)


def log_sums(logits: Float[Tensor, "rows vocab"]) -> Float[ndarray, " rows"]:
    """ln sum_j e^(z_j) of each row, in float64."""
    parts = (logits[start : start + AT_ONCE].double().logsumexp(-1) for start in range(0, len(logits), AT_ONCE))
    return np.concatenate([part.cpu().numpy() for part in parts])


def losses(trace: Trace, asked: tuple[Asked, ...]) -> Losses:
    """-ln p of the target in each of these rows.

    Raises:
        TraceError: no row has a target.
    """
    if not asked:
        raise TraceError("This text has one token only, so nothing follows it. Type one more word.")
    rows, right = [one.row for one in asked], [one.right.id for one in asked]
    recorded = trace.logits[rows]
    sums = log_sums(recorded)
    found = sums - float64(recorded[range(len(rows)), right])
    own = F.cross_entropy(recorded.float(), torch.tensor(right, device=recorded.device), reduction="none")
    proof = Proof.compare(N_("PyTorch's cross_entropy of the model's logits"), found, own, dtype=torch.float32)
    return Losses(asked, sums - found, sums, found, proof)


@dataclass(frozen=True)
class LossNumbers:
    """The loss of one row, without and with label smoothing eps."""

    tokens: tuple[Token, ...]  # the most probable tokens and, if it is not among them, the right one at the end
    right: int  # the index of the right one among `tokens`
    # logits, probabilities, target, gradient: z, p, q and p - q of these tokens
    logits: Float[ndarray, " shown"]
    probabilities: Float[ndarray, " shown"]
    target: Float[ndarray, " shown"]
    gradient: Float[ndarray, " shown"]
    rest: int  # the number of other tokens
    # rest_probability, rest_target, rest_gradient: the sums of p, q and p - q over these other tokens
    rest_probability: float
    rest_target: float
    rest_gradient: float
    log_sum: float  # ln sum_j e^(z_j) over the whole vocabulary
    # loss, smoothed, floor: L, L_eps, and the least that L_eps can be
    loss: float
    smoothed: float
    floor: float
    mean_surprise: float  # the mean of -ln p_j over the whole vocabulary
    eps: float  # the label smoothing
    proof: Proof  # L_eps against PyTorch's

    @property
    def vocabulary(self) -> int:
        return self.rest + len(self.tokens)


def loss_numbers(checkpoint: AnyCheckpoint, trace: Trace, asked: Asked, eps: float = 0.0) -> LossNumbers:
    """L, L_eps and their gradients for one row of the logits.

    Raises:
        ValueError: eps is not in [0, 1).
    """
    if not 0 <= eps < 1:
        raise ValueError(f"eps = {eps}: choose 0 up to, but not, 1")
    recorded, y = trace.logits[asked.row], asked.right.id
    z = float64(recorded)
    v = len(z)
    log_sum = float(log_sums(recorded[None])[0])
    log_p = z - log_sum
    p, q = np.exp(log_p), np.full(v, eps / v)
    q[y] += 1 - eps
    smoothed = -float(q @ log_p)
    top = np.argpartition(-z, min(SHOWN, v - 1))[:SHOWN]
    shown = [int(id) for id in top[np.argsort(-z[top])]]
    if y not in shown:
        shown = [*shown, y]
    own = F.cross_entropy(
        recorded.float()[None], torch.tensor([y], device=recorded.device), label_smoothing=eps, reduction="none"
    )
    return LossNumbers(
        checkpoint.tokenizer.tokens(shown),
        shown.index(y),
        z[shown],
        p[shown],
        q[shown],
        (p - q)[shown],
        v - len(shown),
        float(p.sum() - p[shown].sum()),
        float(q.sum() - q[shown].sum()),
        float((p - q).sum() - (p - q)[shown].sum()),
        log_sum,
        -float(log_p[y]),
        smoothed,
        smoothing_floor(v, eps),
        -float(log_p.mean()),
        eps,
        Proof.compare(
            N_("PyTorch's cross_entropy of the model's logits"), np.array([smoothed]), own, dtype=torch.float32
        ),
    )


# Adam on one weight, step by step.
#
#     m_t = beta_1 m_(t-1) + (1 - beta_1) g_t          m^_t = m_t / (1 - beta_1^t)
#     v_t = beta_2 v_(t-1) + (1 - beta_2) g_t^2        v^_t = v_t / (1 - beta_2^t)
#     w_t = w_(t-1) - lr_t m^_t / (sqrt(v^_t) + eps)
#
# Source: Kingma & Ba 2015, "Adam: A Method for Stochastic Optimization", Algorithm 1; the values of beta_1, beta_2
# and eps are those of Vaswani et al. 2017, section 5.3.
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
