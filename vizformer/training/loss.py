"""Batches and losses of a training: of a translator, and of a model that reads one text."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from vizformer.model import Transformer

IGNORED = -100  # the label of a position at which nothing is to be predicted


@dataclass(frozen=True)
class PairBatch:
    """source [b, n] with its end mark; target [b, m] begins with the start mark and ends with the end mark."""

    source: Tensor
    target: Tensor

    def to(self, device: torch.device) -> "PairBatch":
        return PairBatch(self.source.to(device), self.target.to(device))


@dataclass(frozen=True)
class RowBatch:
    """Rows of similar length, padded on the right: [b, n] each; padding is True where there is no token."""

    ids: Tensor
    labels: Tensor
    segments: Tensor
    padding: Tensor

    def to(self, device: torch.device) -> "RowBatch":
        return RowBatch(self.ids.to(device), self.labels.to(device), self.segments.to(device), self.padding.to(device))


def translation_logits(model: Transformer, batch: PairBatch) -> tuple[Tensor, Tensor]:
    """The logits of the next target tokens [n_real, vocab_size], teacher-forced, and these tokens [n_real].

    Logits are computed only where there is something to predict: they are the most expensive product of a small model
    with a large vocabulary.

    Raises:
        ValueError: the model has no pad_id.
    """
    pad = model.config.pad_id
    inputs, labels = batch.target[:, :-1], batch.target[:, 1:]  # [b, m-1]
    if pad is None:
        raise ValueError("a translator needs a pad_id")
    real = labels.ne(pad)
    source_padding = batch.source.eq(pad)
    memory = model.encode(batch.source, padding=source_padding)
    # Right padding of the target needs no mask: a real position sees only earlier, real ones.
    x = model.decode(inputs, memory, memory_padding=source_padding)
    return model.logits(x[real]), labels[real]


def token_logits(model: Transformer, batch: RowBatch) -> tuple[Tensor, Tensor]:
    """The logits at the positions that have a label [n_real, vocab_size], and these labels [n_real].

    A decoder's labels are the next tokens (Radford et al. 2018), an encoder's are the tokens that were masked
    (Devlin et al. 2018, 3.1).
    """
    real = batch.labels.ne(IGNORED)
    if model.decoder is not None:  # padding stands on the right, where no real position looks
        x = model.decode(batch.ids, segments=batch.segments)
    else:
        x = model.encode(batch.ids, padding=batch.padding, segments=batch.segments)
    return model.logits(x[real]), batch.labels[real]


def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    """The minimum of the loss with label smoothing: the entropy of the target, in nats.

    H(q) = -sum_j q_j ln q_j,  q_j = (1 - eps) [j is right] + eps / vocab_size;  a model that gives exactly q has it.
    Source: Szegedy et al. 2016, section 7.
    """
    rest = smoothing / vocab_size
    right = 1 - smoothing + rest
    return -sum(count * q * math.log(q) for q, count in ((right, 1), (rest, vocab_size - 1)) if q > 0)


# The learning rate schedule of Vaswani et al. 2017.
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


# Settings that speed up a training step on ordinary processors; none of them changes what is computed.
#
# Measured on two shared cores (7.3 M parameters, batches of 4096 tokens of about 20): plain 3700 tokens/s; with one
# thread and memory kept 4800; also without the fused attention kernel 8800.
@contextmanager
def fast_short_attention(device: torch.device) -> Iterator[None]:
    """Computes attention by plain matrix products: on a CPU the fused kernel is slow for many short sequences."""
    if device.type != "cpu":
        yield
        return
    with sdpa_kernel(SDPBackend.MATH):
        yield
