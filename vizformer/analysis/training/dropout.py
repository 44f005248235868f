"""Dropout: one row with and without it, and what a model answers while it is switched on.

    y_m = x_m b_m / (1 - p),   b_m = 0 with probability p, else 1        (training; in use y = x)

Source: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from vizformer.analysis.attribution.predictions import writable
from vizformer.checkpoints import Checkpoint
from vizformer.model import Transformer
from vizformer.model.initialisation import without_memory
from vizformer.model.trace import Trace

RUNS = 8  # answers with dropout on


@dataclass(frozen=True)
class Dropped:
    """A row, which of its numbers were kept, and what dropout makes of it: these over 1 - p, the others 0."""

    row: Float[ndarray, " d"]
    kept: Bool[ndarray, " d"]
    result: Float[ndarray, " d"]

    @property
    def mean_before(self) -> float:
        return float(self.row.mean())

    @property
    def mean_after(self) -> float:
        return float(self.result.mean())


def drop(row: Float[ndarray, " d"], p: float, seed: int) -> Dropped:
    """Drops numbers of a row.

    Raises:
        ValueError: p is not in [0, 1).
    """
    if not 0 <= p < 1:
        raise ValueError(f"p = {p}: choose 0 up to, but not, 1")
    kept = np.random.default_rng(seed).random(len(row)) >= p
    return Dropped(row, kept, np.where(kept, row / (1 - p), 0.0))


@dataclass(frozen=True)
class Answers:
    """What the model gives at the position where, in use, it is least sure."""

    position: int  # that position of the stack that predicts
    token: int  # the id that is most probable in use
    probability: float  # its probability in use
    training: Float[ndarray, " runs"]  # its probability in each run with dropout
    agree: int  # in how many of these runs it is the most probable one


def training_answers(checkpoint: Checkpoint, trace: Trace, p: float, seed: int, runs: int = RUNS) -> Answers:
    """A prediction with dropout p, several times at once; the model itself stays as it is."""
    model = checkpoint.model
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        twin = _twin(model, p)
        torch.manual_seed(seed)
        ids = [torch.tensor([[token.id for token in tokens]] * runs) for tokens in trace.tokens.values()]
        device = model.embedding.weight.device
        position = int(torch.softmax(trace.logits.double(), -1).amax(-1).argmin())
        logits = twin(*(one.to(device) for one in ids))[:, position].double()  # [runs, vocab_size]
        own = trace.logits[position].double()
    token = int(writable(checkpoint, own).argmax())
    training = torch.softmax(logits, -1)[:, token].cpu().numpy()
    agree = int((writable(checkpoint, logits).argmax(-1) == token).sum())
    return Answers(position, token, float(torch.softmax(own, -1)[token]), training, agree)


def training_losses(
    model: Transformer, trace: Trace, rows: Sequence[int], right: Sequence[int], p: float, seed: int, runs: int = RUNS
) -> Float[ndarray, " runs"]:
    """The mean cross-entropy of these rows (nats) in several passes with dropout p; the model itself stays as it is."""
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        twin = _twin(model, p)
        torch.manual_seed(seed)
        device = model.embedding.weight.device
        ids = [torch.tensor([[token.id for token in tokens]] * runs, device=device) for tokens in trace.tokens.values()]
        log_p = twin(*ids)[:, list(rows)].double().log_softmax(-1)  # [runs, rows, vocab_size]
        wanted = torch.tensor(list(right), device=device).expand(runs, -1)[..., None]
        found: ndarray = -log_p.gather(-1, wanted).mean((1, 2)).cpu().numpy()
    return found


def _twin(model: Transformer, p: float) -> Transformer:
    """The same weights, not copied, in training mode and with another dropout."""
    with without_memory():
        twin = Transformer(replace(model.config, dropout=p))
    twin.load_state_dict(model.state_dict(), assign=True)
    twin.materialise_buffers()
    return twin.train()
