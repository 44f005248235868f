"""The rows of the paper's Table 3 beside the same changes at about a tenth of the widths (`recipes.ablations`).

Models of different size and vocabulary have perplexities that cannot be compared; what a change does to them can:

    ln(perplexity of the row) - ln(perplexity of the base model), in nats per token
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vizformer.analysis.costs.paper_results import TABLE_3, Variant


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
