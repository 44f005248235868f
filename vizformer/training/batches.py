"""What a model is given at a time while it learns: sentences of similar length, padded, and what is to be predicted."""

from dataclasses import dataclass

import torch
from torch import Tensor

IGNORED = -100  # the label of a position at which nothing is to be predicted


@dataclass(frozen=True)
class PairBatch:
    """source [b, n] with its end mark; target [b, m] begins with the start mark and ends with the end mark."""

    source: Tensor
    target: Tensor

    def to(self, device: torch.device) -> "PairBatch":
        return PairBatch(self.source.to(device), self.target.to(device))


@dataclass(frozen=True)
class RowBatch:
    """Rows of similar length, padded on the right: [b, n] each; padding is True where there is no token."""

    ids: Tensor
    labels: Tensor
    segments: Tensor
    padding: Tensor

    def to(self, device: torch.device) -> "RowBatch":
        return RowBatch(self.ids.to(device), self.labels.to(device), self.segments.to(device), self.padding.to(device))
