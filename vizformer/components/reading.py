"""The text itself as the picture: a token is chosen, and the text shows what it attends to and what attends to it.

    payload = pack(heads, chosen=(layer, head))
    chosen = mount(payload, query_tokens=tokens, key_tokens=tokens, selected=chosen, key="text")
    to_html(payload, query_tokens=tokens, key_tokens=tokens)        # the same, as a file

Tokens may begin with the space or the line break that stands before them in the text.  Where queries and keys are two
texts, both are shown, and a token of one colours the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vizformer.components import _mount, attention, lines
from vizformer.components._mount import HeadsComponent
from vizformer.components.attention import CELLS
from vizformer.components.lines import Pin, parse_pin
from vizformer.components.packing import HeadsPayload, count, fits, nearest
from vizformer.word_tables import words_of

__all__ = ["ENGLISH", "VIEW", "Pin", "Reading", "fits", "mount", "peek", "to_html"]

_OF_HEADS = ("find", "found", "found_none", "loading", "not_come", "computing", "not_in_file")
_OF_TWO_SIDES = ("layer", "queries", "keys", "column_strongest", "column_masked", "joiner")
ENGLISH: Mapping[str, str] = {
    **CELLS,
    **{name: attention.ENGLISH[name] for name in _OF_HEADS},
    **{name: lines.ENGLISH[name] for name in _OF_TWO_SIDES},
    **words_of(__file__),
}


@dataclass(frozen=True)
class Reading:
    """The selection in the view, counted from 0."""

    layer: int = 0
    head: int = 0
    pinned: Pin | None = None

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> "Reading":
        """Reads what a browser sent; anything that is not what it should be becomes the default."""
        return cls(count(value.get("layer")) or 0, count(value.get("head")) or 0, parse_pin(value.get("pinned")))

    def within(self, payload: HeadsPayload) -> "Reading":
        layers, heads, queries, keys = payload.shape
        pinned = self.pinned or Pin("query", queries - 1)
        most = queries if pinned.side == "query" else keys
        return Reading(
            nearest(self.layer, layers), nearest(self.head, heads), Pin(pinned.side, nearest(pinned.index, most))
        )


VIEW = HeadsComponent(
    _mount.Component("reading", ENGLISH),
    Reading,
    title="Attention in the text",
    refused=("layer", "the text shows one head at a time: pack them with pack"),
    first=lambda payload: Reading(*payload.chosen),
)
peek, mount, to_html = VIEW.peek, VIEW.mount, VIEW.to_html
