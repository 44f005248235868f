"""Exercise 12: one step of a training."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vizformer.exercises.task import (
    Case,
    Function,
    Results,
    Task,
    UnusableError,
    bundled_reading,
    named,
    random_reading,
)
from vizformer.messages import N_
from vizformer.word_tables import words_of

STEPS = 3


def training_step(
    loss_of: Callable[[], Tensor],
    parameters: list[Tensor],
    optimizer: torch.optim.Optimizer,
    step: int,
    d_model: int,
    warmup: int,
) -> float:
    rate = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad()
    loss = loss_of()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    return loss.item()


def _run(functions: tuple[Function, ...], arguments: tuple[Any, ...]) -> Results:
    loss_of, parameters, optimizer, *sizes = arguments
    found: Results = {}
    for step in range(1, STEPS + 1):
        made = named(functions[0](loss_of, parameters, optimizer, step, *sizes), "loss")["loss"]
        if isinstance(made, Tensor) and made.requires_grad:
            raise UnusableError(
                N_("The loss still holds the graph of the forward, which then stays in memory: return loss.item().")
            )
        found[f"step {step}: loss"] = made
        found[f"step {step}: parameters"] = torch.cat([p.detach().flatten() for p in parameters])
    return found


def _cases(text: str) -> Iterator[Case]:
    def by_hand(start: float) -> tuple[Any, ...]:
        w = torch.tensor([start], requires_grad=True)
        return lambda: (w**2 / 2).sum(), [w], torch.optim.SGD([w], lr=0.01), 4, 1

    for start in (3.0, 0.8):
        yield Case(N_("by hand: w = {start}, loss w² / 2", start=f"{start:g}"), partial(by_hand, start))

    def random() -> tuple[Any, ...]:
        generator = torch.Generator().manual_seed(1)
        x, y, w, b = (torch.randn(*size, generator=generator) for size in ((7, 5), (7, 2), (5, 2), (2,)))
        parameters = [w.requires_grad_(), b.requires_grad_()]
        return lambda: 10 * F.mse_loss(x @ w + b, y), parameters, torch.optim.SGD(parameters, 0.01, momentum=0.9), 16, 2

    yield Case(random_reading().title, random)
    reading = bundled_reading(text)
    model, trace = reading.checkpoint.model, reading.trace
    weights = reading.weights(f"decoder.{model.config.n_decoder_layers - 1}")
    gamma, beta = weights["feedforward_norm.weight"], weights["feedforward_norm.bias"]
    rows = (trace.residual("decoder.final") - beta) / gamma
    wanted = torch.tensor([*(token.id for token in trace.tokens["decoder"][1:]), model.config.eos_id])

    def bundled() -> tuple[Any, ...]:
        parameters = [gamma.clone().requires_grad_(), beta.clone().requires_grad_()]

        def loss_of() -> Tensor:
            return F.cross_entropy(model.logits((rows * parameters[0] + parameters[1])[None])[0], wanted)

        adam = torch.optim.Adam(parameters, lr=0.01, betas=(0.9, 0.98), eps=1e-9)
        return loss_of, parameters, adam, model.config.d_model, 4

    yield Case(N_("{where}: the last norm", where=reading.title), bundled)


TASK = Task(
    "training",
    words_of(__file__),
    ("rate = d_model^−0.5 · min(step^−0.5, step · warmup^−1.5)",),
    ("loss_of: () → loss [], parameters: a list of tensors, optimizer of torch.optim, step, d_model, warmup → float",),
    (training_step,),
    ("loss",),
    _cases,
    run=_run,
    trains=True,
)
