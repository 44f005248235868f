"""Hooks on modules, which call the recorder of the thread that runs the module, if there is one.

Hooks are set on a model's modules once and stay.  What records lies in a variable of the thread, so that another thread
that runs the same model meanwhile computes what it would compute alone.  They stay also because of what they cost: with
hooks `nn.TransformerEncoder` does not take its fused path, whose numbers differ in the last digits; if they came and went,
a run would depend on who else records.
"""

import threading
from typing import Any, Protocol

from torch import nn

_lock = threading.Lock()


class Hearer(Protocol):
    def entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...
    def left(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any: ...
    def elsewhere(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...


class _Here(threading.local):
    recorder: Hearer | None = None


here = _Here()
recording: set[Hearer] = set()
"""The recorders of all threads."""


def entering(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if here.recorder is not None:
        return here.recorder.entered(module, args, kwargs)
    for one in tuple(recording):
        one.elsewhere(module, args, kwargs)
    return None


def leaving(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    return None if here.recorder is None else here.recorder.left(module, args, kwargs, out)


def listen(modules: list[nn.Module]) -> None:
    """Sets the hooks on modules that have none."""
    with _lock:
        for module in modules:
            if entering not in module._forward_pre_hooks.values():
                module.register_forward_pre_hook(entering, with_kwargs=True, prepend=True)
                module.register_forward_hook(leaving, with_kwargs=True, always_call=True)


def forget(model: nn.Module) -> None:
    """Removes the hooks from a model that is no longer recorded; no thread may be running it.

    `nn.TransformerEncoder` then takes its fused path again. The next recording sets new hooks.
    """
    with _lock:
        for module in model.modules():
            for hooks, known in (
                (module._forward_pre_hooks, module._forward_pre_hooks_with_kwargs),
                (module._forward_hooks, module._forward_hooks_with_kwargs),
            ):
                for key in [key for key, hook in hooks.items() if hook in (entering, leaving)]:
                    del hooks[key]
                    known.pop(key, None)
                    module._forward_hooks_always_called.pop(key, None)
