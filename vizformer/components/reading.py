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

from vizformer.components import _mount
from vizformer.components._heads import HeadsComponent
from vizformer.components._mount import N_
from vizformer.components.lines import Pin, parse_pin
from vizformer.components.payload import HeadsPayload, count, fits, nearest

__all__ = ["ENGLISH", "Pin", "Reading", "fits", "mount", "peek", "to_html"]

ENGLISH: Mapping[str, str] = {
    "layer": N_("Layer {layer}"),
    "head": N_("Head {head}"),
    "layer_label": N_("Layer"),
    "head_label": N_("Head"),
    "find": N_("Find a token"),
    "found": N_("{at} of {n}"),
    "found_none": N_("not in the text"),
    "text_label": N_("The text. The arrow keys move from token to token, Enter chooses."),
    "queries": N_("queries"),
    "keys": N_("keys"),
    "looks_at": N_("what it attends to"),
    "looked_at": N_("what attends to it"),
    "row_strongest": N_("query {query} “{query_token}” attends most to key {key} “{key_token}”, with weight {value}"),
    "column_strongest": N_(
        "key {key} “{key_token}” is attended to most by query {query} “{query_token}”, with weight {value}"
    ),
    "row_masked": N_("query {query} “{query_token}” sees no key: all are masked"),
    "column_masked": N_("key {key} “{key_token}” is seen by no query: all are masked"),
    "cell_weight": N_("query {query} “{query_token}” attends to key {key} “{key_token}” with weight {value}"),
    "cell_masked": N_("query {query} “{query_token}” → key {key} “{key_token}” is masked: {reason}"),
    "joiner": N_("; "),
    "reason_1": N_("padding"),
    "reason_2": N_("the future"),
    "reason_3": N_("outside the window"),
    "reason_4": N_("painted by hand"),
    "reason_6": N_("left out of the picture"),
    "masked": N_("masked"),
    "loading": N_("Fetching this head …"),
    "not_come": N_("The server did not send this head. Choose it again."),
    "computing": N_("Computing this head from its queries and keys …"),
    "not_in_file": N_("Only the small map of this head is in this file."),
}
"""Every text of the component; a page passes the same names in the reader's language."""


@dataclass(frozen=True)
class Reading:
    """What someone looks at, counted from 0.

    Attributes:
        layer, head: position in the payload's heads.
        pinned: the token that colours the text.
    """

    layer: int = 0
    head: int = 0
    pinned: Pin | None = None

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> "Reading":
        """Reads what a browser sent; anything that is not what it should be becomes the default."""
        return cls(count(value.get("layer")) or 0, count(value.get("head")) or 0, parse_pin(value.get("pinned")))

    def within(self, payload: HeadsPayload) -> "Reading":
        """The nearest selection that the payload has."""
        layers, heads, queries, keys = payload.shape
        pinned = self.pinned or Pin("query", queries - 1)
        most = queries if pinned.side == "query" else keys
        return Reading(
            nearest(self.layer, layers), nearest(self.head, heads), Pin(pinned.side, nearest(pinned.index, most))
        )


_VIEW = HeadsComponent(
    _mount.Component("reading"),
    Reading,
    ENGLISH,
    title="Attention in the text",
    refused=("layer", "the text shows one head at a time: pack them with pack"),
    first=lambda payload: Reading(*payload.chosen),
)
peek, mount, to_html = _VIEW.peek, _VIEW.mount, _VIEW.to_html
