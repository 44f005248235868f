"""A place in the model where attention happens: its weights, what goes in and what comes out."""

import re
from dataclasses import dataclass

from vizformer.checkpoints import AnyCheckpoint
from vizformer.config import ModelConfig
from vizformer.errors import TraceError
from vizformer.model.attention import Attention
from vizformer.model.block import Block
from vizformer.model.norms import Around
from vizformer.model.trace import Trace

_SITE = re.compile(r"(encoder|decoder)\.(\d+)\.(self|cross)")


@dataclass(frozen=True)
class Site:
    name: str  # e.g. "decoder.2.cross"
    attention: Attention  # its module
    around: Around  # the norms around it, each at its place
    # before, after: names of the residual stream around the sublayer
    before: str
    after: str
    source: str  # name of the residual stream that keys and values are computed from
    lender: "Site | None" = None  # the site of an earlier layer whose keys and values it reads; None: its own

    @property
    def maker(self) -> "Site":
        """The site that makes its keys and values."""
        return self if self.lender is None else self.lender

    def module(self, letter: str) -> Attention:
        """The attention that has W_Q, W_K or W_V, and the norm behind it."""
        return self.attention if letter == "Q" else self.maker.attention

    @property
    def is_cross(self) -> bool:
        return self.before != self.source


def _sizes(config: ModelConfig, layer: int) -> tuple[int, int, int]:
    """Heads, width of a query, and heads of keys, of a layer."""
    own = config.of_layer(layer)
    return own.n_heads, own.d_head, own.kv_heads


def find_site(checkpoint: AnyCheckpoint, trace: Trace, name: str) -> Site:
    """The site of that name.

    Raises:
        TraceError: the trace has no such site, or it is from another model.
    """
    record = trace[name]  # raises with the list of sites that there are
    match = _SITE.fullmatch(name)
    stack = getattr(checkpoint.model, match[1]) if match else None
    config = checkpoint.model.config
    fits = (
        stack is not None
        and match is not None
        and int(match[2]) < len(stack.layers)
        and (match[3] == "self" or config.architecture == "encoder-decoder")
        and (*record.q.shape[::2], record.k.shape[0]) == _sizes(config, int(match[2]))
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
    after = f"{layer}.{block.attention_sum}"
    of = config.kv_layer(int(match[2]))
    lender = None if of == int(match[2]) else find_site(checkpoint, trace, f"{match[1]}.{of}.self")
    return Site(name, block.self_attention, block.around("self"), f"{layer}.pre", after, f"{layer}.pre", lender)
