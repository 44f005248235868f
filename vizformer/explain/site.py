"""A place in the model where attention happens: its weights, what goes in and what comes out."""

import re
from dataclasses import dataclass

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model.attention import Attention
from vizformer.model.block import Block
from vizformer.model.norms import Around
from vizformer.model.trace import Trace

_SITE = re.compile(r"(encoder|decoder)\.(\d+)\.(self|cross)")


@dataclass(frozen=True)
class Site:
    name: str  # e.g. "decoder.2.cross"
    attention: Attention  # the module of the attention
    around: Around  # the norms around it, each at its place
    # before, after: names of the residual stream around the sublayer
    before: str
    after: str
    source: str  # name of the residual stream that keys and values are computed from

    @property
    def is_cross(self) -> bool:
        return self.before != self.source


def find_site(checkpoint: AnyCheckpoint, trace: Trace, name: str) -> Site:
    """The attention site called `name`.

    Raises:
        TraceError: the trace has no such site, or it is from another model.
    """
    record = trace[name]  # raises an error that lists the existing sites
    match = _SITE.fullmatch(name)
    stack = getattr(checkpoint.model, match[1]) if match else None
    config = checkpoint.model.config
    fits = (
        stack is not None
        and match is not None
        and int(match[2]) < len(stack.layers)
        and (match[3] == "self" or config.architecture == "encoder-decoder")
        and (*record.q.shape[::2], record.k.shape[0]) == (config.n_heads, config.d_head, config.kv_heads)
    )
    if match is None or stack is None or not fits:
        raise TraceError(
            "{site} is not a site of {model}: the trace is of another model.", site=name, model=checkpoint.name
        )
    layer, kind = f"{match[1]}.{match[2]}", match[3]
    block = stack.layers[int(match[2])]
    assert isinstance(block, Block)
    if kind == "cross":
        assert block.cross_attention is not None
        points = (f"{layer}.mid_self", f"{layer}.mid_cross", "encoder.final")
        return Site(name, block.cross_attention, block.around("cross"), *points)
    after = f"{layer}.{'mid' if block.cross_attention is None else 'mid_self'}"
    return Site(name, block.self_attention, block.around("self"), f"{layer}.pre", after, f"{layer}.pre")
