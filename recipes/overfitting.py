"""A small language model that reads few letters again and again, with dropout and without: losses on what it reads and not.

    python -m recipes.overfitting assets/lessons/training/overfitting.json     # 1 minute on one core

All trainings begin with the same weights and read the same letters in the same order; they differ in p alone.

Source: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting"; Vaswani et al. 2017,
section 5.4 and Table 3, rows D.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from recipes.arguments import paths
from recipes.feed_forward_width import WidthRecipe, letters, mean_loss, row_loss
from vizformer.freed_memory import keep_freed_memory
from vizformer.model import Transformer
from vizformer.training.loss import fast_short_attention

TEXT = WidthRecipe(context=64)
"""The text, its cut, and the shape of the model: those of `recipes.feed_forward_width`."""


@dataclass(frozen=True, kw_only=True)
class OverfittingRecipe:
    """What decides the losses, with p.

    Attributes:
        letters: of the text that is read; the held-out text is the rest's end.
        rates: the shares p that are dropped, a training each.
        rate: the learning rate of Adam.
        rows: of an update; `measured_every` so many updates both losses are measured, without dropout.
    """

    letters: int = 4096
    layers: int = 2
    ratio: int = 4
    updates: int = 1200
    measured_every: int = 40
    rows: int = 8
    rate: float = 2e-3
    rates: tuple[float, ...] = (0.0, 0.1, 0.3)
    seed: int = 0


RECIPE = OverfittingRecipe()


def train(p: float, recipe: OverfittingRecipe = RECIPE) -> dict[str, list[float]]:
    """One training: its mean losses, nats a letter, on what it reads and on held-out text."""
    keep_freed_memory()
    whole, held_out, vocab_size = letters(TEXT)
    read = whole[: recipe.letters]
    torch.manual_seed(recipe.seed)
    model = Transformer(replace(TEXT.config(recipe.layers, recipe.ratio, vocab_size), dropout=p))
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.rate, betas=(0.9, 0.98), fused=True)
    draws, places = torch.Generator().manual_seed(recipe.seed), torch.arange(TEXT.context + 1)
    found: dict[str, list[float]] = {"read": [], "held_out": []}
    for update in range(1, recipe.updates + 1):
        starts = torch.randint(len(read) - TEXT.context, (recipe.rows, 1), generator=draws)
        with fast_short_attention(torch.device("cpu")):
            loss = row_loss(model.train(), read[starts + places])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if update % recipe.measured_every == 0:
            found["read"].append(round(mean_loss(model, read, TEXT.context), 4))
            found["held_out"].append(round(mean_loss(model, held_out[: recipe.letters], TEXT.context), 4))
    return found


def measure(recipe: OverfittingRecipe = RECIPE, say: Callable[[str], None] = print) -> dict[str, Any]:
    """All trainings: the recipe, the updates after which was measured, and the losses for each p."""
    runs: list[dict[str, Any]] = []
    for p in recipe.rates:
        runs.append({"p": p, **train(p, recipe)})
        say(f"p = {p}: lowest held-out loss {min(runs[-1]['held_out'])}, last {runs[-1]['held_out'][-1]}")
    updates = list(range(recipe.measured_every, recipe.updates + 1, recipe.measured_every))
    return {"recipe": asdict(recipe), "updates": updates, "runs": runs}


def main(path: Path) -> None:
    torch.set_num_threads(1)
    path.write_text(json.dumps(measure()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*paths(1, __doc__))
