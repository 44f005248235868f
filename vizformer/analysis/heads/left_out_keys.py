"""Attention without some of its keys: what is left is shared anew among the others.

    a'[i, j] = a[i, j] / (1 - sum over the left-out keys l of a[i, l])   for every other key j,   a'[i, l] = 0

which is the softmax over the other keys alone.  Nothing else changes: queries, keys and scores are those of the model,
which did see these keys.  It is a way of looking, as where a first token takes most of the attention of a head
(Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks"), not another run of the model.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from vizformer.analysis.heads.maps import Kind, n_layers, site_name
from vizformer.model import Trace
from vizformer.model.masks import Reason
from vizformer.model.records import AttentionRecord


def without_keys(trace: Trace, kind: Kind, keys: Sequence[int]) -> Trace:
    """The trace as though no query of one kind of attention had seen `keys`; a row that saw only them sees nothing.

    Everything that is computed from a trace's maps holds for it too; the residual stream is that of the model.
    """
    masks: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}  # layers share a mask, and go on sharing it
    records = {}
    for layer in range(n_layers(trace, kind)):
        record = trace[site_name(kind, layer)]
        same = (_place(record.bias), _place(record.reason_map))
        if same not in masks:
            masks[same] = _blocked(record, keys)
        records[record.site] = replace(record, bias=masks[same][0], reason_map=masks[same][1])
    return trace.with_records(records)


def _place(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _blocked(record: AttentionRecord, keys: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The mask and its reasons, with the keys blocked for every query that saw them."""
    shape, device = (1, 1, record.k.shape[1]), record.q.device
    bias = torch.zeros(shape, device=device) if record.bias is None else record.bias.clone()
    reason = torch.zeros(shape, dtype=torch.uint8, device=device)
    if record.reason_map is not None:
        reason = record.reason_map.clone()
    for key in keys:
        bias[..., key] = -torch.inf
        reason[..., key] = torch.where(reason[..., key] > 0, reason[..., key], int(Reason.LEFT_OUT))
    return bias, reason
