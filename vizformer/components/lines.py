"""The line view: queries on the left, keys on the right, a line for each weight, several heads over each other.

    payload = pack_lines(heads, layer=layer)     # all layers where they fit, else this one; pack_heads(weights) of arrays
    selection = mount(payload, query_tokens=tokens, key_tokens=tokens, selected=selection, key="lines")
    to_html(payload, query_tokens=tokens, key_tokens=tokens)        # the same, as a file

Layers, heads and tokens are switched in the browser.  A page that sends one layer at a time asks `peek()` which one is
wanted before it packs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vizformer.components import _mount
from vizformer.components._mount import HeadsComponent
from vizformer.components.attention import CELLS
from vizformer.components.packing import HeadsPayload, count, fits, nearest, pack_heads, pack_layer, pack_lines
from vizformer.word_tables import words_of

__all__ = [
    "ENGLISH",
    "VIEW",
    "HeadsPayload",
    "LineSelection",
    "Pin",
    "fits",
    "mount",
    "pack_heads",
    "pack_layer",
    "pack_lines",
    "peek",
    "to_html",
]

ENGLISH: Mapping[str, str] = {**CELLS, **words_of(__file__)}

THRESHOLD = 0.04  # weights below it are not drawn at first: they are many, and hide the others


@dataclass(frozen=True)
class Pin:
    """A token whose lines stay highlighted."""

    side: Literal["query", "key"]
    index: int


@dataclass(frozen=True)
class LineSelection:
    """The selection, counted from 0; `heads` are in ascending order, or all of them."""

    layer: int = 0
    heads: tuple[int, ...] | None = None
    pinned: Pin | None = None  # the token whose lines stay highlighted, if one does
    threshold: float = THRESHOLD  # weights below it are not drawn

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> "LineSelection":
        """Reads what a browser sent; anything that is not what it should be becomes the default."""
        heads, threshold = value.get("heads"), value.get("threshold")
        share = isinstance(threshold, int | float) and not isinstance(threshold, bool) and 0 <= threshold <= 1
        return cls(
            layer=count(value.get("layer")) or 0,
            heads=tuple(h for h in heads if count(h) is not None) if isinstance(heads, list | tuple) else None,
            pinned=parse_pin(value.get("pinned")),
            threshold=float(threshold) if share and threshold is not None else THRESHOLD,
        )

    def within(self, payload: HeadsPayload) -> "LineSelection":
        layers, heads, queries, keys = payload.shape
        wanted = range(heads) if self.heads is None else self.heads
        pinned = self.pinned
        if pinned is not None:
            pinned = Pin(pinned.side, nearest(pinned.index, queries if pinned.side == "query" else keys))
        return LineSelection(
            layer=nearest(self.layer, layers),
            heads=tuple(sorted({head for head in wanted if 0 <= head < heads})) or tuple(range(heads)),
            pinned=pinned,
            threshold=self.threshold if 0.0 <= self.threshold <= 1.0 else THRESHOLD,
        )


def parse_pin(value: object) -> Pin | None:
    """A pin that a browser sent; None where it is anything else."""
    if not isinstance(value, Mapping) or value.get("side") not in ("query", "key"):
        return None
    index = count(value.get("index"))
    return None if index is None else Pin(value["side"], index)


VIEW = HeadsComponent(
    _mount.Component("lines", ENGLISH),
    LineSelection,
    title="Attention lines",
    refused=("head", "lines lay heads over each other: pack them with pack_lines"),
    first=lambda payload: LineSelection(layer=payload.chosen[0]),
)
peek, mount, to_html = VIEW.peek, VIEW.mount, VIEW.to_html
