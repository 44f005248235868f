"""The finished training that the page Train shows before the reader has trained anything.

    python -m recipes.example_training assets/trainings      # about a minute on one core

A decoder-only model of two layers learns to repeat what came before: between two of its snapshots it grows an induction
head.  The same plan gives the same weights, on the page too.

Source: Olsson et al. 2022, "In-context Learning and Induction Heads".
"""

import shutil
import time
from pathlib import Path

import torch

from recipes.arguments import paths
from vizformer.jobs.worker import WATCHED
from vizformer.training.live import Plan, Snapshot, train
from vizformer.training.runs import Run

PLAN = Plan(task="repeat", architecture="decoder-only", n_layers=2, n_heads=4, d_model=32, steps=2000)
NAME = f"train-{PLAN.key}"


def make(folder: Path) -> Run:
    """Trains it anew, in a folder of its name."""
    torch.set_num_threads(1)
    shutil.rmtree(folder / NAME, ignore_errors=True)
    run, started = Run.create(folder / NAME, PLAN), time.monotonic()

    def seconds() -> float:
        return round(time.monotonic() - started, 2)

    def keep(snapshot: Snapshot) -> None:
        run.keep(snapshot, seconds())

    def report(step: int, loss: float) -> None:
        run.write({"step": step, "loss": loss, "seconds": seconds()})

    ending = train(PLAN, keep=keep, report=report)
    run.finish(ending, seconds())
    (run.folder / WATCHED).unlink()
    return run


if __name__ == "__main__":
    make(*paths(1, __doc__))
