"""The weight matrices of the heads, found by applying the code to unit rows, without any name of a parameter.

    q_i = x_i W_Q + b_Q      k_j = x_j W_K + b_K      v_j = x_j W_V + b_V      sum_h z_h W_O,h = what the attention adds

The calls between what a product with weights reads (x) and q, k or v run again on unit rows, and so do those between z and
the stream.  Each equation is checked on the model's own rows; a matrix that does not give them (because positions turn
queries and keys, or a norm stands between) is not returned.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from vizformer.model.head_weights import HeadWeights, Projection
from vizformer.recorder.calls import Call, Operand
from vizformer.recorder.chain import Node, Product
from vizformer.recorder.growing_rows import Part
from vizformer.recorder.head_writes import Out, WritesRecorder, same
from vizformer.recorder.recorder import WEIGHT
from vizformer.recorder.tail import Tail
from vizformer.recorder.torch_calls import OPENED, PRODUCTS, SILENT, name_of, tensors

if TYPE_CHECKING:
    from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace

PROVED = 1e-5  # the tolerance, as a share of the largest number of the result, in float32
_WEIGHED = PRODUCTS | {"linear", "addmm", "conv1d"}
_READ_AT_ONCE = 8  # how many of the latest inputs of products with weights are followed to q, k and v


class WeightsRecorder(WritesRecorder):
    """A recorder that also keeps the calls from the inputs of products with weights to queries, keys and values."""

    def __init__(self, model: nn.Module, edits: Any = (), batch: int | None = None) -> None:
        super().__init__(model, edits, batch)
        self.read: dict[tuple[int, str, int], dict[str, tuple[Tensor, Tail]]] = {}
        self._reading: list[tuple[Tensor, Tail]] = []
        self._pair: tuple[Any, Any] | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        out = super().__torch_function__(func, types, args, kwargs)
        if func in OPENED or name in SILENT or not self._open:
            return out
        given = [x for x in tensors((args, kwargs), 3) if isinstance(x, Tensor)]
        live = [x for x in given if self._tags.get(x) is not WEIGHT and not isinstance(x, nn.Parameter)]
        if name in _WEIGHED and len(live) == 1 < len(given) and all(live[0] is not x for x, _ in self._reading):
            tail = Tail()
            tail.begin(live[0])
            self._reading = [*self._reading[1 - _READ_AT_ONCE :], (live[0], tail)]
        for _, tail in self._reading:
            tail.note(func, name, given, args, kwargs, args[0] if name == "setitem" else out)
        return out

    def _sdpa(self, args: Any, kwargs: Any, source: int) -> Tensor:
        before = len(self.calls)
        out = super()._sdpa(args, kwargs, source)
        if len(self.calls) > before:
            given = dict(zip(("query", "key", "value"), args, strict=False)) | kwargs
            self._keep(given["query"], given["key"], given["value"])
        return out

    def _factors(self, best: Node, origins: list[Node], turned: bool, earlier: Call | None) -> Any:
        product = best.product
        assert isinstance(product, Product)
        self._pair = (product.b, product.a) if turned else (product.a, product.b)
        return super()._factors(best, origins, turned, earlier)

    def _close(
        self, func: Any, args: Any, kwargs: Any, out: Tensor, p: Tensor, node: Node, v: Tensor, *more: Any
    ) -> Any:
        before = len(self.calls)
        made = super()._close(func, args, kwargs, out, p, node, v, *more)
        if len(self.calls) > before:
            self._keep(*(self._pair or (None, None)), v)
        return made

    def _keep(self, *operands: Any) -> None:
        call = self.calls[-1]
        found = self.read.setdefault((call.forward, call.site, call.call), {})
        for name, made in zip("qkv", operands, strict=True):
            for x, tail in reversed(self._reading):
                if isinstance(made, Tensor) and x is not made and name not in found and tail.knows(made):
                    found[name] = x, tail.until(made)


def weights_of(trace: "RecordedTrace", recorder: WeightsRecorder, attention: "RecordedAttention") -> HeadWeights:
    """The matrices of a site's heads, from a run that `recorder` recorded."""
    alone = len(attention.steps) == 1 == len(attention.steps[0])
    call = attention.steps[0][0]
    found = recorder.read.get((call.forward, call.site, call.call), {}) if alone else {}
    q, k, v = (
        _projection(trace, attention, call, name, *found[name]) if name in found else None for name in ("q", "k", "v")
    )
    return HeadWeights(q, k, v, _out(Out(trace, recorder, attention), attention))


def _projection(
    trace: "RecordedTrace", attention: "RecordedAttention", call: Call, name: str, x: Tensor, tail: Tail
) -> Projection | None:
    operand: Operand | None = getattr(call, name)
    where = None if operand is None else operand.where(call.lead)
    if operand is None or where is None:
        return None
    wanted = where.reshape(-1)[[at for _, at in attention._where]]

    def made_of(given: Tensor) -> Tensor | None:
        """The operand of each head for these input rows, [n_heads, n, d_out]."""
        out = tail.replay(given, 0)
        if out is None or out.shape != operand.part.tensor.shape:
            return None
        return replace(operand, part=Part.of(out, 0, None)).flat()[wanted]

    own = getattr(attention, name)
    n = own.shape[1]
    unit, given = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device), torch.zeros_like(x)
    rows = trace.rows_like(given, call, n)
    nothing = made_of(given)
    if nothing is None or rows.shape != (n, x.shape[-1]):
        return None
    bias, parts = nothing[:, :1], []
    for some in torch.split(unit, n):
        rows[: len(some)] = some
        made = made_of(given)
        assert made is not None
        parts.append(made[:, : len(some)] - bias)
    weight, read = torch.cat(parts, 1), trace.rows_like(x, call, n)
    return Projection(weight, bias[:, 0], read) if same(read @ weight + bias, own, _bound(own)) else None


def _out(out: Out, attention: "RecordedAttention") -> Tensor | None:
    heads = []
    for head in range(attention.n_heads):
        z, parts = attention.z(head), []
        for some in torch.split(torch.eye(z.shape[1], dtype=z.dtype, device=z.device), len(z)):
            made = out.brings(head, torch.nn.functional.pad(some, (0, 0, 0, len(z) - len(some))))
            if made is None:
                return None
            parts.append(made[: len(some)])
        heads.append(torch.cat(parts))
    matrices, z = torch.stack(heads), torch.stack([attention.z(head) for head in range(attention.n_heads)])
    return matrices if out.is_all(z @ matrices, _bound(z)) else None


def _bound(x: Tensor) -> float:
    return max(PROVED, 8 * torch.finfo(x.dtype).eps)
