"""The heads of a subject as they are looked at: with keys left out, or put together; once for everybody.

What a cached function returns is shared: read only.
"""

from typing import TYPE_CHECKING, get_args

from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import Over, Without

if TYPE_CHECKING:
    from vizformer.analysis import Kind
    from vizformer.components.payload import HeadsPayload

MOST_TOGETHER = 2048
"""Tokens up to which heads are put together: of more, the map alone takes 33 MB to the browser."""

TOGETHER: tuple[Over, ...] = tuple(over for over in get_args(Over) if over != "one")


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
        # what no head of this layer reads can still come to a row by way of the layers below
        why[index] = np.where(found == 0, reasons[index], 0) if over == "rollout" else reasons[index]
        small.append(thumbnails(found)[None])
        if whole or index == layer:
            maps[index] = found
    if whole:
        return pack_heads(np.stack([maps[index] for index in range(layers)])[:, None], None, why)
    return pack_chosen(np.stack(small), maps[layer], None, why, chosen=(layer, 0))
