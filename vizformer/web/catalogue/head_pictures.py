"""Attention maps of a subject as pages show them: with some keys left out, or heads aggregated; computed once for everybody.

What a cached function returns is shared: read only.
"""

from typing import Literal

import numpy as np
from numpy import ndarray

from vizformer.analysis import Kind, TraceHeads, aggregates, layer_aggregate, records_of
from vizformer.components.contract import pool, thumbnails
from vizformer.components.packing import HeadsPayload, fits, pack_chosen, pack_heads
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import Over, Without

MOST_TOGETHER = 4096
"""Tokens up to which heads are put together.

Of 4,096 tokens, 12 layers of 12 heads, a mean takes about 10 s on one core and a rollout 18 s; the map of one layer is 34 MB
on its way to the browser; of 8,192 tokens it would be 134 MB.
"""

QUICK = 1024  # tokens up to which a page waits for it: about a second


@cached
def together(subject: Subject, kind: Kind, over: Over, without: Without, layer: int) -> HeadsPayload:
    """The heads of each layer as one map; where those of all layers do not fit, small maps of all and the map of one.

    Who listens (`long_work.HEARD`) is told how many layers are done.
    """
    if over == "one":
        raise ValueError("one head is no heads together")
    trace = subject_cache.seen(subject, kind, without)
    heads = TraceHeads(records_of(trace, kind))
    reasons, layers = heads.blocked(), heads.shape[0]
    whole = fits((layers, 1, *reasons.shape[-2:]), scored=False)
    if over != "rollout" and not whole:
        small_maps = small_together(subject, kind, over, without)
        return pack_chosen(small_maps, layer_aggregate(trace, kind, over, layer), None, reasons, chosen=(layer, 0))
    small, small_why, maps, why = [], [], {}, {}
    for index, found in enumerate(aggregates(trace, kind, over)):
        blocked = reasons[index] if reasons.ndim == 3 else reasons
        if over == "rollout":  # what no head of a layer reads can come to a row by way of the layers below
            blocked = blocked * (found == 0)
        small.append(thumbnails(found)[None])
        small_why.append(pool(blocked, np.minimum))
        if whole or index == layer:
            maps[index], why[index] = found, blocked
        _tell(index + 1, layers)
    if whole:
        return pack_heads(np.stack([*maps.values()])[:, None], None, np.stack([*why.values()]))
    return pack_chosen(
        np.stack(small), maps[layer], None, why[layer], chosen=(layer, 0), small_reasons=np.stack(small_why)
    )


@cached
def small_together(subject: Subject, kind: Kind, over: Literal["mean", "max"], without: Without) -> ndarray:
    """The small maps of the layers [layers, 1, rows, columns], for which each layer is looked at once."""
    trace, small = subject_cache.seen(subject, kind, without), []
    layers = len(records_of(trace, kind))
    for index, found in enumerate(aggregates(trace, kind, over)):
        small.append(thumbnails(found)[None])
        _tell(index + 1, layers)
    return np.stack(small)


def _tell(done: int, layers: int) -> None:
    if (heard := HEARD.get()) is not None:
        heard(done, layers)
