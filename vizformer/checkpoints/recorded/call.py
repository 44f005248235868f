"""How a module is handed its token ids, and what of its answer are logits."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

Run = Callable[..., Any]
"""`run(model, ids)`, of an encoder-decoder `run(model, ids, target_ids)`, ids [1, n]: runs the model once."""


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
