"""What a model of `transformers` attends with, by other means than the recorder's: a second witness, for tests alone."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Seen:
    """Of one attention call of the first text: the module's name (empty where it is not known), map and z of its heads."""

    site: str
    weights: Tensor | None
    z: Tensor | None


def witnessed(model: nn.Module, given: dict[str, Any]) -> tuple[str, list[Seen]]:
    """Runs an eager model: what its own eager function was handed and made ("interface"), or the maps that it hands back
    ("returned")."""
    seen: list[Seen] = []
    with _listening(model, seen), torch.no_grad():
        model(**given)
    if seen:
        return "interface", seen
    try:
        with torch.no_grad():
            out = model(**given, output_attentions=True)
    except (TypeError, ValueError, RuntimeError):
        return "", []
    for field in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"):
        for weights in _maps(getattr(out, field, None)):
            if float(weights.min()) < 0:  # squeezebert hands back scores
                return "", []
            seen.append(Seen("", weights[0].detach(), None))
    return ("returned", seen) if seen else ("", [])


def _maps(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor) and value.dim() == 4:
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _maps(one)


@contextmanager
def _listening(model: nn.Module, seen: list[Seen]) -> Iterator[None]:
    """In the place of "eager" stands a function that lets the module's own compute, and keeps what it made."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    names = {id(module): name for name, module in model.named_modules()}

    def keep(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Any:
        z, weights = _own_eager(module)(module, query, key, value, *args, **kwargs)
        rows = z if z.dim() == 4 else z.view(*z.shape[:2], query.shape[1], -1)
        if weights is not None:  # some hand back others than those that multiply v
            v = value.repeat_interleave(query.shape[1] // value.shape[1], 1)
            again = (weights.to(v.dtype) @ v).transpose(1, 2)
            if again.shape != rows.shape or not torch.allclose(again, rows, rtol=1e-4, atol=1e-5):
                weights = None
        maps = None if weights is None else weights[0].detach()
        seen.append(Seen(names.get(id(module), ""), maps, rows[0].transpose(0, 1).detach().clone()))
        return z, weights

    ALL_ATTENTION_FUNCTIONS["eager"] = keep
    try:
        yield
    finally:
        del ALL_ATTENTION_FUNCTIONS["eager"]


def _own_eager(module: nn.Module) -> Any:
    """The function that the module itself would have called: that of the file of its class, or of a class below it."""
    for cls in type(module).__mro__:
        found = getattr(sys.modules.get(cls.__module__), "eager_attention_forward", None)
        if found is not None:
            return found
    raise LookupError(type(module).__name__)
