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
from vizformer.components._heads import ByWord, HeadsComponent
from vizformer.components._mount import N_
from vizformer.components.packing import pack, pack_heads
from vizformer.components.payload import HeadsPayload, count, fits, nearest

__all__ = ["ENGLISH", "ByWord", "HeadsPayload", "Selection", "fits", "mount", "pack", "pack_heads", "peek", "to_html"]

View = Literal["weights", "scores"]
Order = Literal["layer", "habit", "entropy", "distance", "first"]
ORDERS: tuple[Order, ...] = get_args(Order)

CELLS: Mapping[str, str] = {
    "cell_weight": N_("query {query} “{query_token}” attends to key {key} “{key_token}” with weight {value}"),
    "cell_masked": N_("query {query} “{query_token}” → key {key} “{key_token}” is masked: {reason}"),
    "row_strongest": N_("query {query} “{query_token}” attends most to key {key} “{key_token}”, with weight {value}"),
    "row_masked": N_("query {query} “{query_token}” sees no key: all are masked"),
    "reason_1": N_("padding"),
    "reason_2": N_("the future"),
    "reason_3": N_("outside the window"),
    "reason_4": N_("painted by hand"),
    "reason_6": N_("left out of the picture"),
    "masked": N_("masked"),
}
"""What is said of cells, by every picture of heads."""

ENGLISH: Mapping[str, str] = {
    **CELLS,
    "grid_title": N_("All heads (weights)"),
    "grid_label": N_("All heads: rows are layers, columns are heads. The arrow keys move, Enter chooses."),
    "head_name": N_("Layer {layer}, head {head}"),
    "order": N_("Sorted by"),
    "order_layer": N_("layer"),
    "order_habit": N_("what they do"),
    "order_entropy": N_("entropy, the largest first"),
    "order_distance": N_("distance, the farthest first"),
    "order_first": N_("weight of the first key, the largest first"),
    "measure_entropy": N_("{name}: entropy {value} nats, the mean over its queries"),
    "measure_distance": N_("{name}: reads from {value} tokens away, the mean over its queries"),
    "measure_first": N_("{name}: the first key gets {value}, the mean over its queries"),
    "group_previous": N_("The token before ({n})"),
    "group_own": N_("The token itself ({n})"),
    "group_next": N_("The token after ({n})"),
    "group_other": N_("No such habit ({n})"),
    "group_rest": N_("Rest on the first or the last token ({n})"),
    "measure_previous": N_("{name}: the token before gets {value}, the mean over its queries"),
    "measure_own": N_("{name}: a token gives itself {value}, the mean over its queries"),
    "measure_next": N_("{name}: the token after gets {value}, the mean over its queries"),
    "measure_other": N_(
        "{name}: {value} is the most that it gives to the token before, itself, the one after, or both ends"
    ),
    "measure_rest": N_("{name}: the first and the last token get {value} together, the mean over its queries"),
    "strip": N_("The strongest of each kind, over {n} texts"),
    "strip_here": N_("The strongest of each kind, in this text"),
    "strip_resting": N_("Heads that rest on the first or the last token: {n}"),
    "strip_previous": N_("token before"),
    "strip_diagonal": N_("itself"),
    "strip_next": N_("token after"),
    "strip_delimiter": N_("punctuation"),
    "strip_duplicate_token": N_("same token"),
    "strip_induction": N_("induction"),
    "strip_rest": N_("first and last token"),
    "strip_said": N_("{name}, {what}: {value} of its attention ({low} to {high} over {n} texts)"),
    "layer_short": N_("L{layer}"),
    "head_short": N_("H{head}"),
    "axes": N_("Rows are queries (the position that looks), columns are keys (the positions it looks at)."),
    "pooled": N_("Each point is the strongest of {n} × {n} cells: enlarge to see them."),
    "map_label": N_("{name}. The arrow keys move from cell to cell, Enter chooses, plus and minus enlarge, 0 resets."),
    "view": N_("What the map shows"),
    "weights": N_("weights"),
    "scores": N_("scores"),
    "weights_hint": N_("After the softmax: each row sums to 1."),
    "scores_hint": N_("q·k / √d_head, before the softmax."),
    "close_words": N_("close the words"),
    "find": N_("Find a token"),
    "found": N_("{at} of {n}"),
    "found_none": N_("not in the text"),
    "zoom_in": N_("Enlarge"),
    "zoom_out": N_("Reduce"),
    "zoom_reset": N_("Show all"),
    "cell_score": N_("query {query} “{query_token}” and key {key} “{key_token}” have the score {value}"),
    "cell_masked_score": N_(
        "query {query} “{query_token}” → key {key} “{key_token}” is masked: {reason} "
        "(its score before the mask is {value})"
    ),
    "stands_out": N_("What stands out: {cell}."),
    "masked_legend": N_("masked: {reasons}"),
    "colour_weight": N_("weight"),
    "colour_score": N_("score, −{range} to {range}"),
    "loading": N_("Fetching this head …"),
    "not_come": N_("The server did not send this head. Choose it again."),
    "computing": N_("Computing this head from its queries and keys …"),
    "not_in_file": N_("Only the small map of this head is in this file."),
}
"""Every text of the component; a page passes the same names in the reader's language."""
_OF_SINKS = {"weights_hint": N_("After the softmax: each row sums to 1, less the share of the head's sink.")}
_OF_STATES = {
    "weights_hint": N_("After the softmax; in a layer that keeps a state the shares of |M|. Each row sums to 1."),
    "scores_hint": N_("q·k / √d_head, before the softmax; in a layer that keeps a state M itself, with its sign."),
}


def texts_of(*, sinks: bool, with_states: bool) -> dict[str, str]:
    """`ENGLISH`, with what the numbers are in a model whose heads have sinks or that has layers that keep a state."""
    return {**ENGLISH, **(_OF_SINKS if sinks else {}), **(_OF_STATES if with_states else {})}


@dataclass(frozen=True)
class Selection:
    """What someone looks at, by its place in the payload's heads, counted from 0.

    `key`: the chosen cell of the row that is lit, if one is.
    `order`: what the small maps are sorted by; "layer" where the payload has no such measure.
    """

    layer: int = 0
    head: int = 0
    query: int = 0
    key: int | None = None
    view: View = "weights"
    order: Order = "layer"

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
        )

    def within(self, payload: HeadsPayload) -> "Selection":
        """The nearest selection that the payload has."""
        layers, heads, queries, keys = payload.shape
        measure = "own" if self.order == "habit" else self.order
        return Selection(
            layer=nearest(self.layer, layers),
            head=nearest(self.head, heads),
            query=nearest(self.query, queries),
            key=None if self.key is None else nearest(self.key, keys),
            view=self.view if "scores" in payload.columns or payload.address else "weights",
            order=self.order if f"measure_{measure}" in payload.columns or measure in payload.measures else "layer",
        )


_VIEW = HeadsComponent(
    _mount.Component("attention"),
    Selection,
    ENGLISH,
    title="Attention",
    refused=("layer", "the overview needs all heads: pack them with pack"),
    first=lambda payload: Selection(layer=payload.chosen[0], head=payload.chosen[1]),
)
peek, mount, to_html = _VIEW.peek, _VIEW.mount, _VIEW.to_html
