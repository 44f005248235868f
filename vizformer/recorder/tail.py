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

from vizformer.recorder.cells import MOVES
from vizformer.recorder.torch_calls import PRODUCTS, changed, names, tensors, works_in_place

MOST = 4096
"""The most calls that are kept; of more no output is computed again."""

_LINEAR = (
    MOVES
    | PRODUCTS
    | names("""
linear addmm add radd sub rsub neg mean sum mul rmul multiply div truediv divide setitem zero copy masked_fill identity
""")
)
_BENT = names("""
gelu silu relu tanh sigmoid erf leaky_relu elu mish hardswish softsign quick_gelu
""")


_DIVIDES = names("div truediv divide")
_MULTIPLIES = PRODUCTS | _DIVIDES | names("mul rmul multiply linear")


@dataclass(frozen=True)
class LogitShares:
    """The shares of one token's logit at one position.

    Attributes:
        names: the names of the parts: the input of the first block, then each block.
        values: their shares.
        constant: the part of the biases.
        logit: the model's own; of a model that hands back its last row alone, any other row's is what the calls after the
            last block give.
        error: the difference between the sum of all parts and the logit.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    constant: float
    logit: float
    error: float


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

    @classmethod
    def of(cls, x: Tensor) -> "Tail":
        """A tail that begins with x."""
        made = cls()
        made.begin(x)
        return made

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
        if not self._next or len(self._calls) >= MOST or not any(x in self._numbers for x in given):
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
            return found[one.number]

        for call in self._calls:
            args, kwargs = changed(call.args, fill, _Place), changed(call.kwargs, fill, _Place)
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


# A logit as the sum of the contributions of all blocks, for any model whose calls after the last block allow it.
#
#     logit = c + sum_b  g . (x_b - x_{b-1})         x_b: the stream at the end of block b
#
# The calls after the last block run again with everything nonlinear in the stream held constant: the divisor of a
# norm, the ratio f(a) / a of an activation. Then the logit is linear in the last stream, g is its gradient, and c is
# the part of the biases. These are the terms of a sum, not causal effects.
#
# Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
class Frozen:
    """Runs calls with nonlinear factors held constant, so that no gradient passes through them."""

    def __init__(self, root: Tensor) -> None:
        self.root = root
        self._bent: Any = WeakIdKeyDictionary()

    def _lives(self, x: Tensor) -> bool:
        return x.requires_grad and (x is self.root or not x.is_leaf)

    def __call__(self, call: Kept, args: Any, kwargs: Any) -> Any:
        constant = lambda x: x if self._lives(x) else x.detach()  # noqa: E731
        args, kwargs = changed(args, constant), changed(kwargs, constant)
        live = [x for x in tensors((args, kwargs), 3) if self._lives(x)]
        bent = any(x in self._bent for x in live)
        if not live:
            return call.func(*args, **kwargs)
        if call.name in ("layer_norm", "rms_norm"):
            out = self._norm(call, args, kwargs)
        elif call.name in _BENT:
            x, y = live[0], call.func(*args, **kwargs).detach()
            ratio = torch.where(x == 0, torch.zeros_like(y), y / x.detach())
            out, bent = x * ratio, True
        elif call.name not in _LINEAR:
            out = changed(call.func(*args, **kwargs), lambda x: x.detach())
        elif len(live) > 1 and call.name in _MULTIPLIES:
            out = self._both(call, args, kwargs, live)
        elif call.name in _DIVIDES and live[0] is not args[0]:
            out = call.func(*args, **kwargs).detach()
        else:
            out = call.func(*args, **kwargs)
        for x in tensors(out, 3):
            if bent and self._lives(x):
                self._bent[x] = True
        return out

    def _both(self, call: Kept, args: Any, kwargs: Any, live: list[Tensor]) -> Any:
        """A product of two tensors that depend on the stream. If one of them came through a nonlinear call, it is held
        constant, else the product is.
        """
        held = [x for x in live if x in self._bent]
        if call.name in _DIVIDES:
            held = [live[1]]
        if len(held) != 1 or len(live) != 2 or live[0] is live[1]:
            return call.func(*args, **kwargs).detach()
        keep = lambda x: x.detach() if x is held[0] else x  # noqa: E731
        return call.func(*changed(args, keep), **changed(kwargs, keep))

    def _norm(self, call: Kept, args: Any, kwargs: Any) -> Tensor:
        """(x - mean) / deviation * weight + bias with the deviation held constant; in RMSNorm without the mean."""
        biased = ("bias",) if call.name == "layer_norm" else ()
        names = ("input", "normalized_shape", "weight", *biased, "eps")
        said = dict(zip(names, args, strict=False)) | kwargs
        x: Tensor = said["input"]
        shape = said["normalized_shape"]
        dims = list(range(-len(shape), 0)) if isinstance(shape, list | tuple | torch.Size) else [-1]
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        eps = said.get("eps", 1e-5 if call.name == "layer_norm" else None)
        eps = torch.finfo(wide.dtype).eps if eps is None else eps
        moved = wide - wide.mean(dims, keepdim=True) if call.name == "layer_norm" else wide
        out = moved * torch.rsqrt(moved.pow(2).mean(dims, keepdim=True) + eps).detach()
        out = out if said.get("weight") is None else out * said["weight"]
        out = out if said.get("bias") is None else out + said["bias"]
        return out.to(x.dtype)
