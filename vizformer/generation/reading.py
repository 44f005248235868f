"""The interface that generation needs of a model: logits of the next token after given tokens."""

from collections.abc import Sequence
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from vizformer.model import Cache, Edit, Transformer


class Reading(Protocol):
    """A model that reads growing sequences, one token per call; it is made for one generation."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of the keys and values in the cache; 0 without a cache."""

    def next_logits(self, sequences: Sequence[Sequence[int]], parents: Sequence[int]) -> Float[Tensor, "b vocab_size"]:
        """The logits of the next token, after each of these sequences of equal length.

        Args:
            parents: for each sequence, the index of the sequence of the previous call that it extends by one token.
        """


class OwnReading:
    """Our own Transformer, with its KV cache; with an edit every step is a full forward instead."""

    def __init__(self, model: Transformer, prompt: Sequence[int], edit: Edit | None = None) -> None:
        self._model, self._edit, self._device = model, edit, model.embedding.weight.device
        self._cache = Cache() if edit is None else None
        self._memory: Tensor | None = None
        self._rows = 1
        if model.encoder is not None:
            self._memory = model.encode(self._tensor([prompt]), edit=edit)  # [1, n, d_model]

    def _tensor(self, ids: Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor([list(row) for row in ids], dtype=torch.long, device=self._device)

    @property
    def cache_bytes(self) -> int:
        return 0 if self._cache is None else self._cache.nbytes

    def next_logits(self, sequences: Sequence[Sequence[int]], parents: Sequence[int]) -> Float[Tensor, "b vocab_size"]:
        first, memory = 0, self._memory
        if self._cache is not None and self._cache.length:
            first = self._cache.length
            if list(parents) != list(range(self._rows)):
                self._cache.select(torch.tensor(list(parents), device=self._device))
        self._rows = len(sequences)
        if memory is not None:
            memory = memory.expand(len(sequences), -1, -1)
        new = self._tensor([row[first:] for row in sequences])
        x = self._model.decode(new, memory, edit=self._edit, cache=self._cache)  # [b, n_new, d_model]
        return self._model.logits(x[:, -1])
