"""The same small training three times: norm after the sum, norm before the sublayer, and the former with a warm-up.

    python -m recipes.norm_order assets/lessons/block/norm_order.json     # 90 seconds on one core

All three begin with the same seed and read the same examples in the same order.  What is kept are the losses.

Source: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from recipes.arguments import paths
from recipes.loss_curves import averaged, task_losses
from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.options import NormOrder
from vizformer.training.live import Plan
from vizformer.training.tasks import TASKS

AVERAGED = 5  # updates whose mean loss is one point of a curve


@dataclass(frozen=True, kw_only=True)
class NormOrderRecipe:
    """What decides the losses, with the seed and the order of the norms.

    Attributes:
        task: a name in `vizformer.training.tasks.TASKS`; the model is decoder-only.
        learning_rate: the same at every update (after the warm-up, where there is one).
        warmup: updates over which the third training lets it grow from 0, linearly.
        batch: examples of an update.
    """

    task: str = "sort"
    n_layers: int = 12
    d_model: int = 32
    n_heads: int = 4
    updates: int = 400
    learning_rate: float = 0.003
    warmup: int = 100
    batch: int = 16
    seed: int = 0

    def config(self, norm_order: NormOrder) -> ModelConfig:
        """The options of the model."""
        plan = Plan(
            task=self.task,
            architecture="decoder-only",
            n_layers=1,
            n_heads=self.n_heads,
            d_model=self.d_model,
            norm_order=norm_order,
        )
        return replace(plan.config, n_decoder_layers=self.n_layers)


RECIPE = NormOrderRecipe()


def train_losses(
    norm_order: NormOrder,
    warmup: int,
    recipe: NormOrderRecipe = RECIPE,
    report: Callable[[int, float], None] | None = None,
) -> list[float]:
    """The loss of every update (nats per symbol of the answer), with Adam and a learning rate that stays."""
    torch.manual_seed(recipe.seed)
    model = Transformer(recipe.config(norm_order)).train()
    return task_losses(
        model,
        torch.optim.Adam(model.parameters(), betas=(0.9, 0.98)),
        TASKS[recipe.task],
        lambda update: recipe.learning_rate * min(1.0, update / warmup if warmup else 1.0),
        updates=recipe.updates,
        batch=recipe.batch,
        seed=recipe.seed,
        report=report,
    )


def measure(recipe: NormOrderRecipe = RECIPE, say: Callable[[str], None] = print) -> dict[str, Any]:
    """The three trainings: the recipe, what guessing among the symbols and the end mark costs, and the curves by name."""
    runs: dict[str, tuple[NormOrder, int]] = {"post": ("post", 0), "pre": ("pre", 0), "warm": ("post", recipe.warmup)}
    curves = {}
    for name, (norm_order, warmup) in runs.items():

        def report(update: int, loss: float, name: str = name) -> None:
            if update % 50 == 0:
                say(f"{name}: update {update}, loss {loss:.3f}")

        curves[name] = averaged(train_losses(norm_order, warmup, recipe, report), AVERAGED)
    points, task = len(curves["post"]), TASKS[recipe.task]
    return {
        "recipe": asdict(recipe),
        "guessing": round(math.log(len(task.symbols) + task.ends), 4),
        "updates": [AVERAGED * (index + 1) for index in range(points)],
        "loss": curves,
    }


def main(path: Path) -> None:
    torch.set_num_threads(1)
    path.write_text(json.dumps(measure()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*paths(1, __doc__))
