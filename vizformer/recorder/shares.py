"""A logit as the sum of the contributions of all blocks, for any model whose calls after the last block allow it.

    logit = c + sum_b  g . (x_b - x_{b-1})         x_b: the stream at the end of block b

The calls after the last block run again with everything nonlinear in the stream held constant: the divisor of a norm,
the ratio f(a) / a of an activation.  Then the logit is linear in the last stream, g is its gradient, and c is the part
of the biases.  These are the terms of a sum, not causal effects.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from vizformer.recorder.cells import MOVES
from vizformer.recorder.tail import Kept
from vizformer.recorder.torch_calls import PRODUCTS, changed, tensors

_LINEAR = MOVES | PRODUCTS | {
    "linear", "addmm", "add", "radd", "sub", "rsub", "neg", "mean", "sum", "mul", "rmul", "multiply", "div", "truediv",
    "divide", "setitem", "zero", "copy", "masked_fill", "identity",
}  # fmt: skip
_BENT = frozenset(
    {
        "gelu",
        "silu",
        "relu",
        "tanh",
        "sigmoid",
        "erf",
        "leaky_relu",
        "elu",
        "mish",
        "hardswish",
        "softsign",
        "quick_gelu",
    }
)


@dataclass(frozen=True)
class LogitShares:
    """The shares of one token's logit at one position.

    Attributes:
        names: the names of the parts: the input of the first block, then each block.
        values: their shares.
        constant: the part of the biases.
        logit: the model's own.
        error: the difference between the sum of all parts and the logit.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    constant: float
    logit: float
    error: float


class Frozen:
    """Runs calls with nonlinear factors held constant, so that no gradient passes through them."""

    def __init__(self, root: Tensor) -> None:
        self.root = root
        self._bent: Any = WeakIdKeyDictionary()
        self.held: dict[str, None] = {}

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
            self.held[call.name] = None
            x, y = live[0], call.func(*args, **kwargs).detach()
            ratio = torch.where(x == 0, torch.zeros_like(y), y / x.detach())
            out, bent = x * ratio, True
        elif call.name not in _LINEAR:
            self.held[call.name] = None
            out = changed(call.func(*args, **kwargs), lambda x: x.detach())
        elif len(live) > 1 and call.name in PRODUCTS | {
            "mul",
            "rmul",
            "multiply",
            "div",
            "truediv",
            "divide",
            "linear",
        }:
            out = self._both(call, args, kwargs, live)
        elif call.name in ("div", "truediv", "divide") and live[0] is not args[0]:
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
        if call.name in ("div", "truediv", "divide"):
            held = [live[1]]
        self.held[call.name] = None
        if len(held) != 1 or len(live) != 2 or live[0] is live[1]:
            return call.func(*args, **kwargs).detach()
        keep = lambda x: x.detach() if x is held[0] else x  # noqa: E731
        return call.func(*changed(args, keep), **changed(kwargs, keep))

    def _norm(self, call: Kept, args: Any, kwargs: Any) -> Tensor:
        """(x - mean) / deviation * weight + bias with the deviation held constant; in RMSNorm without the mean."""
        self.held[call.name] = None
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
