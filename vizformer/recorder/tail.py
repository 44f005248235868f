"""The calls after the last block, kept so that they run again on any stream: the logit lens, without any known name.

    logits = head(norm(x))        x: the stream at the end of the last block, or of any other

Only calls that depend on the stream are kept, without their numbers; their other inputs (weights) are kept as
they are.
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
"""The most calls that are kept."""


@dataclass(frozen=True)
class _Place:
    """The place of a tensor that depends on the stream, given by its number."""

    number: int


@dataclass(frozen=True, eq=False)
class Kept:
    """A call, with a `_Place` for each tensor that depends on the stream."""

    func: Callable[..., Any]
    name: str
    args: Any
    kwargs: Any
    outs: tuple[int, ...]
    autocast: tuple[str, torch.dtype] | None


class Tail:
    """The calls after the latest end of a block."""

    def __init__(self) -> None:
        self._numbers: Any = WeakIdKeyDictionary()
        self._calls: list[Kept] = []
        self._next = 0
        self._answers: tuple[int, ...] = ()

    def begin(self, x: Tensor) -> None:
        """Starts a new tail: a block has ended with the stream x."""
        self.clear()
        self._number(x)

    def clear(self) -> None:
        self._numbers, self._calls, self._next, self._answers = WeakIdKeyDictionary(), [], 0, ()

    def _number(self, x: Tensor) -> int:
        self._numbers[x] = self._next
        self._next += 1
        return self._next - 1

    def note(self, func: Any, name: str, given: list[Tensor], args: Any, kwargs: Any, made: Any) -> None:
        """Keeps a call outside all blocks, if it depends on the stream."""
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
        """Notes the output of the model."""
        self._answers = tuple(self._numbers.get(x, -1) for x in tensors(out))
        self._numbers = WeakIdKeyDictionary()

    def knows(self, x: Tensor) -> bool:
        """Whether x depends on the stream."""
        return x in self._numbers

    def until(self, x: Tensor) -> "Tail":
        """A copy of the tail up to now, with x as its output."""
        made = Tail()
        made._calls, made._answers = list(self._calls), (self._numbers[x],)
        return made

    def replay(self, x: Tensor, answer: int) -> Tensor | None:
        """The output of index `answer`, recomputed for the stream x; None if these calls alone do not give it."""

        def run(call: Kept, args: Any, kwargs: Any) -> Any:
            return call.func(*args, **kwargs)

        with torch.no_grad():
            return self.run_again(x.clone(), answer, run)

    def run_again(self, x: Tensor, answer: int, run: Callable[[Kept, Any, Any], Any]) -> Tensor | None:
        """`replay` with `run` in place of plain calls; it gets each call and its arguments."""
        if answer >= len(self._answers) or self._answers[answer] < 0:
            return None
        found: dict[int, Tensor] = {0: x}

        def fill(one: Any) -> Any:
            return found[one.number] if isinstance(one, _Place) else one

        for call in self._calls:
            args, kwargs = _filled(call.args, fill), _filled(call.kwargs, fill)
            if works_in_place(call.func):  # another call reads the tensor that it changes
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
    """The arguments with each `_Place` replaced by a tensor."""
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
