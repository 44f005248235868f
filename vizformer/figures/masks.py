"""The look of masked cells: grey and hatched, on a layer of their own, with the reason in the hover."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure
from vizformer.figures.style import MASKED, MASKED_LINE, fill, safe

MOST_HATCHED = 2000


def add_masks(
    figure: Figure,
    reasons: NDArray[np.integer],
    sentence: str,
    words: Mapping[str, str],
    places: Mapping[str, str],
    *,
    hatched: bool = True,
) -> None:
    """Lays one trace per reason over a map.

    `words`: "reason_1" ... in the reader's language; `hatched`: whether to draw strokes too, where the cells are few.
    """
    gap = 1 if hatched and max(reasons.shape) <= 64 else 0
    for code in sorted(set(np.unique(reasons).tolist()) - {0}):
        reason = words.get(f"reason_{code}", str(code))
        cells = np.where(reasons == code, np.float32(0), np.float32(np.nan)).astype(np.float32)
        figure.add_heatmap(
            z=cells,
            zmin=0,
            zmax=1,
            colorscale=[(0, MASKED), (1, MASKED)],
            showscale=False,
            hoverongaps=False,
            xgap=gap,
            ygap=gap,
            hovertemplate=fill(sentence, reason=safe(reason), **places),
            name=reason,
            meta="masked",  # (`figures.series.MASKED`)
        )
    rows, columns = np.nonzero(reasons)
    if hatched and 0 < len(rows) <= MOST_HATCHED:
        figure.add_scatter(
            x=columns.astype(np.int32),
            y=rows.astype(np.int32),
            mode="markers",
            marker={"symbol": "line-ne", "size": 9, "line": {"color": MASKED_LINE, "width": 1}},
            hoverinfo="skip",
        )
