"""Recurrence, convolution and attention compared: the way between two tokens, the cost of a layer, the gradient."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import AXIS, Figure, band, frame
from vizformer.figures.style import DASHES, MASKED_LINE, QUALITATIVE, fill, safe, texts

PARTS = ("attention", "projections", "feedforward", "unembedding")
_PATTERNS = ("/", "", "x", ".")
_UNITS = ((2**20, "MiB"), (2**10, "KiB"), (1, "B"))


def path_picture(
    tokens: Sequence[str],
    levels: int,
    edges: NDArray[np.integer],
    path: NDArray[np.integer],
    *,
    states: bool = False,
    title: str = "",
) -> Figure:
    """Draws who hears from whom, level over level, and one path through it.

    Args:
        levels: above the input, which is level 0 and stands below.
        edges: [edges, 4]: position and level at both ends.
        path: [steps, 2]: positions and levels on the way.
        states: whether the level above the input is one of recurrent states.
    """
    words = texts()
    edges, path = np.asarray(edges), np.asarray(path)
    if edges.ndim != 2 or edges.shape[1] != 4 or path.ndim != 2 or path.shape[1] != 2:
        raise ValueError(f"edges {edges.shape} and path {path.shape} are not [edges, 4] and [steps, 2]")
    n = len(tokens)
    gaps = np.full(len(edges), np.nan, np.float32)
    line_x = np.stack([edges[:, 0], edges[:, 2], gaps], 1).ravel().astype(np.float32)
    line_y = np.stack([edges[:, 1], edges[:, 3], gaps], 1).ravel().astype(np.float32)
    figure = Figure().add_scatter(
        x=line_x, y=line_y, mode="lines", line={"color": MASKED_LINE, "width": 1}, opacity=0.45, hoverinfo="skip"
    )
    node_x, node_y = np.meshgrid(np.arange(n, dtype=np.float32), np.arange(levels + 1, dtype=np.float32))
    above = [words["reach_layer"].replace("{layer}", str(layer + 1)) for layer in range(levels)]
    above = [words["reach_states"]] if states else above
    names = [words["reach_input"], *above]
    text = [
        words["reach_node"].replace("{level}", names[level]).replace("{position}", str(i)).replace("{token}", token)
        for level in range(levels + 1)
        for i, token in enumerate(tokens)
    ]
    figure.add_scatter(
        x=node_x.ravel(),
        y=node_y.ravel(),
        mode="markers",
        text=[safe(line) for line in text],
        marker={"color": QUALITATIVE[0], "size": 7},
        hovertemplate="%{text}<extra></extra>",
    )
    figure.add_scatter(
        x=path[:, 0].astype(np.float32),
        y=path[:, 1].astype(np.float32),
        mode="lines+markers",
        line={"color": QUALITATIVE[1], "width": 3.5},
        marker={"color": QUALITATIVE[1], "size": 9},
        hoverinfo="skip",
    )
    if len(path):
        first, last = (text[int(level) * n + int(position)] for position, level in (path[0], path[-1]))
        figure.says = words["reach_says"].format(first=first, last=last, n=len(path) - 1)
    frame(figure, title, height=360)  # whatever the levels: a page that jumps is slow to draw, too
    short = max(map(len, tokens)) <= 5  # (short ones stand upright beside each other, long ones lie slanted)
    figure.update_xaxes(range=[-0.6, n - 0.4], tickangle=0 if short else -45, **_ticks(tokens, 16))
    figure.update_yaxes(range=[-0.4, levels + 0.4], **_ticks(names, 12))  # level 0 stands below
    for axes in (figure.update_xaxes, figure.update_yaxes):  # margins that are searched for are drawn several times
        axes(showgrid=False, automargin=False)
    figure.update_layout(margin={"l": 96, "b": 36 if short else 76})
    return figure


def _ticks(names: Sequence[str], most: int) -> dict[str, object]:
    """Names of integer positions; every k-th, where there are more than `most`."""
    step = -(-len(names) // most)
    return {
        "tickvals": np.arange(0, len(names), step),
        "ticktext": [safe(name if len(name) <= 14 else name[:13] + "…") for name in names[::step]],
    }


def gradient_reach(
    curves: Mapping[str, tuple[Sequence[str], NDArray[np.floating]]],
    spread: Mapping[str, tuple[NDArray[np.floating], NDArray[np.floating]]] | None = None,
    *,
    back: int | None = None,
    logarithmic: bool = True,
    title: str = "",
) -> Figure:
    """Draws how the gradient of the last position changes with the distance of the token it is taken for.

    Args:
        curves: name -> tokens, first to last, and the size of the gradient of each; 0 for a token out of reach (of a
            sliding window), which a logarithmic scale has no place for: a gap. The last one is above 0.
        spread: name -> the lowest and the highest share of the last token's own in other texts, from the last token
            back; bands behind the curves of these names.
        back: how many tokens before the last one is marked.
        logarithmic: the scale of the sizes; a straight line is then an exponential fall.
    """
    words = texts()
    figure = Figure()
    for index, (name, (tokens, sizes)) in enumerate(curves.items()):
        sizes = np.asarray(sizes, dtype=np.float64)
        if sizes.shape != (len(tokens),) or not len(tokens) or sizes.min() < 0 or sizes[-1] == 0:
            raise ValueError(
                f"{name}: {len(tokens)} tokens for {sizes.shape} sizes, none below 0 and the last one above"
            )
        drawn = np.where(sizes > 0, sizes, np.nan) if logarithmic else sizes
        if spread and name in spread:
            (low, high), told = spread[name], words["gradient_spread"].replace("{name}", safe(name))
            pale = ",".join(str(int(QUALITATIVE[index][at : at + 2], 16)) for at in (1, 3, 5))
            for trace in band(np.arange(len(low), dtype=np.float32), low, high, told, f"rgba({pale},0.2)"):
                figure.add_trace(trace)
        figure.add_scatter(
            x=np.arange(len(tokens), dtype=np.float32)[::-1],
            y=(drawn / sizes[-1]).astype(np.float32),
            name=safe(name),
            text=[safe(token) for token in tokens],
            mode="lines+markers",
            line={"color": QUALITATIVE[index], "width": 2.5, "dash": DASHES[index]},
            marker={"size": 8, "symbol": ("circle", "square")[index % 2]},
            hovertemplate=fill(words["gradient_at"], name=safe(name), token="%{text}", back="%{x}", value="%{y:.4f}"),
        )
    frame(figure, title, height=400, hovermode="closest")
    figure.update_xaxes(title=safe(words["gradient_back"]), autorange="reversed")
    figure.update_yaxes(title=safe(words["gradient_size"]), type="log" if logarithmic else "linear")
    if logarithmic:
        figure.update_yaxes(dtick=1)
    else:
        figure.update_yaxes(rangemode="tozero")
    figure.update_layout(
        showlegend=True, legend={"orientation": "h", "y": -0.25, "yanchor": "top", "traceorder": "normal"}
    )
    if back is not None:
        figure.add_vline(x=back, line={"color": MASKED_LINE, "width": 2, "dash": "dot"})
    return figure


# Figures of the cost of generation: the bytes of the KV cache, and multiplications with and without it.
def cache_growth(nbytes: NDArray[np.integer], fixed: int = 0, *, at: int | None = None, title: str = "") -> Figure:
    """Draws the bytes of the KV cache after each new token; `fixed` of them do not grow: they belong to the source."""
    words = texts()
    values = np.asarray(nbytes, dtype=np.int64)
    if values.ndim != 1 or not len(values) or values.min() < fixed:
        raise ValueError(f"the bytes of {values.shape} steps do not fit {fixed} fixed ones")
    unit, name = next((size, name) for size, name in _UNITS if values.max() >= size or size == 1)
    steps = np.arange(len(values) + 1, dtype=np.int32)  # one further: the last step is as wide as the others
    parts = [(words["cache_source"], np.full(len(values), fixed, np.int64), 4)] if fixed else []
    parts.append((words["cache_text"], values - fixed, 0))
    figure = Figure()
    for label, part, colour in parts:
        figure.add_scatter(
            x=steps,
            y=(np.append(part, part[-1]) / unit).astype(np.float32),
            customdata=np.append(part, part[-1]),
            name=safe(label),
            stackgroup="bytes",
            mode="lines",
            line={"color": QUALITATIVE[colour], "width": 2.5, "shape": "hv"},
            hovertemplate=[fill(words["cache_at"], step="%{x}", part=safe(label), value="%{customdata:,}")]
            * len(values)
            + ["<extra></extra>"],  # (no step of its own)
        )
    frame(figure, title, height=360)
    figure.update_layout(showlegend=len(parts) > 1, legend={"orientation": "h", "y": -0.32, "yanchor": "top"})
    figure.update_xaxes(title=safe(words["new_token"]), rangemode="tozero")
    figure.update_yaxes(title=safe(words["cache"]), ticksuffix=f" {name}", rangemode="tozero")
    _mark(figure, at)
    return figure


def multiplications(
    cached: NDArray[np.integer], uncached: NDArray[np.integer], *, at: int | None = None, title: str = ""
) -> Figure:
    """Draws the multiplications of every step side by side, with the cache and without, on the same scale.

    `cached`, `uncached`: [steps, 4]: attention, projections, feed-forward, unembedding.
    """
    words = texts()
    sides = [np.asarray(side, dtype=np.float64) for side in (cached, uncached)]
    if sides[0].shape != sides[1].shape or sides[0].ndim != 2 or sides[0].shape[1] != len(PARTS):
        raise ValueError(f"shapes {sides[0].shape} and {sides[1].shape} are not both [steps, {len(PARTS)}]")
    steps = np.arange(len(sides[0]), dtype=np.int32)
    figure = Figure()
    for side, (axis, name) in zip(sides, (("", "with_cache"), ("2", "without_cache")), strict=True):
        for order, part in enumerate(PARTS):
            figure.add_bar(
                x=steps,
                y=side[:, order].astype(np.float32),
                xaxis=f"x{axis}",
                name=safe(words[part]),
                legendgroup=part,
                showlegend=not axis,
                marker={
                    "color": QUALITATIVE[order],
                    "pattern": {"shape": _PATTERNS[order], "size": 6, "solidity": 0.2, "fillmode": "overlay"},
                    "line": {"width": 0},
                },
                hovertemplate=fill(
                    words["multiplications_at"], step="%{x}", part=safe(words[part]), value="%{y:.3s}"
                ).replace("<extra>", f"<extra>{safe(words[name])}"),
            )
    frame(figure, title, height=360, barmode="stack", bargap=0.08)
    top = max(float(side.sum(1).max()) for side in sides) * 1.08
    figure.update_yaxes(range=[0, top], title=safe(words["multiplications"]), exponentformat="SI")
    figure.update_layout(
        xaxis={"domain": [0.0, 0.48]},
        xaxis2={"domain": [0.52, 1.0], **AXIS, "anchor": "y"},
        showlegend=True,
        legend={"orientation": "h", "y": -0.32, "yanchor": "top"},
        margin={"t": 70},
    )
    figure.update_xaxes(title=safe(words["new_token"]), showgrid=False)
    # Over the left ends of their panels: centred, they would touch on a phone.
    for place, name in ((0.0, "with_cache"), (0.52, "without_cache")):
        figure.add_text(
            place, 1.0, words[name], xref="paper", yref="paper", xanchor="left", yanchor="bottom", font={"size": 13}
        )
    _mark(figure, at, "x", "x2")
    return figure


def _mark(figure: Figure, at: int | None, *axes: str) -> None:
    """A line at the step that is looked at."""
    for axis in axes or ("x",):
        if at is not None:
            figure.add_vline(at, xref=axis, yref="paper", line={"color": MASKED_LINE, "width": 2, "dash": "dot"})
