"""The loss of every update of one small training on a task: what the curves of the lessons are made of."""

import random
from collections.abc import Callable

import torch
from torch.optim import Optimizer

from vizformer.freed_memory import keep_freed_memory
from vizformer.model import Transformer
from vizformer.training.loss import fast_short_attention
from vizformer.training.tasks import Task, batch_of, examples, loss_of


def task_losses(
    model: Transformer,
    optimizer: Optimizer,
    task: Task,
    learning_rate: Callable[[int], float],
    *,
    updates: int,
    batch: int,
    seed: int,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Trains the model and gives the loss of every update, in nats per symbol of the answer.

    Args:
        learning_rate: of an update, counted from 1.
        batch: examples of an update.
        seed: of the examples; trainings with the same seed read the same ones in the same order.
        report: is told every update and its loss.
    """
    keep_freed_memory()
    rng = random.Random(seed)
    losses: list[float] = []
    for update in range(1, updates + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(update)
        read = batch_of(task, model.config.architecture, examples(task, rng, batch, held_out=False))
        with fast_short_attention(torch.device("cpu")):
            loss = loss_of(model, read)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
        if report is not None:
            report(update, losses[-1])
    return losses


def averaged(losses: list[float], width: int) -> list[float]:
    """The mean of each `width` losses in a row, with four digits."""
    starts = range(0, len(losses) - width + 1, width)
    return [round(sum(losses[start : start + width]) / width, 4) for start in starts]
