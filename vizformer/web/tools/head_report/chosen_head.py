"""Which head is shown: the one that was chosen, or else the strongest of the measure."""

import numpy as np

from vizformer.analysis.corpus_heads import KindReport
from vizformer.web.link import state
from vizformer.web.widgets import lesson

_FIRST = "headreport.first"
"""Set where head 0 of layer 0 was chosen: a link leaves both out, as if nothing was."""


def place(found: KindReport, measure: str) -> tuple[int, int]:
    """Layer and head."""
    view = state.view()
    if (view.layer, view.head) != (0, 0) or lesson.value(_FIRST, False):
        return view.layer, view.head
    values = found.mean[measure]
    best = int(np.where(np.isfinite(values), values, -np.inf).argmax())
    layer, head = np.unravel_index(best, found.shape)
    return int(layer), int(head)


def choose(layer: int, head: int) -> None:
    """Shows this head from now on."""
    state.update(layer=layer, head=head)
    lesson.change(_FIRST, (layer, head) == (0, 0), False)
