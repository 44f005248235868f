"""The paper's recipe in small, and the same training with one thing left out each time.

    python -m recipes.omissions assets/lessons/training/left_out.json     # minutes on one core

An encoder-decoder learns to say symbols in reverse.  All trainings of a seed begin with the same weights and read the
same examples in the same order; what is kept are the losses.

Source: Vaswani et al. 2017, sections 3.1 (residual connections), 3.4 (embeddings times sqrt(d_model)) and 5.3 (warm-up).
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from recipes.arguments import paths
from recipes.loss_curves import averaged, task_losses
from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.training.live import Plan
from vizformer.training.loss import inverse_square_root
from vizformer.training.tasks import TASKS, Task

LeftOut = Literal["nothing", "warm-up", "scaling", "residual"]
"""What a training does without: nothing of the recipe; the warm-up; sqrt(d_model); the sums around the sublayers."""
LEFT_OUT: tuple[LeftOut, ...] = get_args(LeftOut)
AVERAGED = 10  # updates whose mean loss is one point of a curve


@dataclass(frozen=True, kw_only=True)
class LeftOutRecipe:
    """What decides the losses, with the seed and what is left out.

    Attributes:
        task: a name in `vizformer.training.tasks.TASKS`.
        n_layers: of each stack; post-norm.
        warmup, factor: of the learning rate (`vizformer.training.loss`).
        batch: examples of an update.
        seeds: of the weights and the examples, a training each.
    """

    task: str = "reverse"
    n_layers: int = 3
    d_model: int = 64
    n_heads: int = 4
    updates: int = 600
    warmup: int = 200
    factor: float = 0.5
    batch: int = 32
    seeds: tuple[int, ...] = (0, 1, 2)

    @property
    def config(self) -> ModelConfig:
        """The options of the model of which nothing is left out."""
        plan = Plan(task=self.task, architecture="encoder-decoder", n_heads=self.n_heads, d_model=self.d_model)
        return replace(
            plan.config,
            n_encoder_layers=self.n_layers,
            n_decoder_layers=self.n_layers,
            positions="sinusoidal",
            norm_order="post",
            final_norm=False,
        )


RECIPE = LeftOutRecipe()


def build(left_out: LeftOut, config: ModelConfig) -> Transformer:
    """The model, untrained; with the same random state its weights are the same whatever is left out."""
    model = Transformer(replace(config, residual="none") if left_out == "residual" else config)
    if left_out == "scaling":  # the rows of the table are as short as they were, and nothing makes up for it
        model.config = replace(config, scaled_embedding=False)
    return model


def learning_rate(step: int, left_out: LeftOut, recipe: LeftOutRecipe = RECIPE) -> float:
    """The paper's; without warm-up it stands at its peak until the warm-up would have been over."""
    step = max(step, recipe.warmup) if left_out == "warm-up" else step
    return inverse_square_root(step, d_model=recipe.d_model, warmup=recipe.warmup, factor=recipe.factor)


def train_losses(left_out: LeftOut, seed: int, recipe: LeftOutRecipe = RECIPE) -> list[float]:
    """The loss of every update, in nats per symbol of the answer."""
    torch.manual_seed(seed)
    model = build(left_out, recipe.config).train()
    return task_losses(
        model,
        torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9),
        TASKS[recipe.task],
        lambda step: learning_rate(step, left_out, recipe),
        updates=recipe.updates,
        batch=recipe.batch,
        seed=seed,
    )


def blind(task: Task) -> float:
    """The loss of letters drawn blindly where it is known when the answer ends: n / (n + 1) ln(letters), n of them."""
    mean = (2 + task.longest) / 2
    return mean / (mean + 1) * math.log(len(task.symbols))


def measure(recipe: LeftOutRecipe = RECIPE, say: Callable[[str], None] = print) -> dict[str, Any]:
    """All trainings: the recipe, what guessing among the symbols and the end mark costs, and a curve for each seed."""
    curves: dict[str, list[list[float]]] = {name: [] for name in LEFT_OUT}
    for seed in recipe.seeds:
        for name in LEFT_OUT:
            curves[name].append(averaged(train_losses(name, seed, recipe), AVERAGED))
            say(f"without {name}, seed {seed}: {curves[name][-1][-1]:.3f}")
    points, task = len(curves["nothing"][0]), TASKS[recipe.task]
    return {
        "recipe": asdict(recipe),
        "guessing": round(math.log(len(task.symbols) + task.ends), 4),
        "blind": round(blind(task), 4),
        "updates": [AVERAGED * (index + 1) for index in range(points)],
        "loss": curves,
    }


def main(path: Path) -> None:
    torch.set_num_threads(1)
    path.write_text(json.dumps(measure()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*paths(1, __doc__))
