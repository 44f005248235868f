"""The training loop: Adam, warm-up, an average of the weights, and a state on disk to go on from after a kill."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from vizformer.config import ModelConfig
from vizformer.errors import VizformerError
from vizformer.freed_memory import keep_freed_memory, release_gaps
from vizformer.model import Transformer
from vizformer.training.loss import fast_short_attention, inverse_square_root

Batch = TypeVar("Batch")
RELEASED_EVERY = 50  # steps


def best_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """How long and how fast to train.

    Attributes:
        epochs: passes over the data.
        warmup, factor: of the learning rate (`vizformer.training.loss`).
        average_decay: of the exponential moving average of the weights, which is what is kept in the end.
        clip: largest norm of the gradient.
        seed: of the initial weights, the order of the data and dropout.
    """

    epochs: int
    warmup: int
    factor: float = 1.0
    average_decay: float = 0.999
    clip: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Progress:
    """What the loop reports: after every epoch, and a few times within one (`validation` is then empty)."""

    epoch: int
    epochs: int
    step: int
    loss: float
    learning_rate: float
    tokens_per_second: float
    seconds: float
    validation: Mapping[str, float]


def trained(model: Transformer) -> list[Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def new_optimizer(model: Transformer) -> torch.optim.Adam:
    """Adam with the constants of Vaswani et al. 2017, 5.3; `fit` sets the rate before each step."""
    return torch.optim.Adam(trained(model), lr=1.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


def fit(
    model: Transformer,
    options: LoopOptions,
    *,
    batches: Callable[[int], Iterable[Batch]],
    loss: Callable[[Transformer, Batch], tuple[Tensor, int]],
    validate: Callable[[Transformer], Mapping[str, float]],
    state_file: Path,
    report: Callable[[Progress], None],
) -> Transformer:
    """Trains `model` in place and returns the averaged model.

    `batches(epoch)` must give the same batches for the same epoch.  The state is written after every epoch and, if
    `state_file` exists, training goes on from it.  (A kill loses at most the running epoch.)

    Raises:
        VizformerError: the state on disk belongs to other options, or the loss is no longer a number.
    """
    keep_freed_memory()
    parameters, optimizer = trained(model), new_optimizer(model)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(options.average_decay))  # type: ignore[no-untyped-call]
    first_epoch, step, seconds = _resume(state_file, options, model, average, optimizer)
    for epoch in range(first_epoch, options.epochs):
        torch.manual_seed(options.seed * 1_000_003 + epoch)  # dropout repeats itself after a resume
        model.train()
        started, last_report = time.perf_counter(), time.perf_counter()
        total = torch.zeros((), device=parameters[0].device)
        n_batches = n_tokens = 0
        for batch in batches(epoch):
            step += 1
            rate = inverse_square_root(step, d_model=model.config.d_model, warmup=options.warmup, factor=options.factor)
            for group in optimizer.param_groups:
                group["lr"] = rate
            with fast_short_attention(parameters[0].device):
                value, tokens = loss(model, batch)
                optimizer.zero_grad(set_to_none=True)
                value.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, options.clip)
            optimizer.step()
            average.update_parameters(model)
            if step % RELEASED_EVERY == 0:
                release_gaps()
            total += value.detach()
            n_batches, n_tokens = n_batches + 1, n_tokens + tokens
            if time.perf_counter() - last_report > 30:
                last_report = time.perf_counter()
                _check(float(total), epoch)
                elapsed = last_report - started
                report(
                    Progress(
                        epoch,
                        options.epochs,
                        step,
                        float(total) / n_batches,
                        rate,
                        n_tokens / elapsed,
                        seconds + elapsed,
                        {},
                    )
                )
        _check(float(total), epoch)
        elapsed = time.perf_counter() - started
        seconds += elapsed
        with torch.inference_mode():
            validation = validate(_averaged(average))
        _save(state_file, options, epoch + 1, step, seconds, model, average, optimizer)
        report(
            Progress(
                epoch,
                options.epochs,
                step,
                float(total) / max(n_batches, 1),
                rate,
                n_tokens / elapsed,
                seconds,
                validation,
            )
        )
    return _averaged(average)


def _averaged(average: AveragedModel) -> Transformer:
    model = average.module
    assert isinstance(model, Transformer)
    return model.eval()


def _check(loss: float, epoch: int) -> None:
    if not loss < float("inf"):  # NaN is not smaller than anything either
        raise VizformerError(
            "Training diverged in epoch {epoch}: the loss is not a number. Lower the learning rate or lengthen "
            "the warm-up.",
            epoch=epoch,
        )


def _save(
    path: Path,
    options: LoopOptions,
    epoch: int,
    step: int,
    seconds: float,
    model: Transformer,
    average: AveragedModel,
    optimizer: torch.optim.Optimizer,
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    state = dict(
        options=asdict(options),
        config=model.config.to_dict(),
        epoch=epoch,
        step=step,
        seconds=seconds,
        model=model.state_dict(),
        average=average.state_dict(),
        optimizer=optimizer.state_dict(),
    )
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)  # a kill while writing leaves the old state whole


def _resume(
    path: Path, options: LoopOptions, model: Transformer, average: AveragedModel, optimizer: torch.optim.Optimizer
) -> tuple[int, int, float]:
    if not path.is_file():
        return 0, 0, 0.0
    state = torch.load(path, map_location="cpu", weights_only=True)
    same = {**state["options"], "epochs": options.epochs} == asdict(options)
    if not same or ModelConfig.from_dict(state["config"]) != model.config:  # fields that are newer have their defaults
        raise VizformerError(
            "{path} was written by a training with other options. Delete it or choose another --work folder.",
            path=str(path),
        )
    model.load_state_dict(state["model"])
    average.load_state_dict(state["average"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["epoch"]), int(state["step"]), float(state["seconds"])
