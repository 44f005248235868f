"""A table of embeddings."""

import torch
from torch import nn


def embedding_table(rows: int, width: int) -> nn.Embedding:
    """One learned row of `width` numbers per id.

    On "meta", where a model is only looked at or waits for its weights, nothing is drawn: drawing (or counting) there
    makes torch import a second's worth of itself.
    """
    empty = torch.empty(rows, width)
    return nn.Embedding(rows, width, _weight=empty if empty.is_meta else None)
