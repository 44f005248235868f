"""Figures of the cost of generation: the bytes of the KV cache, and multiplications with and without it."""

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import AXIS, Figure, frame
from vizformer.figures.style import MASKED_LINE, QUALITATIVE, fill, safe, texts

PARTS = ("attention", "projections", "feedforward", "unembedding")
_PATTERNS = ("/", "", "x", ".")
_UNITS = ((2**20, "MiB"), (2**10, "KiB"), (1, "B"))


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
