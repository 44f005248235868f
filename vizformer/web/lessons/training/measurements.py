"""The bundled measurements of the lesson Training: see assets/lessons/training/README.md."""

import json
from collections.abc import Sequence
from typing import Any

from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.widgets.lab import Laboratory


@cached
def notes(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(asset("lessons", "training", f"{name}.json").read_text(encoding="utf-8"))
    return found


def paper_table(lab: Laboratory, symbol: str, rows: Sequence[tuple[float, float, float]]) -> str:
    """What the paper measured (Table 3) for several values of a setting: its value, perplexity, BLEU."""
    cells = [
        Row(f"{symbol} = {value:g}", *numbers(".2f", perplexity), *numbers(".1f", bleu))
        for value, perplexity, bleu in rows
    ]
    return table.to_html((lab.text("paper"), lab.text("perplexity"), "BLEU"), cells)
