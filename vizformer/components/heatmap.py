"""One map on a canvas: weights or scores of a head, every number readable, and cells that a page marks.

    mount(Heatmap(weights, query_tokens, key_tokens, title="Layer 0, head 2"), key="map")
    to_html(Heatmap(weights, query_tokens, key_tokens))        # the same, as a file

It is drawn anew in a tenth of the time of a figure of Plotly (`vizformer.figures.attention_heatmap`, which is for
notebooks and exports).  All heads at once are `vizformer.components.attention`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.components import _mount, attention
from vizformer.components.packing import HeadsPayload, describe, pack_heads
from vizformer.word_tables import words_of

_SHARED = (
    "axes",
    "pooled",
    "map_label",
    "zoom_in",
    "zoom_out",
    "zoom_reset",
    "cell_weight",
    "cell_score",
    "cell_masked",
    "cell_masked_score",
    "stands_out",
    "row_strongest",
    "row_masked",
    "masked",
    "masked_legend",
    "colour_weight",
    "colour_score",
)

ENGLISH: Mapping[str, str] = {
    **{name: text for name, text in attention.ENGLISH.items() if name in _SHARED or name.startswith("reason_")},
    **words_of(__file__),
}

_COMPONENT = _mount.Component("heatmap", ENGLISH)


@dataclass(frozen=True)
class Heatmap:
    """The content of a map; labels may repeat."""

    weights: NDArray[np.floating]  # attention weights in 0..1 [queries, keys]
    query_tokens: Sequence[str]
    key_tokens: Sequence[str]
    # before the mask, the same shape; where they are given, they are what is shown
    scores: NDArray[np.floating] | None = None
    # why a cell is masked, 0 = visible (`vizformer.model.Reason`) [queries, keys]
    reasons: NDArray[np.integer] | None = None
    rings: Sequence[int] | None = None  # for each query a key that gets a ring
    squares: Sequence[tuple[int, int]] = ()  # (query, key) of cells with a square around them
    title: str = ""

    def __post_init__(self) -> None:
        if self.rings is not None and len(self.rings) != len(self.query_tokens):
            raise ValueError(f"{len(self.rings)} rings do not fit {len(self.query_tokens)} queries")


def mount(heatmap: Heatmap, *, key: str) -> None:
    payload = _payload(heatmap)
    _COMPONENT.mount(_data(heatmap, payload), payload.columns, version=1, key=key)


def to_html(heatmap: Heatmap) -> _mount.Html:
    payload = _payload(heatmap)
    return _COMPONENT.page(_data(heatmap, payload), payload.columns, title=heatmap.title or "Map")


def _payload(heatmap: Heatmap) -> HeadsPayload:
    scores = None if heatmap.scores is None else np.asarray(heatmap.scores)[None, None]
    return pack_heads(np.asarray(heatmap.weights)[None, None], scores, heatmap.reasons)


def _data(heatmap: Heatmap, payload: HeadsPayload) -> dict[str, Any]:
    return {
        **describe(payload, heatmap.query_tokens, heatmap.key_tokens, None),
        "title": heatmap.title,
        "view": "weights" if heatmap.scores is None else "scores",
        "rings": None if heatmap.rings is None else [int(key) for key in heatmap.rings],
        "squares": [[int(query), int(key)] for query, key in heatmap.squares],
    }
