"""Two runs side by side: where the weights of a head differ and how the residual streams point."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame, name_axes
from vizformer.figures.style import VIRIDIS, fill, heights, reach, safe, signed, texts

PRINTED_UP_TO = 16


_PLACES = {"query": "%{pointNumber[0]}", "key": "%{pointNumber[1]}", "query_token": "%{y}", "key_token": "%{x}"}


def _cells(values: NDArray[np.float32], *, bar: str, printed: str, hover: str, **properties: Any) -> Figure:
    """A map with the title of its scale; narrow gaps and numbers in the cells where there are few of them."""
    gap = 1 if max(values.shape) <= 64 else 0
    return Figure().add_heatmap(
        z=values,
        colorbar={"title": {"text": safe(bar)}, "thickness": 14},
        xgap=gap,
        ygap=gap,
        texttemplate=printed if max(values.shape) <= PRINTED_UP_TO else None,
        hovertemplate=hover,
        **properties,
    )


def difference_map(
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    *,
    reasons: NDArray[np.integer] | None = None,
    title: str = "",
) -> Figure:
    """Draws the weights of a head in a second run less those in a first one: blue is more, orange is less, 0 is neutral.

    The scale reaches equally far to both sides, as far as the largest difference.

    `reasons`: cells that are blocked in both runs are left empty: 0 visible [queries, keys].
    """
    words = texts()
    both = np.stack([np.asarray(first, dtype=np.float32), np.asarray(second, dtype=np.float32)], axis=-1)
    values = both[..., 1] - both[..., 0]
    if values.shape != (len(query_tokens), len(key_tokens)):
        raise ValueError(
            f"maps of shape {values.shape} do not fit {len(query_tokens)} query and {len(key_tokens)} key tokens"
        )
    if reasons is not None:
        if np.shape(reasons) != values.shape:
            raise ValueError(f"reasons of shape {np.shape(reasons)} do not fit maps of shape {values.shape}")
        values = np.where(np.asarray(reasons) == 0, values, np.float32(np.nan))
    both_weights = {"first": "%{customdata[0]:.4f}", "second": "%{customdata[1]:.4f}", "value": "%{z:+.4f}"}
    figure = _cells(
        values,
        bar=words["difference"],
        printed="%{z:+.2f}",
        hover=fill(words["difference_at"], **_PLACES, **both_weights),
        hoverongaps=False,
        customdata=both,
        **signed(reach(values)),
    )
    name_axes(figure, query_tokens, key_tokens, row_title=words["query"], column_title=words["key"])
    return frame(figure, title, height=heights(*values.shape))


def stream_map(
    cosines: NDArray[np.floating], points: Sequence[str], tokens: Sequence[str], *, title: str = ""
) -> Figure:
    """Draws the cosine of two residual streams at every point and position; the scale ends at 1 and begins at the least.

    `cosines`: [points, positions], from -1 to 1; NaN leaves a cell empty.
    """
    words = texts()
    values = np.ascontiguousarray(cosines, dtype=np.float32)
    if values.shape != (len(points), len(tokens)):
        raise ValueError(f"cosines of shape {values.shape} do not fit {len(points)} points and {len(tokens)} tokens")
    finite, last = values[np.isfinite(values)], len(VIRIDIS) - 1
    figure = _cells(
        values,
        bar=words["cosine"],
        printed="%{z:.2f}",
        hover=fill(words["cosine_at"], point="%{y}", position="%{pointNumber[1]}", token="%{x}", value="%{z:.4f}"),
        zmin=min(float(finite.min()) if finite.size else 0.0, 0.999),  # (where all are 1, they have its colour)
        zmax=1.0,
        colorscale=[(i / last, colour) for i, colour in enumerate(VIRIDIS)],
        hoverongaps=False,
    )
    name_axes(figure, points, tokens, column_title=words["position"], square=False)
    return frame(figure, title, height=heights(*values.shape))
