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
from vizformer.components._heads import HeadsComponent
from vizformer.components._mount import N_
from vizformer.components.attention import CELLS
from vizformer.components.packing import pack_heads, pack_layer, pack_lines
from vizformer.components.payload import HeadsPayload, count, fits, nearest

__all__ = [
    "ENGLISH",
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

ENGLISH: Mapping[str, str] = {
    **CELLS,
    "head_short": N_("H{head}"),
    "heads": N_("Heads of this layer"),
    "head_label": N_("Head {head}"),
    "head_hint": N_("Click or Enter: show or hide. Double click, or with Shift: only this head."),
    "all_heads": N_("show all heads"),
    "layer": N_("Layer {layer}"),
    "previous": N_("Previous layer"),
    "next": N_("Next layer"),
    "axes": N_("Each query on the left looks at keys on the right: the larger the weight, the stronger the line."),
    "queries": N_("queries"),
    "keys": N_("keys"),
    "queries_label": N_(
        "Queries. The up and down arrows move, right goes to the keys, Enter keeps a token's lines, Escape lets go, "
        "Page Up and Page Down change the layer."
    ),
    "keys_label": N_(
        "Keys. The up and down arrows move, left goes to the queries, Enter keeps a token's lines, Escape lets go, "
        "Page Up and Page Down change the layer."
    ),
    "weight": N_("weight"),
    "threshold": N_("Draw weights from"),
    "count": N_("{shown} of {total} lines are drawn."),
    "count_cut": N_("The {shown} strongest of {total} lines are drawn, weights from {threshold} up."),
    "count_none": N_("None of {total} lines is drawn: the largest weight is {largest}."),
    "unpin": N_("let go (Esc)"),
    "hint": N_("Point at a token to read its weights; a click keeps them."),
    "row_strongest_in": N_(
        "query {query} “{query_token}” attends most to key {key} “{key_token}”, with weight {value} in head {head}"
    ),
    "column_strongest": N_(
        "key {key} “{key_token}” is attended to most by query {query} “{query_token}”, with weight {value}"
    ),
    "column_strongest_in": N_(
        "key {key} “{key_token}” is attended to most by query {query} “{query_token}”, "
        "with weight {value} in head {head}"
    ),
    "column_masked": N_("key {key} “{key_token}” is seen by no query: all are masked"),
    "masked_keys": N_("masked keys: {ranges} ({reason})"),
    "masked_queries": N_("masked queries: {ranges} ({reason})"),
    "cell_weights": N_("query {query} “{query_token}” attends to key {key} “{key_token}”: {value}"),
    "value_in_head": N_("H{head} {value}"),
    "joiner": N_("; "),
    "loading": N_("Fetching this layer …"),
    "not_in_file": N_("This file holds only one layer: {layer}."),
}
"""Every text of the component; a page passes the same names in the reader's language."""

THRESHOLD = 0.04
"""Weights below it are not drawn at first: they are many, and hide the others."""


@dataclass(frozen=True)
class Pin:
    """A token whose lines stay highlighted."""

    side: Literal["query", "key"]
    index: int


@dataclass(frozen=True)
class LineSelection:
    """What someone looks at, counted from 0; its `heads`, in ascending order, or all that there are.

    `pinned`: the token whose lines stay highlighted, if one does.
    `threshold`: weights below it are not drawn.
    """

    layer: int = 0
    heads: tuple[int, ...] | None = None
    pinned: Pin | None = None
    threshold: float = THRESHOLD

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> "LineSelection":
        """Reads what a browser sent; anything that is not what it should be becomes the default."""
        heads, threshold = value.get("heads"), value.get("threshold")
        number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
        return cls(
            layer=count(value.get("layer")) or 0,
            heads=tuple(h for h in heads if count(h) is not None) if isinstance(heads, list | tuple) else None,
            pinned=parse_pin(value.get("pinned")),
            threshold=float(threshold) if number and threshold is not None else THRESHOLD,
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


_VIEW = HeadsComponent(
    _mount.Component("lines"),
    LineSelection,
    ENGLISH,
    title="Attention lines",
    refused=("head", "lines lay heads over each other: pack them with pack_lines"),
    first=lambda payload: LineSelection(layer=payload.chosen[0]),
)
peek, mount, to_html = _VIEW.peek, _VIEW.mount, _VIEW.to_html
