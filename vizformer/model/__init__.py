"""The Transformer and the trace of its forward pass."""

from vizformer.model.cache import Cache
from vizformer.model.edit import Cell, Edit
from vizformer.model.masks import Mask, Reason
from vizformer.model.patch import Patch
from vizformer.model.trace import AttentionRecord, RoutingRecord, Trace
from vizformer.model.transformer import Transformer, count_parameters

__all__ = [
    "AttentionRecord",
    "Cache",
    "Cell",
    "Edit",
    "Mask",
    "Patch",
    "Reason",
    "RoutingRecord",
    "Trace",
    "Transformer",
    "count_parameters",
]
