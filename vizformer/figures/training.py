"""A training in pictures: its curves, the answers on the way, the heads that form."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import AXIS, Figure, frame, name_axes, scatter
from vizformer.figures.style import DASHES, QUALITATIVE, fill, safe, texts, weight_scale

MARKER = "rgba(128, 128, 128, 0.9)"
BESIDE = 0.75  # the opacity of the curves of another training
_DECADES = (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)


def training_curves(
    steps: NDArray[np.integer],
    losses: NDArray[np.floating],
    kept: NDArray[np.integer],
    kept_losses: NDArray[np.floating],
    accuracies: NDArray[np.floating],
    *,
    at: int,
    last: int,
    beside: tuple[NDArray[np.integer], NDArray[np.floating], NDArray[np.floating]] | None = None,
    title: str = "",
) -> Figure:
    """Draws loss (above) and accuracy (below) over the steps, and a line at the step that is looked at.

    The steps stand on a logarithmic axis of 1 + step: most happens at the beginning.

    Args:
        kept: the steps whose weights were kept.
        kept_losses: the losses of these weights on held-out examples.
        accuracies: their accuracies on them.
        last: the last step that is planned: the end of the axis.
        beside: of another training the kept steps, their losses and accuracies, drawn thin, with dashes and dots.
    """
    words = texts()
    if len(steps) != len(losses) or not len(kept) == len(kept_losses) == len(accuracies):
        raise ValueError(
            f"{len(steps)} steps do not fit {len(losses)} losses, or {len(kept)} kept steps their "
            f"{len(kept_losses)} losses and {len(accuracies)} accuracies"
        )
    figure = Figure()
    other = (kept[:0], kept_losses[:0], accuracies[:0]) if beside is None else beside
    if not len(other[0]) == len(other[1]) == len(other[2]):
        raise ValueError(f"beside: {len(other[0])} steps, {len(other[1])} losses and {len(other[2])} accuracies")
    curves = [
        (steps, losses, "y", words["training_loss"], "lines", "training_loss_at", "%{y:.4f}"),
        (kept, kept_losses, "y", words["held_out_loss"], "lines+markers", "held_out_loss_at", "%{y:.4f}"),
        (kept, accuracies, "y2", words["accuracy"], "lines+markers", "accuracy_at", "%{y:.1%}"),
    ]
    if len(other[0]):
        curves += [
            (other[0], other[1], "y", words["beside_loss"], "lines", "held_out_loss_at", "%{y:.4f}"),
            (other[0], other[2], "y2", words["beside_accuracy"], "lines", "accuracy_at", "%{y:.1%}"),
        ]
    for order, (x, y, axis, name, mode, sentence, shown) in enumerate(curves):
        figure.add_scatter(
            x=_place(x),
            y=np.asarray(y, dtype=np.float32),
            yaxis=axis,
            mode=mode,
            name=safe(name),
            customdata=np.asarray(x, dtype=np.int32),
            line={"color": QUALITATIVE[order], "dash": DASHES[order], "width": 2.5}
            if order < 3
            else {"color": QUALITATIVE[order - 2], "dash": "dashdot", "width": 2},
            opacity=1.0 if order < 3 else BESIDE,
            marker={"size": 6},
            hovertemplate=fill(words[sentence], step="%{customdata}", value=shown),
        )
    frame(figure, title, height=400)
    _step_axis(figure, at, last, words)
    figure.update_xaxes(anchor="y2")
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        yaxis={"domain": [0.46, 1.0], "rangemode": "tozero", "title": safe(words["loss"])},
        yaxis2={
            "domain": [0.0, 0.38],
            "range": [-0.04, 1.04],
            "tickformat": ".0%",
            "title": safe(words["accuracy"]),
            **AXIS,
        },
    )
    return figure


def score_curves(
    steps: NDArray[np.integer], scores: NDArray[np.floating], *, at: int, last: int, title: str = ""
) -> Figure:
    """Draws a score between 0 and 1 of every head [steps, layers, heads]: colours are heads, dashes are layers.

    `scores`: [steps, layers, heads], of the steps at which they were measured.
    """
    words = texts()
    values = np.asarray(scores, dtype=np.float32)
    if values.ndim != 3 or len(values) != len(steps):
        raise ValueError(f"scores of shape {values.shape} do not fit {len(steps)} steps: [steps, layers, heads]")
    curves = []
    for layer, head in np.ndindex(*values.shape[1:]):
        name = safe(f"{words['layer_short']} {words['head_short']}".format(layer=layer, head=head))
        curves.append(
            scatter(
                x=_place(steps),
                y=np.ascontiguousarray(values[:, layer, head]),
                mode="lines",
                name=name,
                customdata=np.asarray(steps, dtype=np.int32),
                line={"color": QUALITATIVE[head % len(QUALITATIVE)], "dash": DASHES[layer % len(DASHES)], "width": 2.5},
                hovertemplate=fill(words["score_at"], name=name, step="%{customdata}", value="%{y:.3f}"),
            )
        )
    figure = Figure(*curves)
    frame(figure, title, height=340)
    _step_axis(figure, at, last, words)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.3})
    figure.update_yaxes(range=[-0.04, 1.04], title=safe(words["head_score"]))
    return figure


def answer_map(
    probabilities: NDArray[np.floating], symbols: Sequence[str], answer: Sequence[str], *, title: str = ""
) -> Figure:
    """Draws how probable every symbol is at every place of the answer [symbols, places], and frames the right ones."""
    words = texts()
    values = np.ascontiguousarray(probabilities, dtype=np.float32)
    if values.shape != (len(symbols), len(answer)):
        raise ValueError(f"probabilities {values.shape} do not fit {len(symbols)} symbols, {len(answer)} places")
    rows = [list(symbols).index(symbol) for symbol in answer]
    figure = Figure().add_heatmap(
        z=values,
        zmin=0.0,
        zmax=1.0,
        colorscale=weight_scale(),
        colorbar={"title": {"text": words["probability"]}, "thickness": 14},
        xgap=1,
        ygap=1,
        hovertemplate=fill(words["symbol_at"], place="%{pointNumber[1]}", symbol="%{y}", value="%{z:.4f}"),
    )
    for place, row in enumerate(rows):
        figure.add_rectangle(place - 0.5, place + 0.5, row - 0.5, row + 0.5, line={"color": QUALITATIVE[1], "width": 3})
    name_axes(figure, symbols, answer, row_title=words["symbol"], column_title=words["right_answer"], square=False)
    return frame(figure, title, height=110 + 18 * len(symbols))


def _place(steps: NDArray[np.integer]) -> NDArray[np.float32]:
    places: NDArray[np.float32] = np.log10(1.0 + np.asarray(steps, dtype=np.float32)).astype(np.float32)
    return places


def _step_axis(figure: Figure, at: int, last: int, words: Mapping[str, str]) -> None:
    drawn = figure.parts[0]
    figure.told_by = Figure(*({**trace, "x": trace["customdata"]} for trace in drawn if "customdata" in trace))
    figure.told_by.update_xaxes(title=safe(words["training_step"]))
    ticks = np.array([step for step in _DECADES if step <= last], dtype=np.int32)
    figure.update_xaxes(
        tickvals=_place(ticks),
        ticktext=[str(step) for step in ticks],
        range=[-0.05, float(np.log10(1 + last)) + 0.05],
        title=safe(words["training_step"]),
    )
    where = float(np.log10(1 + at))
    figure.add_vline(x=where, line={"color": MARKER, "width": 3})
