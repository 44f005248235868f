"""What a module says may come next, for generation: with the keys and values it kept where that is proved, else by full
forwards."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from vizformer.errors import GenerationError

_SAME = 1e-4
"""The largest difference allowed between the logits of a cached step and a full forward, as a share of the largest logit."""

Run = Callable[..., Any]
"""`run(model, ids)`, of an encoder-decoder `run(model, ids, target_ids)`, ids [1, n]: runs the model once."""


class Embeddings(TorchFunctionMode):
    """Hears where a forward of this thread looks up token ids, by where these lie in memory; hands it other rows there.

    Attributes:
        tables: of each of the ids the tables that were looked into, with the rows found there.
    """

    def __init__(self, ids: Sequence[Tensor], rows: Mapping[int, Tensor] | None = None) -> None:
        super().__init__()
        self._ids, self._rows = list(ids), rows or {}
        self.tables: list[dict[int, tuple[Tensor, Tensor]]] = [{} for _ in ids]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is F.embedding:
            given = dict(zip(("input", "weight"), args, strict=False)) | (kwargs or {})
            asked, table = given["input"], given["weight"]
        elif func is Tensor.__getitem__:
            table, asked = args
        else:
            return out
        for number, ids in enumerate(self._ids):
            read = isinstance(asked, Tensor) and isinstance(table, nn.Parameter)
            if read and asked.data_ptr() == ids.data_ptr() and asked.numel() == ids.numel():
                self.tables[number][id(table)] = table, out
                return self._rows[number].reshape(out.shape) if number in self._rows else out
        return out


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


# How a module is handed its token ids, and what of its answer are logits.
def usual_run(model: nn.Module, ids: Tensor, target_ids: Tensor | None = None) -> Any:
    """Calls a model with the argument names of `transformers` where its forward has them, else by position."""
    names = parameters(model)
    given = {} if target_ids is None else {"decoder_input_ids": target_ids}
    if "input_ids" in names:
        return model(input_ids=ids, **given)
    return model(ids) if target_ids is None else model(ids, target_ids)


def reads_target(model: nn.Module) -> bool:
    """Whether a forward wants a second sequence: by its name, or as the second parameter without a default."""
    names = parameters(model)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in names.values() if one.default is one.empty and one.kind in kinds]
    return "decoder_input_ids" in names or len(needed) > 1


def parameters(model: nn.Module) -> Mapping[str, inspect.Parameter]:
    """The parameters of the model's forward."""
    return inspect.signature(model.forward).parameters


def answer_of(out: Any) -> tuple[Tensor | None, bool]:
    """The tensor that may be the logits in the output of a forward, and whether the output names it "logits"."""
    found = out.get("logits") if isinstance(out, Mapping) else getattr(out, "logits", None)
    if isinstance(found, Tensor):
        return found, True
    while isinstance(out, list | tuple) and out:
        out = out[0]
    return (out, False) if isinstance(out, Tensor) and out.is_floating_point() else (None, False)


def rows_of(found: Tensor) -> Tensor | None:
    """The rows of the one text that went in: [1, n, V], [n, 1, V] or [n, V] become [n, V]."""
    if found.dim() == 3 and 1 in found.shape[:2]:
        return found[0] if found.shape[0] == 1 else found[:, 0]
    return found if found.dim() == 2 else None
