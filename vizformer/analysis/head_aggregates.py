"""All heads of a layer as one map: their mean, their largest weights, or what they pass on through the layers.

    mean[l]     = 1/H sum_h A[l, h]                       each row sums to 1, as those of the heads do
    largest[l]  = max_h A[l, h], cell by cell              rows sum to more than 1: it is no attention, but an overview
    rollout[l]  = R_l R_(l-1) ... R_0,  R_l = (mean[l] + I) / 2, each row divided by its sum

The rollout takes every layer to add what it reads to what is there already, half and half (the residual stream): cell
(i, j) is then the share of token j of the input in what stands at position i after layer l.

Source: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", equation 1 and section 3.
"""

from collections.abc import Iterator
from typing import Literal

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads import Kind, n_layers, site_name
from vizformer.model import Trace
from vizformer.model.trace import AttentionRecord

Aggregate = Literal["mean", "max", "rollout"]


def aggregates(trace: Trace, kind: Kind, how: Aggregate) -> Iterator[Float[ndarray, "n_q n_k"]]:
    """The map of each layer, in the order of the layers; no more than three maps are held at a time.

    Raises:
        ValueError: a rollout of cross-attention, whose queries and keys are different texts.
    """
    if how == "rollout" and kind == "cross":
        raise ValueError("a rollout multiplies the layers of one text; cross-attention has two")
    before: Tensor | None = None
    for layer in range(n_layers(trace, kind)):
        with torch.inference_mode():
            record = trace[site_name(kind, layer)]
            found = _largest(record) if how == "max" else _mean(record)
            if how == "rollout":
                found.mul_(0.5).diagonal().add_(0.5)
                found /= found.sum(-1, keepdim=True)
                found = before = found if before is None else found @ before
        yield found.cpu().numpy()


def _mean(record: AttentionRecord) -> Tensor:
    total = record.pattern(0).float()
    for head in range(1, record.n_heads):
        total += record.pattern(head).float()
    return total.div_(record.n_heads)


def _largest(record: AttentionRecord) -> Tensor:
    largest = record.pattern(0).float()
    for head in range(1, record.n_heads):
        largest = torch.maximum(largest, record.pattern(head).float())
    return largest
