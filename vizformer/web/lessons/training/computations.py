"""Cached computations of the lesson Training."""

import json
from typing import Any

import numpy as np

from vizformer.analysis import hide, read_alignments
from vizformer.analysis.costs import weight_sharing
from vizformer.analysis.costs.weight_sharing import Sharing
from vizformer.analysis.masks.padding import Batches, Order, batches_of
from vizformer.analysis.training import dropout, small_trainings
from vizformer.analysis.training.gradient import MOST_TOKENS, StepGradient
from vizformer.analysis.training.small_trainings import Averaging, LeftOutCurves, SmoothingMarks
from vizformer.assets import asset
from vizformer.explain import adam_numbers
from vizformer.explain.adam_numbers import AdamStep
from vizformer.explain.loss_parts import Losses, LossNumbers, asked_rows
from vizformer.explain.step import Proof
from vizformer.model import Trace
from vizformer.training import loss
from vizformer.training.schedule import rates, unbounded
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef

DROPOUT_RUNS = 4  # passes over the text
MASKED_EVERY = 7  # tokens, of which one is hidden: about 15 in 100, as BERT was trained


def hidden_with(subject: Subject, position: int) -> tuple[int, ...]:
    """The positions that an encoder has hidden along with this one: every seventh token that is no mark."""
    ordinary = [i for i, token in enumerate(subject.tokens) if not token.special]
    return tuple(ordinary[ordinary.index(position) % MASKED_EVERY :: MASKED_EVERY])


@cached
def prediction(subject: Subject, hidden: int | None) -> Trace:
    """The forward whose logits are asked: of a decoder the usual one, of an encoder one with tokens hidden."""
    if hidden is None:
        return subject.trace
    return hide(subject.checkpoint, subject.tokens, hidden_with(subject, hidden))


@cached
def losses(subject: Subject, hidden: int | None) -> Losses:
    from vizformer.explain.loss_parts import losses

    trace = prediction(subject, hidden)
    return losses(trace, asked_rows(subject.checkpoint, trace, () if hidden is None else subject.tokens))


@cached
def loss_numbers(subject: Subject, hidden: int | None, index: int, eps: float) -> LossNumbers:
    from vizformer.explain.loss_parts import loss_numbers

    asked = losses(subject, hidden).asked[index]
    return loss_numbers(subject.checkpoint, prediction(subject, hidden), asked, eps)


def notes(name: str) -> dict[str, Any]:
    """Bundled measurements: see assets/lessons/training/README.md."""
    return _notes(name)


@cached
def _notes(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(asset("lessons", "training", f"{name}.json").read_text(encoding="utf-8"))
    return found


# --- learning rate and Adam -------------------------------------------------------------------------------------------


@cached
def schedule(d_model: int, warmup: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Steps up to `last`, the learning rates there, and the two curves of which the smaller counts."""
    steps = np.unique(np.linspace(1, last, 240).astype(int))
    return steps, rates(steps, d_model, warmup), *unbounded(steps, d_model, warmup)


@cached
def adam(gradients: tuple[float, ...], rate: float, corrected: bool) -> tuple[AdamStep, ...]:
    return adam_numbers.adam(0.5, gradients, [rate] * len(gradients), corrected=corrected)


@cached
def adam_proof(gradients: tuple[float, ...], rate: float) -> Proof:
    return adam_numbers.adam_proof(0.5, gradients, [rate] * len(gradients))


# --- label smoothing and the mean of checkpoints ----------------------------------------------------------------------


def smoothing_floor(vocabulary: int, eps: float) -> float:
    return loss.smoothing_floor(vocabulary, eps)


@cached
def by_smoothing() -> dict[float, SmoothingMarks]:
    return small_trainings.by_smoothing(notes("smoothing"))


@cached
def averaging() -> tuple[Averaging, ...]:
    return small_trainings.averaging(notes("smoothing"))


@cached
def left_out_curves() -> dict[str, LeftOutCurves]:
    return small_trainings.left_out_curves(notes("left_out"))


# --- gradient, dropout, tables, batches -------------------------------------------------------------------------------

AFFORDABLE = 30_000_000
"""Parameters: the gradient of a larger model takes too long while somebody waits."""


def affordable(subject: Subject) -> bool:
    """Whether the model and the text are small enough for a backward pass."""
    parameters = sum(parameter.numel() for parameter in subject.checkpoint.model.parameters())
    return parameters <= AFFORDABLE and sum(map(len, subject.trace.tokens.values())) <= MOST_TOKENS


@cached
def step_gradient(subject: Subject, hidden: int | None) -> StepGradient:
    from vizformer.analysis.training.gradient import step_gradient

    trace = prediction(subject, hidden)
    return step_gradient(subject.checkpoint.model, trace, losses(subject, hidden).asked)


@cached
def matrix_lengths(model: ModelRef) -> np.ndarray:
    from vizformer.analysis.training.gradient import matrix_lengths

    return matrix_lengths(model_cache.checkpoint(model).model)


@cached
def training_losses(subject: Subject, hidden: int | None, p: float, seed: int) -> np.ndarray:
    """The mean loss of the text in several passes with dropout."""
    asked = losses(subject, hidden).asked
    rows, right = [one.row for one in asked], [one.right.id for one in asked]
    return dropout.training_losses(
        subject.checkpoint.model, prediction(subject, hidden), rows, right, p, seed, DROPOUT_RUNS
    )


@cached
def sharing(model: ModelRef) -> Sharing:
    return weight_sharing.sharing(model_cache.checkpoint(model).model)


@cached
def paper_sharing() -> Sharing:
    return weight_sharing.paper_sharing()


@cached
def sentence_lengths(model: ModelRef) -> tuple[int, ...]:
    """Tokens of the bundled sentences that the model reads; of pairs, those of the first."""
    pairs = read_alignments(asset("models", "zh-en", "alignment.tsv"))
    both = model_cache.options(model).architecture != "encoder-decoder"
    texts = [text for pair in pairs for text in ((pair.source, pair.target) if both else (pair.source,))]
    checkpoint = model_cache.checkpoint(model)
    return tuple(len(checkpoint.encode(text)) for text in texts if model_cache.reads(model, text))


@cached
def batches(lengths: tuple[int, ...], size: int, order: Order, seed: int) -> Batches:
    return batches_of(lengths, size, order, seed)
