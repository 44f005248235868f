"""Tables of one row per token that one model uses in several places: counted once, and as if each place had its own.

    encoder's input    x_0 = E[id] sqrt(d)
    decoder's input    y_0 = E[id] sqrt(d)
    logits             z = y E^T

Source: Press & Wolf 2017, "Using the Output Embedding to Improve Language Models" (three-way weight tying); Vaswani et
al. 2017, section 3.4.
"""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from vizformer.analysis.costs.parameter_count import BASE, count
from vizformer.model import Transformer

Use = Literal["encoder", "decoder", "logits"]
"""The rows that the encoder reads, those that the decoder reads, and what the logits are computed with."""


@dataclass(frozen=True)
class Sharing:
    """Which places use which table.

    `tables`: the places in groups, one group for each table that there is, with its rows and their width.
    """

    tables: tuple[tuple[Use, ...], ...]
    rows: tuple[int, ...]
    widths: tuple[int, ...]
    others: int

    @property
    def stored(self) -> int:
        """Parameters of the tables as they are."""
        return sum(rows * width for rows, width in zip(self.rows, self.widths, strict=True))

    @property
    def apart(self) -> int:
        """Parameters that there would be with a table for every place."""
        every = zip(self.tables, self.rows, self.widths, strict=True)
        return sum(rows * width * len(uses) for uses, rows, width in every)

    @property
    def saved(self) -> float:
        """The share of a model with a table for every place that sharing saves."""
        return (self.apart - self.stored) / (self.apart + self.others)


def sharing(model: Transformer) -> Sharing:
    """Who shares in a model: two places share where they hold the same parameter."""
    places: dict[Use, Tensor] = {}
    if model.encoder is not None:
        places["encoder"] = model.token_table("encoder").weight
    if model.decoder is not None:
        places["decoder"] = model.token_table("decoder").weight
    places["logits"] = model.embedding.weight if model.unembedding is None else model.unembedding.weight
    groups: dict[int, list[Use]] = {}
    for use, table in places.items():
        groups.setdefault(id(table), []).append(use)
    tables = {id(table): table for table in places.values()}
    stored = sum(table.numel() for table in tables.values())
    total = sum(parameter.numel() for parameter in model.parameters())
    return Sharing(
        tuple(tuple(uses) for uses in groups.values()),
        tuple(tables[key].shape[0] for key in groups),
        tuple(tables[key].shape[1] for key in groups),
        total - stored,
    )


def paper_sharing() -> Sharing:
    """The paper's base model: one table of 37,000 rows in three places."""
    found = count(BASE)
    return Sharing((("encoder", "decoder", "logits"),), (BASE.vocabulary,), (BASE.d,), found.total - found.embedding)
