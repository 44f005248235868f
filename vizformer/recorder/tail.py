"""The calls after the last block, kept so that they run again on any stream: the logit lens, with no name known.

    logits = head(norm(x))        x: the stream at the end of the last block, or of any other

Only calls that read something made of the stream are kept, without their numbers; what else they read (weights) is kept as
it is.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from vizformer.recorder.torch_calls import changed, tensors, works_in_place

MOST = 4096
"""Calls that are kept at most."""


@dataclass(frozen=True)
class _Place:
    """A tensor that is made of the stream, by its number."""

    number: int


@dataclass(frozen=True, eq=False)
class Kept:
    """A call, with a place for each tensor that is made of the stream."""

    func: Callable[..., Any]
    name: str
    args: Any
    kwargs: Any
    outs: tuple[int, ...]
    autocast: tuple[str, torch.dtype] | None


class Tail:
    """What ran after the block that ended last."""

    def __init__(self) -> None:
        self._numbers: Any = WeakIdKeyDictionary()
        self._calls: list[Kept] = []
        self._next = 0
        self._answers: tuple[int, ...] = ()

    def begin(self, x: Tensor) -> None:
        """A block ends with this stream."""
        self.clear()
        self._number(x)

    def clear(self) -> None:
        self._numbers, self._calls, self._next, self._answers = WeakIdKeyDictionary(), [], 0, ()

    def _number(self, x: Tensor) -> int:
        self._numbers[x] = self._next
        self._next += 1
        return self._next - 1

    def note(self, func: Any, name: str, given: list[Tensor], args: Any, kwargs: Any, made: Any) -> None:
        """A call outside of all blocks."""
        if not self._next or len(self._calls) > MOST or not any(x in self._numbers for x in given):
            return

        def fill(x: Tensor) -> Any:
            number = self._numbers.get(x)
            return x if number is None else _Place(number)

        device = given[0].device.type
        auto = (device, torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else None
        args, kwargs = changed(args, fill), changed(kwargs, fill)
        outs = tuple(self._number(x) for x in tensors(made, 3))
        self._calls.append(Kept(func, name, args, kwargs, outs, auto))

    def end(self, out: Any) -> None:
        """The model hands this back."""
        self._answers = tuple(self._numbers.get(x, -1) for x in tensors(out))
        self._numbers = WeakIdKeyDictionary()

    def knows(self, x: Tensor) -> bool:
        """Whether it is made of the stream."""
        return x in self._numbers

    def until(self, x: Tensor) -> "Tail":
        """The calls so far, which end with this tensor."""
        made = Tail()
        made._calls, made._answers = list(self._calls), (self._numbers[x],)
        return made

    def replay(self, x: Tensor, answer: int) -> Tensor | None:
        """The tensor of this number in what the model hands back; None where it is not made by these calls alone."""

        def run(call: Kept, args: Any, kwargs: Any) -> Any:
            return call.func(*args, **kwargs)

        with torch.no_grad():
            return self.run_again(x.clone(), answer, run)

    def run_again(self, x: Tensor, answer: int, run: Callable[[Kept, Any, Any], Any]) -> Tensor | None:
        """`replay` by another way of running a call, which gets its arguments."""
        if answer >= len(self._answers) or self._answers[answer] < 0:
            return None
        found: dict[int, Tensor] = {0: x}

        def fill(one: Any) -> Any:
            return found[one.number] if isinstance(one, _Place) else one

        for call in self._calls:
            args, kwargs = _filled(call.args, fill), _filled(call.kwargs, fill)
            if works_in_place(call.func):  # what it changes is read again elsewhere
                args = (args[0].clone(), *args[1:])
            device, dtype = call.autocast or ("cpu", torch.bfloat16)
            with torch.autocast(device, dtype=dtype) if call.autocast else nullcontext():
                out = run(call, args, kwargs)
            made = [args[0]] if call.name == "setitem" else list(tensors(out, 3))
            if len(made) != len(call.outs):
                return None
            found |= dict(zip(call.outs, made, strict=True))
        return found[self._answers[answer]]


def _filled(value: Any, fill: Callable[[Any], Any]) -> Any:
    """Arguments with a tensor for each place in them."""
    if isinstance(value, _Place):
        return fill(value)
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        made = [_filled(one, fill) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        return {name: _filled(one, fill) for name, one in value.items()}
    if isinstance(value, slice):
        return slice(*(_filled(one, fill) for one in (value.start, value.stop, value.step)))
    return value
