"""Which recorder hears of a module: the one of the thread that runs it, and none where that thread records nothing.

Hooks are set on a model's modules once and stay.  What records lies in a variable of the thread, so that another thread
that runs the same model meanwhile computes what it would compute alone.
"""

import threading
from typing import Any, Protocol

from torch import nn

_lock = threading.Lock()


class Hearer(Protocol):
    def entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...
    def left(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any: ...


class _Here(threading.local):
    recorder: Hearer | None = None


here = _Here()


def entering(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return None if here.recorder is None else here.recorder.entered(module, args, kwargs)


def leaving(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    return None if here.recorder is None else here.recorder.left(module, args, kwargs, out)


def listen(modules: list[nn.Module]) -> None:
    """Sets the hooks on modules that have none yet."""
    with _lock:
        for module in modules:
            if entering not in module._forward_pre_hooks.values():
                module.register_forward_pre_hook(entering, with_kwargs=True, prepend=True)
                module.register_forward_hook(leaving, with_kwargs=True, always_call=True)
