"""Which source token each word was chosen from, over the weights; and where it stands by hand."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures import style
from vizformer.figures.attention import attention_heatmap
from vizformer.figures.figure import Figure
from vizformer.figures.style import N_, fill

ENGLISH: Mapping[str, str] = {
    **style.ENGLISH,
    "most": N_("row {query} “{query_token}” looks most at “{key_token}”"),
}
"""Every text of this figure; pages pass the same names in the reader's language."""


def alignment_map(
    weights: NDArray[np.floating],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    chosen: NDArray[np.integer],
    linked: Sequence[tuple[int, int]] = (),
    *,
    title: str = "",
    words: Mapping[str, str] = ENGLISH,
) -> Figure:
    """Draws weights with a ring on the key that each query looks at most, and squares around the cells aligned by hand.

    Args:
        weights: in 0..1 [queries, keys].
        query_tokens, key_tokens: labels of the rows and of the columns; they may repeat.
        chosen: a key for each query.
        linked: (query, key) of the cells that are right.

    Raises:
        ValueError: not one key for each query, or labels that do not fit.
    """
    words = {**ENGLISH, **words}
    if len(chosen) != len(query_tokens):
        raise ValueError(f"{len(chosen)} keys do not fit {len(query_tokens)} queries")
    figure = attention_heatmap(weights, query_tokens, key_tokens, title=title, words=words)
    figure.update_traces(texttemplate=None)
    rows = np.arange(len(chosen), dtype=np.int32)
    place = fill(words["most"], query="%{y}", query_token="%{customdata[0]}", key_token="%{customdata[1]}")
    figure.add_scatter(
        x=np.asarray(chosen, dtype=np.int32),
        y=rows,
        mode="markers",
        marker={"symbol": "circle-open", "size": 10, "color": "#ffffff", "line": {"width": 3, "color": "#ffffff"}},
        customdata=[
            [style.safe(query), style.safe(key_tokens[int(key)])]
            for query, key in zip(query_tokens, chosen, strict=True)
        ],
        hovertemplate=place,
    )
    for query, key in linked:
        figure.add_rectangle(
            key - 0.46, key + 0.46, query - 0.46, query + 0.46, line={"color": style.QUALITATIVE[1], "width": 3}
        )
    return figure
