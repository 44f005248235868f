"""The same small language model with feed-forwards 1, 2, 4 and 8 times as wide as the residual stream.

    python -m recipes.feed_forward_width assets/lessons/block/feed_forward_width.json     # 8 minutes on one core

A decoder-only model learns to write the bundled English passages letter by letter; the last ones are held out.  One
series has the same number of layers at every width, so that a wider model has more parameters.  In the other one all
models have the same matrices to fill, 24 d^2 weights in their layers: a layer has 4 d^2 + 2 r d^2, so that narrow ones
are deeper.  All trainings of a seed read the same letters in the same order.

Source: Vaswani et al. 2017, Table 3, rows C (d_ff 1024 and 4096).
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from recipes.arguments import paths
from recipes.gru import GRURecipe, learning_rate
from vizformer.assets import asset
from vizformer.config import ModelConfig
from vizformer.freed_memory import keep_freed_memory
from vizformer.model import Transformer
from vizformer.training.loss import fast_short_attention


@dataclass(frozen=True, kw_only=True)
class WidthRecipe:
    """What decides the losses, with the seed and the shape of the model.

    Attributes:
        models: layers and d_ff over d_model of each; the first four are as deep as each other, those with 24 d^2
            weights in their layers are the second series.
        context: letters of a row.
        rows: of an update.
        held_out: the share of the text, at its end, that is only measured on.
        rate, warmup: the largest learning rate, reached after `warmup` updates; then half a cosine down to 0.
        seeds: of the weights and of the rows, a training each.
    """

    models: tuple[tuple[int, int], ...] = ((2, 1), (2, 2), (2, 4), (2, 8), (4, 1), (3, 2), (1, 10))
    d_model: int = 64
    n_heads: int = 4
    context: int = 96
    rows: int = 8
    updates: int = 800
    held_out: float = 0.15
    rate: float = 6e-3
    warmup: int = 80
    seeds: tuple[int, ...] = (0, 1, 2)

    def config(self, layers: int, ratio: int, vocab_size: int) -> ModelConfig:
        return ModelConfig(
            vocab_size=vocab_size,
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=ratio * self.d_model,
            n_encoder_layers=0,
            n_decoder_layers=layers,
            max_positions=self.context,
            positions="rope",
            norm_order="pre",
            final_norm=True,
            dropout=0.0,
        )


RECIPE = WidthRecipe()


def letters(recipe: WidthRecipe = RECIPE) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"], int]:
    """The bundled passages as numbers of letters: to train on, held out; and how many different letters there are."""
    text = asset("corpora", "en.txt").read_text(encoding="utf-8")
    number = {letter: index for index, letter in enumerate(sorted(set(text)))}
    ids = torch.tensor([number[letter] for letter in text])
    cut = round(len(ids) * (1 - recipe.held_out))
    return ids[:cut], ids[cut:], len(number)


def row_loss(model: Transformer, rows: Int[Tensor, "b m"]) -> Tensor:
    """Mean cross-entropy of the next letter, in nats."""
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


@torch.no_grad()
def mean_loss(model: Transformer, ids: Int[Tensor, " n"], context: int) -> float:
    """The loss on a text cut into rows, nats a letter; every letter but the first of a row is asked for once."""
    rows = ids[: len(ids) // context * context].view(-1, context)
    return float(row_loss(model.eval(), rows))


def train(layers: int, ratio: int, seed: int, recipe: WidthRecipe = RECIPE) -> dict[str, Any]:
    """One training: the loss on held-out letters and on those it read, its parameters, and the seconds it took."""
    keep_freed_memory()
    read, held_out, vocab_size = letters(recipe)
    torch.manual_seed(seed)
    model = Transformer(recipe.config(layers, ratio, vocab_size))
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), fused=True)
    draws, schedule = torch.Generator().manual_seed(seed), GRURecipe(rate=recipe.rate, warmup=recipe.warmup)
    places, started = torch.arange(recipe.context + 1), time.process_time()
    for update in range(1, recipe.updates + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(update, recipe.updates, schedule)
        starts = torch.randint(len(read) - recipe.context, (recipe.rows, 1), generator=draws)
        with fast_short_attention(torch.device("cpu")):
            loss = row_loss(model.train(), read[starts + places])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return {
        "seed": seed,
        "held_out": round(mean_loss(model, held_out, recipe.context), 4),
        "read": round(mean_loss(model, read[: len(held_out)], recipe.context), 4),
        "seconds": round(time.process_time() - started, 1),
    }


def measure(recipe: WidthRecipe = RECIPE, say: Callable[[str], None] = print) -> dict[str, Any]:
    """All trainings: the recipe, how many letters there are, and for each model its parameters and a run for each seed."""
    read, held_out, vocab_size = letters(recipe)
    found = []
    for layers, ratio in recipe.models:
        size = sum(one.numel() for one in Transformer(recipe.config(layers, ratio, vocab_size)).parameters())
        runs = [train(layers, ratio, seed, recipe) for seed in recipe.seeds]
        found.append({"layers": layers, "ratio": ratio, "parameters": size, "runs": runs})
        say(f"{layers} layers, d_ff {ratio} d: {size:,} parameters, {[run['held_out'] for run in runs]}")
    return {"recipe": asdict(recipe), "letters": {"read": len(read), "held_out": len(held_out)}, "models": found}


def main(path: Path) -> None:
    torch.set_num_threads(1)
    path.write_text(json.dumps(measure()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*paths(1, __doc__))
