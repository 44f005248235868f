"""The heads of a subject as they are looked at: with keys left out, or put together; once for everybody.

What a cached function returns is shared: read only.
"""

from typing import TYPE_CHECKING, get_args

from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import Over, Without

if TYPE_CHECKING:
    from numpy import ndarray

    from vizformer.analysis import Kind
    from vizformer.components.payload import HeadsPayload

MOST_TOGETHER = 2048
"""Tokens up to which heads are put together.

Of 2,048 tokens, 12 layers of 12 heads, this takes 500 MB beside the trace; of 4,096 it would be 2 GB, and the map of one
layer alone 33 MB on its way to the browser.
"""

TOGETHER: tuple[Over, ...] = tuple(over for over in get_args(Over) if over != "one")


@cached
def lines_together(subject: Subject, kind: "Kind", over: Over, without: Without, layer: int | None) -> "HeadsPayload":
    """The heads of each layer as one, for lines: those of all layers, or of one layer where they do not all fit."""
    import numpy as np

    from vizformer.analysis import aggregates, mask_reasons, n_layers
    from vizformer.components.lines import pack_heads, pack_layer

    if over == "one":
        raise ValueError("one head is no heads together")
    trace = subject_cache.seen(subject, kind, without)
    reasons = mask_reasons(trace, kind)
    if layer is None:
        maps = np.stack(list(aggregates(trace, kind, over)))
        return pack_heads(maps[:, None], None, _left_blocked(maps, reasons) if over == "rollout" else reasons)
    layers = n_layers(trace, kind)
    found = next(found for index, found in enumerate(aggregates(trace, kind, over)) if index == layer)
    why = reasons[layer] if reasons.ndim == 3 else reasons
    return pack_layer(found[None], _left_blocked(found, why) if over == "rollout" else why, layer=layer, layers=layers)


def _left_blocked(rollout: "ndarray", reasons: "ndarray") -> "ndarray":
    """The reasons of cells that stay 0: what no head of a layer reads can come to a row by way of the layers below."""
    import numpy as np

    return np.where(rollout == 0, reasons, 0).astype(reasons.dtype)


@cached
def together(subject: Subject, kind: "Kind", over: Over, without: Without, layer: int) -> "HeadsPayload":
    """The heads of each layer as one map; where those of all layers do not fit, small maps of all and the map of one."""
    import numpy as np

    from vizformer.analysis import aggregates, mask_reasons, n_layers
    from vizformer.components.attention import fits, pack_chosen, pack_heads
    from vizformer.components.thumbnails import thumbnails

    if over == "one":
        raise ValueError("one head is no heads together")
    trace = subject_cache.seen(subject, kind, without)
    reasons = mask_reasons(trace, kind)
    layers = n_layers(trace, kind)
    reasons = reasons if reasons.ndim == 3 else np.broadcast_to(reasons, (layers, *reasons.shape))
    whole = fits((layers, 1, *reasons.shape[1:]), scored=False)
    small, maps, why = [], {}, np.empty_like(reasons)
    for index, found in enumerate(aggregates(trace, kind, over)):
        why[index] = _left_blocked(found, reasons[index]) if over == "rollout" else reasons[index]
        small.append(thumbnails(found)[None])
        if whole or index == layer:
            maps[index] = found
    if whole:
        return pack_heads(np.stack([maps[index] for index in range(layers)])[:, None], None, why)
    return pack_chosen(np.stack(small), maps[layer], None, why, chosen=(layer, 0))
