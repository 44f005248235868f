"""What "Attention Is All You Need" reports: its configurations, its translations, and what happens without each part.

Every number is that of arXiv:1706.03762v7 (2023), Tables 2 and 3 and sections 5 and 6.  For the big model on
English-French the first versions print 41.0 BLEU; this one has 41.8 in its abstract and Table 2, and still 41.0 in the text
of section 6.1.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from vizformer.config import ModelConfig
from vizformer.model import count_parameters

SOURCE = "arXiv:1706.03762v7"
P100_FLOPS = 9.5e12  # Single-precision FLOPs per second of a P100 that section 6.1 (footnote 5) counts with


@dataclass(frozen=True)
class Translator:
    """A row of Table 2.

    `bleu`: English-German and English-French, newstest2014; None where none is given; `flops` of the training likewise.
    """

    name: str
    bleu: tuple[float | None, float | None]
    flops: tuple[float | None, float | None]
    ensemble: bool = False
    ours: bool = False


TABLE_2: tuple[Translator, ...] = (
    Translator("ByteNet", (23.75, None), (None, None)),
    Translator("Deep-Att + PosUnk", (None, 39.2), (None, 1.0e20)),
    Translator("GNMT + RL", (24.6, 39.92), (2.3e19, 1.4e20)),
    Translator("ConvS2S", (25.16, 40.46), (9.6e18, 1.5e20)),
    Translator("MoE", (26.03, 40.56), (2.0e19, 1.2e20)),
    Translator("Deep-Att + PosUnk", (None, 40.4), (None, 8.0e20), ensemble=True),
    Translator("GNMT + RL", (26.30, 41.16), (1.8e20, 1.1e21), ensemble=True),
    Translator("ConvS2S", (26.36, 41.29), (7.7e19, 1.2e21), ensemble=True),
    Translator("Transformer base", (27.3, 38.1), (3.3e18, 3.3e18), ours=True),
    Translator("Transformer big", (28.4, 41.8), (2.3e19, 2.3e19), ours=True),
)


@dataclass(frozen=True)
class Variant:
    """A row of Table 3: what differs from the base model, on newstest2013."""

    group: str  # "base", "A" to "E", or "big"
    changed: tuple[tuple[str, float | str], ...]  # names and values, as the table has them; empty for the base model
    # perplexity, bleu: on the development set
    perplexity: float
    bleu: float
    # parameters that the table prints; None where it leaves them out, since they are the base model's
    millions: int | None = None


def _row(group: str, perplexity: float, bleu: float, millions: int | None = None, **changed: float | str) -> Variant:
    return Variant(group, tuple(changed.items()), perplexity, bleu, millions)


TABLE_3: tuple[Variant, ...] = (
    _row("base", 4.92, 25.8, 65),
    _row("A", 5.29, 24.9, h=1, d_k=512, d_v=512),
    _row("A", 5.00, 25.5, h=4, d_k=128, d_v=128),
    _row("A", 4.91, 25.8, h=16, d_k=32, d_v=32),
    _row("A", 5.01, 25.4, h=32, d_k=16, d_v=16),
    _row("B", 5.16, 25.1, 58, d_k=16),
    _row("B", 5.01, 25.4, 60, d_k=32),
    _row("C", 6.11, 23.7, 36, N=2),
    _row("C", 5.19, 25.3, 50, N=4),
    _row("C", 4.88, 25.5, 80, N=8),
    _row("C", 5.75, 24.5, 28, d_model=256, d_k=32, d_v=32),
    _row("C", 4.66, 26.0, 168, d_model=1024, d_k=128, d_v=128),
    _row("C", 5.12, 25.4, 53, d_ff=1024),
    _row("C", 4.75, 26.2, 90, d_ff=4096),
    _row("D", 5.77, 24.6, P_drop=0.0),
    _row("D", 4.95, 25.5, P_drop=0.2),
    _row("D", 4.67, 25.3, eps=0.0),
    _row("D", 5.47, 25.7, eps=0.2),
    _row("E", 4.92, 25.7, positions="learned"),
    _row("big", 4.33, 26.4, 213, d_model=1024, d_ff=4096, h=16, P_drop=0.3, steps=300_000),
)


@dataclass(frozen=True)
class Recipe:
    """A configuration of the paper, with how it was trained (sections 3, 5 and 6)."""

    preset: str
    layers: int
    d_model: int
    d_ff: int
    heads: int
    d_head: int
    dropout: float
    smoothing: float
    warmup: int
    steps: int
    hours: float
    averaged: int

    @property
    def hardware_flops(self) -> float:
        """Eight P100 for so many hours, as the paper estimates its training cost."""
        return 8 * P100_FLOPS * self.hours * 3600


RECIPES: tuple[Recipe, ...] = (
    Recipe("transformer-base", 6, 512, 2048, 8, 64, 0.1, 0.1, 4000, 100_000, 12.0, 5),
    Recipe("transformer-big", 6, 1024, 4096, 16, 64, 0.3, 0.1, 4000, 300_000, 84.0, 20),
)
"""The big model has dropout 0.1 for English-French (section 6.1)."""


@cache
def counted(row: Variant, vocabulary: int = 37_000) -> int:
    """Parameters of a row, counted on a model with 37,000 tokens (section 5.1).

    Queries and keys of another width than the values (rows B) are no option of the model: their matrices are taken off,
    2 d_model h (64 - d_k) for each of the 18 attentions, with the biases.
    """
    changed = dict(row.changed)
    config = ModelConfig.preset("transformer-base", vocab_size=vocabulary)
    d, d_ff, heads = (int(changed.get(name, own)) for name, own in (("d_model", 512), ("d_ff", 2048), ("h", 8)))
    layers = int(changed.get("N", 6))
    config = replace(config, d_model=d, d_ff=d_ff, n_heads=heads, n_encoder_layers=layers, n_decoder_layers=layers)
    if changed.get("positions") == "learned":
        config = replace(config, positions="learned", max_positions=512)
    total = count_parameters(config)
    if row.group == "B":
        less = 64 - int(changed["d_k"])
        total -= 3 * layers * 2 * heads * less * (d + 1)
    return total


# The rows of the paper's Table 3 beside the same changes at about a tenth of the widths (`recipes.ablations`).
#
# Models of different size and vocabulary have perplexities that cannot be compared; what a change does to them can:
#
#     ln(perplexity of the row) - ln(perplexity of the base model), in nats per token
@dataclass(frozen=True)
class OwnRow:
    """One row of the ablation table, trained with several seeds.

    `changed`: names and values that differ from our base model; empty for the base model.
    """

    paper: Variant
    changed: tuple[tuple[str, float | str], ...]
    perplexities: tuple[float, ...]
    bleus: tuple[float, ...]
    parameters: int

    @property
    def loss(self) -> float:
        """The mean over the seeds of ln(perplexity), in nats per token."""
        return sum(map(math.log, self.perplexities)) / len(self.perplexities)

    @property
    def perplexity(self) -> float:
        """e^loss."""
        return math.exp(self.loss)

    @property
    def bleu(self) -> float:
        return sum(self.bleus) / len(self.bleus)

    @property
    def bleu_range(self) -> float:
        """The difference of BLEU between the best and the worst seed."""
        return max(self.bleus) - min(self.bleus)


def own_rows(notes: Mapping[str, Any]) -> tuple[OwnRow, ...]:
    """Reads the trained rows from the notes of `recipes.ablations.measure`, in the paper's order."""
    found = []
    for row in notes["rows"]:
        if not row["runs"]:
            continue
        changed = dict(row["model"])
        if row["group"] == "D" and "eps" in row["paper"]:
            changed["eps"] = row["smoothing"]
        found.append(
            OwnRow(
                paper_row(row["group"], row["paper"]),
                tuple(changed.items()),
                tuple(run["perplexity"] for run in row["runs"]),
                tuple(run["bleu"] for run in row["runs"]),
                row["runs"][0]["parameters"],
            )
        )
    return tuple(found)


def paper_row(group: str, changed: Mapping[str, float | str]) -> Variant:
    """The row of Table 3 in which the paper changes this.

    Raises:
        LookupError: there is none.
    """
    for row in TABLE_3:
        if row.group == group and changed.items() <= dict(row.changed).items():
            return row
    raise LookupError(f"Table 3 has no row {group} with {dict(changed)}")


def loss_changes(rows: tuple[OwnRow, ...]) -> list[tuple[float, float]]:
    """The change of the loss against the base model, (ours, the paper's), in nats per token, for every other row."""
    base = rows[0]
    return [(row.loss - base.loss, math.log(row.paper.perplexity / base.paper.perplexity)) for row in rows[1:]]
