"""Which query head reads which key/value head."""

import numpy as np

from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import QUALITATIVE, safe, texts


def shared_heads(n_heads: int, n_kv_heads: int, *, chosen: int | None = None, title: str = "") -> Figure:
    """Draws query heads above, key/value heads below, and a line from each query head to the one it reads; one thicker."""
    words = texts()
    if n_kv_heads < 1 or n_heads % n_kv_heads:
        raise ValueError(f"{n_heads} query heads cannot share {n_kv_heads} key/value heads evenly")
    each = n_heads // n_kv_heads
    group = np.arange(n_heads) // each
    above = np.arange(n_heads, dtype=np.float32)
    below = (np.arange(n_kv_heads, dtype=np.float32) + 0.5) * each - 0.5
    colours = [QUALITATIVE[g % len(QUALITATIVE)] for g in range(n_kv_heads)]
    figure = Figure()
    for head in range(n_heads):
        figure.add_scatter(
            x=np.array([above[head], below[group[head]]], dtype=np.float32),
            y=np.array([1.0, 0.0], dtype=np.float32),
            mode="lines",
            hoverinfo="skip",
            line={"color": colours[group[head]], "width": 6 if head == chosen else 2.5},
        )
    readers = [", ".join(map(str, np.flatnonzero(group == g))) for g in range(n_kv_heads)]
    hovers = (
        [words["query_head"].format(head=head, group=group[head]) for head in range(n_heads)],
        [words["group_head"].format(group=g, heads=readers[g]) for g in range(n_kv_heads)],
    )
    size = int(max(10, min(30, 210 / n_heads)))  # so that they stay apart on a phone
    for x, y, symbol, fills, hover in (
        (above, 1.0, "circle", [colours[g] for g in group], hovers[0]),
        (below, 0.0, "square", colours, hovers[1]),
    ):
        figure.add_scatter(
            x=x,
            y=np.full(len(x), y, dtype=np.float32),
            mode="markers+text" if size >= 17 else "markers",
            text=[str(i) for i in range(len(x))],
            textfont={"color": "white", "size": 13},
            marker={"size": size, "symbol": symbol, "color": fills},
            hovertext=[safe(text) for text in hover],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    figure.says = words["sharing"].format(heads=n_heads, groups=n_kv_heads)
    frame(figure, title, height=240)
    figure.update_xaxes(visible=False, range=[-0.8, n_heads - 0.2])
    figure.update_yaxes(
        tickvals=[0, 1], ticktext=[safe(words["groups"]), safe(words["queries"])], range=[-0.35, 1.35], showgrid=False
    )
    return figure
