"""What a module says may come next, for generation: with the keys and values it kept where that is proved, else by full
forwards."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vizformer.checkpoints.recorded.call import answer_of, parameters, rows_of
from vizformer.errors import GenerationError

_SAME = 1e-4
"""The largest difference allowed between the logits of a cached step and a full forward, as a share of the largest logit."""


class RecordedReading:
    """One generation of a module (`vizformer.generation.Reading`).

    The cache of a model of `transformers` is used for one sequence, after the first step with it gave the logits of a full
    forward.

    Args:
        forward: one full forward: a sequence to what the module hands back.
        cached: hands out such a cache, where the module has one.
    """

    def __init__(self, forward: Callable[[Sequence[int]], Any], cached: "CachedModel | None" = None) -> None:
        self._forward, self._cached = forward, cached
        self._proved = False

    @property
    def cache_bytes(self) -> int:
        return 0 if self._cached is None else self._cached.nbytes

    def next_logits(self, sequences: Sequence[Sequence[int]], parents: Sequence[int]) -> Tensor:
        with torch.no_grad():
            if len(sequences) > 1:
                self._cached = None
            return torch.stack([self._of_one(list(ids)) for ids in sequences])

    def _of_one(self, ids: list[int]) -> Tensor:
        if self._cached is None:
            return _last(self._forward(ids))
        first = not self._cached.length
        found = self._cached.read(ids)
        if first or self._proved:
            return found
        whole = _last(self._forward(ids))
        bound = _SAME if whole.dtype == torch.float32 else 3e-2
        self._proved = bool((found - whole).abs().max() <= bound * max(1.0, float(whole.abs().max())))
        if not self._proved:
            self._cached = None
        return whole


def _last(out: Any) -> Tensor:
    found, _ = answer_of(out)
    rows = None if found is None else rows_of(found.detach())
    if rows is None or not len(rows):
        raise GenerationError(
            "This model hands back no logits, so that it cannot write. Give vf.wrap a model with its prediction head, or "
            "run=... that hands back logits."
        )
    return rows[-1]


class CachedModel:
    """A model of `transformers` with its own cache of keys and values, for one sequence.

    Args:
        prompt: what the encoder reads; None: there is none.
    """

    def __init__(self, model: nn.Module, device: torch.device, prompt: Sequence[int] | None = None) -> None:
        self._model, self._device, self._prompt = model, device, prompt
        self._past: Any = None
        self._memory: Any = None
        self.length = 0

    @staticmethod
    def fits(model: nn.Module) -> bool:
        """Whether a module takes and hands back such a cache, by the names of `transformers`."""
        named = {"input_ids", "past_key_values", "use_cache"} <= parameters(model).keys()
        return named and type(model).__module__.startswith("transformers.")

    def read(self, ids: Sequence[int]) -> Tensor:
        new = torch.tensor([ids[self.length :]], device=self._device)
        given: dict[str, Any] = {"past_key_values": self._past, "use_cache": True}
        if self._prompt is None:
            given["input_ids"] = new
        else:
            given["decoder_input_ids"] = new
            if self._memory is None:
                given["input_ids"] = torch.tensor([self._prompt], device=self._device)
            else:
                given["encoder_outputs"] = (self._memory,)
        out = self._model(**given)
        self._past, self.length = getattr(out, "past_key_values", None), len(ids)
        self._memory = getattr(out, "encoder_last_hidden_state", None)
        if self._past is None:  # it keeps nothing: the next step reads all of it
            self.length = 0
        return _last(out)

    @property
    def nbytes(self) -> int:
        """The bytes of all cached keys and values."""
        found, todo = 0, [self._past]
        while todo:
            one = todo.pop()
            if isinstance(one, Tensor):
                found += one.nbytes
            elif isinstance(one, list | tuple):
                todo += one
            elif hasattr(one, "layers"):
                todo += list(one.layers)
            elif hasattr(one, "self_attention_cache"):
                todo += [one.self_attention_cache, one.cross_attention_cache]
            elif hasattr(one, "keys") and not callable(one.keys):
                todo += [one.keys, one.values]
        return found
