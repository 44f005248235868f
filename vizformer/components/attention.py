"""The attention view: all heads of one kind as small maps, and the chosen one large, with every number readable.

    payload = pack(heads, chosen=(layer, head))             # of whoever has the numbers; pack_heads(weights) of arrays
    selection = mount(payload, query_tokens=tokens, key_tokens=tokens, selected=selection, key="heads")
    to_html(payload, query_tokens=tokens, key_tokens=tokens)        # the same, as a file

Heads, queries and weights/scores are switched in the browser.  A page of a long text packs the address of its heads
(`packing.pack_address`), and the browser asks for the one that is wanted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from vizformer.components import _mount
from vizformer.components._mount import ByWord, HeadsComponent
from vizformer.components.packing import HeadsPayload, count, fits, nearest, pack, pack_heads
from vizformer.word_tables import words_of

__all__ = [
    "ENGLISH",
    "VIEW",
    "ByWord",
    "HeadsPayload",
    "Selection",
    "fits",
    "mount",
    "pack",
    "pack_heads",
    "peek",
    "to_html",
]

View = Literal["weights", "scores"]
Colours = Literal["absolute", "own"]
Order = Literal["layer", "habit", "entropy", "distance", "first"]
ORDERS: tuple[Order, ...] = get_args(Order)

_WORDS = words_of(__file__)
CELLS: Mapping[str, str] = _WORDS["cells"]  # what is said of cells, by every picture of heads

ENGLISH: Mapping[str, str] = {**CELLS, **_WORDS["more"]}


@dataclass(frozen=True)
class Selection:
    """The selection: indices into the payload's heads, counted from 0."""

    layer: int = 0
    head: int = 0
    query: int = 0
    key: int | None = None  # the chosen cell of the row that is lit, if one is
    view: View = "weights"
    order: Order = "layer"  # what the small maps are sorted by; "layer" where the payload has no such measure

    # where the colours of the large map's weights end: at 1, or at its own largest
    colours: Colours = "absolute"

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> "Selection":
        """Reads what a browser sent; anything that is not what it should be becomes the default."""
        return cls(
            layer=count(value.get("layer")) or 0,
            head=count(value.get("head")) or 0,
            query=count(value.get("query")) or 0,
            key=count(value.get("key")),
            view="scores" if value.get("view") == "scores" else "weights",
            order=order if (order := value.get("order")) in ORDERS else "layer",
            colours="own" if value.get("colours") == "own" else "absolute",
        )

    def within(self, payload: HeadsPayload) -> "Selection":
        """The selection clipped to the shape of the payload."""
        layers, heads, queries, keys = payload.shape
        measure = "own" if self.order == "habit" else self.order
        return Selection(
            layer=nearest(self.layer, layers),
            head=nearest(self.head, heads),
            query=nearest(self.query, queries),
            key=None if self.key is None else nearest(self.key, keys),
            view=self.view if {"scores", "q"} & {*payload.columns} or payload.address else "weights",
            order=self.order if f"measure_{measure}" in payload.columns or measure in payload.measures else "layer",
            colours=self.colours,
        )


VIEW = HeadsComponent(
    _mount.Component("attention", ENGLISH),
    Selection,
    title="Attention",
    refused=("layer", "the overview needs all heads: pack them with pack"),
    first=lambda payload: Selection(layer=payload.chosen[0], head=payload.chosen[1]),
)
peek, mount, to_html = VIEW.peek, VIEW.mount, VIEW.to_html
