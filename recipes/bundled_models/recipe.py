"""What a bundled model of running text is made from, and the training that these share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from recipes.batches import Row, row_batches
from recipes.loop import LoopOptions, Progress, best_device, fit
from recipes.loss import token_loss
from vizformer.checkpoints.own import Checkpoint
from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.text import Tokenizer
from vizformer.training.loss import RowBatch


@dataclass(frozen=True, kw_only=True)
class TextRecipe:
    """Everything that, with the data, decides the trained weights.

    Attributes:
        model: options of `ModelConfig` except the vocabulary and the special ids, which come from the data.
        loop: how long and how fast.
        autocast: whether the matrix products are in bfloat16.
        sources: the data it is meant for, with licences, for the model card.
    """

    name: str
    vocab_size: int
    model: Mapping[str, object]
    loop: LoopOptions
    tokens_per_batch: int = 4096
    autocast: bool = True
    sources: tuple[str, ...] = ()


def train_on_rows(
    recipe: TextRecipe,
    tokenizer: Tokenizer,
    special_ids: Mapping[str, int | None],
    rows: Callable[[int], Sequence[Row]],
    valid: Mapping[str, Sequence[Row]],
    work: Path,
    report: Callable[[Progress], None],
) -> Checkpoint:
    """Trains (or goes on training) the recipe's model; `work` holds the state to resume from.

    `rows(epoch)` are the rows of an epoch, always the same for the same epoch; `valid` are named held-out rows.
    """
    device = best_device()
    config = ModelConfig.from_dict({"vocab_size": tokenizer.vocab_size, **recipe.model, **special_ids})
    torch.manual_seed(recipe.loop.seed)
    model = Transformer(config).to(device)
    assert config.pad_id is not None
    pad_id = config.pad_id

    def batches(epoch: int) -> Iterator[RowBatch]:
        for batch in row_batches(rows(epoch), tokens_per_batch=recipe.tokens_per_batch, pad_id=pad_id, seed=epoch):
            yield batch.to(device)

    def validate(averaged: Transformer) -> Mapping[str, float]:
        return {name: mean_loss(averaged, held_out, pad_id) for name, held_out in valid.items()}

    averaged = fit(
        model,
        recipe.loop,
        batches=batches,
        validate=validate,
        state_file=work / "state.pt",
        report=report,
        loss=lambda model, batch: token_loss(model, batch, autocast=recipe.autocast),
    )
    return Checkpoint(name=recipe.name, model=averaged.cpu(), tokenizer=tokenizer)


def mean_loss(model: Transformer, rows: Sequence[Row], pad_id: int) -> float:
    """Mean cross-entropy of the labelled positions, in nats."""
    device = model.embedding.weight.device
    total, count = 0.0, 0
    for batch in row_batches(rows, tokens_per_batch=8192, pad_id=pad_id, seed=None):
        loss, n = token_loss(model, batch.to(device), autocast=False, reduction="sum")
        total, count = total + float(loss), count + n
    return total / count
