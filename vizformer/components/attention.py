"""The attention view: all heads of a site as small maps, and the chosen one large, with every number readable.

    payload = pack_heads(weights, scores, reasons, chosen=(layer, head))
    selection = mount(payload, query_tokens=tokens, key_tokens=tokens, selected=selection, key="heads")
    to_html(payload, query_tokens=tokens, key_tokens=tokens)        # the same, as a file

Heads, queries and weights/scores are switched in the browser.  A page that sends large heads one at a time asks
`peek()` which one is wanted before it packs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from vizformer.components import _mount
from vizformer.components._mount import N_
from vizformer.components.payload import (
    HeadsPayload,
    count,
    describe,
    fits,
    nearest,
    pack_chosen,
    pack_heads,
    thumbnails,
)

__all__ = [
    "ENGLISH",
    "HeadsPayload",
    "Selection",
    "fits",
    "mount",
    "pack_chosen",
    "pack_heads",
    "peek",
    "thumbnails",
    "to_html",
]

View = Literal["weights", "scores"]

ENGLISH: Mapping[str, str] = {
    "grid_title": N_("All heads (weights)"),
    "grid_label": N_("All heads: rows are layers, columns are heads. The arrow keys move, Enter chooses."),
    "head_name": N_("Layer {layer}, head {head}"),
    "layer_short": N_("L{layer}"),
    "head_short": N_("H{head}"),
    "axes": N_("Rows are queries (the position that looks), columns are keys (the positions it looks at)."),
    "map_label": N_("{name}. The arrow keys move from cell to cell, Enter chooses, plus and minus enlarge, 0 resets."),
    "view": N_("What the map shows"),
    "weights": N_("weights"),
    "scores": N_("scores"),
    "weights_hint": N_("After the softmax: each row sums to 1."),
    "scores_hint": N_("q·k / √d_head, before the softmax."),
    "zoom_in": N_("Enlarge"),
    "zoom_out": N_("Reduce"),
    "zoom_reset": N_("Show all"),
    "cell_weight": N_("query {query} “{query_token}” attends to key {key} “{key_token}” with weight {value}"),
    "cell_score": N_("query {query} “{query_token}” and key {key} “{key_token}” have the score {value}"),
    "cell_masked": N_("query {query} “{query_token}” → key {key} “{key_token}” is masked: {reason}"),
    "cell_masked_score": N_(
        "query {query} “{query_token}” → key {key} “{key_token}” is masked: {reason} "
        "(its score before the mask is {value})"
    ),
    "row_strongest": N_("query {query} “{query_token}” attends most to key {key} “{key_token}”, with weight {value}"),
    "row_masked": N_("query {query} “{query_token}” sees no key: all are masked"),
    "reason_1": N_("padding"),
    "reason_2": N_("the future"),
    "reason_3": N_("outside the window"),
    "reason_4": N_("painted by hand"),
    "masked": N_("masked"),
    "masked_legend": N_("masked: {reasons}"),
    "colour_weight": N_("weight"),
    "colour_score": N_("score, −{range} to {range}"),
    "loading": N_("Fetching this head …"),
    "not_in_file": N_("Only the small map of this head is in this file."),
}
"""Every text of the component; a page passes the same names in the reader's language."""

_COMPONENT = _mount.Component("attention")


@dataclass(frozen=True)
class Selection:
    """What someone looks at, counted from 0.

    Attributes:
        layer, head: position in the payload's heads.
        query: the highlighted row.
        key: the chosen cell of that row, if one is.
        view: weights after the softmax, or scores before it.
    """

    layer: int = 0
    head: int = 0
    query: int = 0
    key: int | None = None
    view: View = "weights"

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> "Selection":
        """Reads what a browser sent; anything that is not what it should be becomes the default."""
        return cls(
            layer=count(value.get("layer")) or 0,
            head=count(value.get("head")) or 0,
            query=count(value.get("query")) or 0,
            key=count(value.get("key")),
            view="scores" if value.get("view") == "scores" else "weights",
        )

    def within(self, payload: HeadsPayload) -> "Selection":
        """The nearest selection that the payload has."""
        layers, heads, queries, keys = payload.shape
        return Selection(
            layer=nearest(self.layer, layers),
            head=nearest(self.head, heads),
            query=nearest(self.query, queries),
            key=None if self.key is None else nearest(self.key, keys),
            view=self.view if "scores" in payload.columns else "weights",
        )


def peek(*, key: str, selected: Selection | None = None) -> Selection:
    """What the next `mount` with this key and `selected` will return, before its numbers are computed.

    Not cut to the size of the heads yet: they are not known here.
    """
    shown, _ = _mount.current(key, selected, Selection.parse, ahead=True)
    return shown or Selection()


def mount(
    payload: HeadsPayload,
    *,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    selected: Selection | None = None,
    layers: Sequence[int | str] | None = None,
    words: Mapping[str, str] = ENGLISH,
    key: str,
    height: int | None = None,
) -> Selection:
    """Shows the heads on a Streamlit page.

    Args:
        payload: the packed heads.
        query_tokens, key_tokens: labels of the rows and of the columns.
        selected: what the page wants selected. The page keeps what `mount` returns and passes it again: a value that
            differs from it counts as the page's wish and is obeyed. None leaves the choice to the component.
        layers: label of each layer; numbers become "L0", texts stay as they are. Default 0, 1, ...
        words: the texts, see ENGLISH.
        key: identity on the page; also its place in session state.
        height: of the whole component in px; by default it fits the sequence.

    Returns:
        what is selected now.

    Raises:
        ValueError: labels that do not fit the payload.
    """
    data = _data(payload, query_tokens, key_tokens, layers, words, height)
    wish = None if selected is None else selected.within(payload)
    shown, echo = _mount.current(key, wish, lambda report: Selection.parse(report).within(payload))
    sent = asdict(echo.sent.within(payload)) if echo.sent is not None else None
    _COMPONENT.mount(
        key=key,
        data=data,
        columns=payload.columns,
        version=echo.version,
        selected=sent,
    )
    return (shown or Selection()).within(payload)


def to_html(
    payload: HeadsPayload,
    *,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    selected: Selection | None = None,
    layers: Sequence[int | str] | None = None,
    words: Mapping[str, str] = ENGLISH,
    height: int | None = None,
    title: str = "Attention",
) -> _mount.Html:
    """The same view as the text of one HTML file that works without a server and without a network.

    Raises:
        ValueError: labels that do not fit the payload.
    """
    start = selected or Selection(layer=payload.chosen[0], head=payload.chosen[1])
    return _COMPONENT.page(
        data=_data(payload, query_tokens, key_tokens, layers, words, height),
        columns=payload.columns,
        selected=asdict(start.within(payload)),
        title=title,
    )


def _data(
    payload: HeadsPayload,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    layers: Sequence[int | str] | None,
    words: Mapping[str, str],
    height: int | None,
) -> dict[str, Any]:
    if payload.held == "layer":
        raise ValueError("the overview needs all heads: pack them with pack_heads, or thumbnails with pack_chosen")
    data = describe(payload, query_tokens, key_tokens, layers)
    return {**data, "words": {**ENGLISH, **words}, "height": height}
