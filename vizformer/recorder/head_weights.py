"""The weight matrices of the heads, found by applying the code to unit rows, without any name of a parameter.

    q_i = x_i W_Q + b_Q      k_j = x_j W_K + b_K      v_j = x_j W_V + b_V      sum_h z_h W_O,h = what the attention adds

The calls between what a product with weights reads (x) and q, k or v run again on unit rows, and so do those between z and
the stream.  Each equation is checked on the model's own rows; a matrix that does not give them (because positions turn
queries and keys, or a norm stands between) is not returned.

Of the stream x itself, in front of the norm, the same unit rows give W' with y_j = c_j x_j W' + b: every unit row has the
same deviation, so that W' is the matrix with the norm's mean and weight folded in, up to one positive factor.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from vizformer.model.head_weights import HeadWeights, Projection
from vizformer.recorder.calls import Call, Operand
from vizformer.recorder.cells import MOVES
from vizformer.recorder.chain import Node, Part, Product
from vizformer.recorder.form import EXACT
from vizformer.recorder.op_steps import again_of
from vizformer.recorder.recorder import WEIGHT, Recorder
from vizformer.recorder.tail import Tail
from vizformer.recorder.torch_calls import OPENED, PRODUCTS, SILENT, inputs, name_of, tensors

if TYPE_CHECKING:
    from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace
if TYPE_CHECKING:
    from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace


# The contribution of each head to the stream: the calls between z and the sum, run again with the z of one head alone.
#
# o_h = out(z with that of other heads 0) - out(0)        sum_h o_h + out(0) = the attention's output
#
# The last equation is checked; if it does not hold (a norm stands between), the heads have no contributions of their own.


class WritesRecorder(Recorder):
    """A recorder that also keeps the calls after each z, up to its sum with a tensor that does not depend on z."""

    def __init__(self, model: nn.Module, edits: Any = (), batch: int | None = None) -> None:
        super().__init__(model, edits, batch)
        self.behind: list[tuple[Call, Tail, tuple[int, ...]]] = []
        self._ends: dict[int, Tensor] = {}
        self._made: list[Any] = []
        self._stream: Any = WeakIdKeyDictionary()
        self._first = 0  # the first entry of `behind` in the running block
        self._kept: set[int] = set()  # the entries of `behind` whose block only adds to the stream

    def entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        given = super().entered(module, args, kwargs)
        if module in self._blocks:
            self._first = len(self.behind)
            self._stream = WeakIdKeyDictionary()
            x = next((x for x in tensors(given or (args, kwargs)) if x.is_floating_point() and x.dim() > 1), None)
            if x is not None:
                self._stream[x] = True
        return given

    def left(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        out = super().left(module, args, kwargs, out)
        if module in self._blocks:
            x = next((x for x in tensors(out) if x.is_floating_point() and x.dim() > 1), None)
            if x is not None and x in self._stream:
                self._kept |= set(range(self._first, len(self.behind)))
        return out

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        if func in OPENED or name in SILENT or not self._open:
            return super().__torch_function__(func, types, args, kwargs)
        given = inputs(args, kwargs)
        before = len(self.calls)
        out = super().__torch_function__(func, types, args, kwargs)
        if len(self.calls) > before:
            self.behind.append((self.calls[-1], Tail.of(out), tuple(out.shape)))
            self._made.append(WeakIdKeyDictionary())
            self._made[-1][out] = True
            return out
        result = args[0] if name == "setitem" else out
        carries = isinstance(result, Tensor) and (name in ("add", "radd") or name in MOVES)
        if carries and any(x in self._stream and x.shape == result.shape for x in given):
            self._stream[result] = True
        for number, (_, tail, _) in enumerate(self.behind):
            made = self._made[number]
            own = [x for x in given if x in made]
            if number in self._ends or not own:
                continue
            flows = any(x in self._stream and x.shape == own[0].shape and x not in made for x in given)
            if name in ("add", "radd") and len(own) == 1 and flows:
                tail.end(own[0])
                self._ends[number] = own[0].detach().clone()
                continue
            tail.note(func, name, given, args, kwargs, result)
            for x in tensors(result, 3):
                made[x] = True
        return out

    def brought(self, call: Call) -> tuple[Tail, tuple[int, ...], Tensor] | None:
        """The calls after the z of a call, the shape of z, and their result."""
        for number, (own, tail, shape) in enumerate(self.behind):
            same = (own.forward, own.site, own.call) == (call.forward, call.site, call.call)
            if same and number in self._ends and number in self._kept:
                return tail, shape, self._ends[number]
        return None


R = TypeVar("R", bound=WritesRecorder)


def heard_again(trace: "RecordedTrace", kind: type[R]) -> R:
    """Runs the model of a trace again, with a recorder of this kind.

    Raises:
        TraceError: the trace cannot run its model again.
    """
    again = again_of(trace)
    recorder = kind(again.model, again.edits, again.batch)
    with torch.no_grad(), recorder:
        again.run()
    return recorder


class Out:
    """The calls from the z of an attention call to the sum, as a function of the z of some heads."""

    def __init__(self, trace: "RecordedTrace", recorder: WritesRecorder, attention: "RecordedAttention") -> None:
        self._trace, self._attention = trace, attention
        self.call = attention.steps[0][0]
        alone = len(attention.steps) == 1 and len(attention.steps[0]) == 1 and self.call.z is not None
        self._found = recorder.brought(self.call) if alone else None
        self._nothing = self._out({})

    def _out(self, rows: Mapping[int, Tensor]) -> Tensor | None:
        """The attention's output [n_q, d_model] if some heads have these z [n_q, d_value] and all others 0."""
        if self._found is None or self.call.z is None:
            return None
        tail, shape, _ = self._found
        given = self.call.z.new_zeros(shape)
        turned = given if self.call.layout is None else self.call.layout.of_z(given)
        for head, own in rows.items():
            at = self._attention._where[head][1]
            turned[tuple(np.unravel_index(at, self.call.lead)) if self.call.lead else ...] = own
        made = tail.replay(given, 0)
        return None if made is None else self._trace.rows_like(made, self.call)

    def brings(self, head: int, rows: Tensor) -> Tensor | None:
        """The contribution o_h = out(z_h) - out(0) of one head with z = `rows`, [n_q, d_model]."""
        made = self._out({head: rows})
        return None if made is None or self._nothing is None else made - self._nothing

    def is_all(self, writes: Tensor, bound: float | None = None) -> bool:
        """Whether the contributions of the heads [heads, n, d_model] and out(0) sum to the attention's output."""
        if self._found is None or self._nothing is None:
            return False
        every = self._trace.rows_like(self._found[2], self.call)
        return same(writes.sum(0) + self._nothing, every, bound)


def same(one: Tensor, other: Tensor, bound: float | None = None) -> bool:
    """Whether two tensors are equal within the model's precision, or within `bound`, as a share of the largest number."""
    limit = (EXACT.get(other.dtype, 1e-4) if bound is None else bound) * max(1e-3, float(other.abs().max()))
    return float((one - other).abs().max()) <= limit


def writes_of_heads(out: Out, attention: "RecordedAttention") -> Tensor | None:
    """The contribution of each head, [heads, n, d_model]; None of an attention of several steps or calls (a module a head),
    or if it is not proved.
    """
    parts = [out.brings(head, attention.z(head)) for head in range(attention.n_heads)]
    found = [one for one in parts if one is not None]
    writes = torch.stack(found) if len(found) == len(parts) else None
    return writes if writes is not None and out.is_all(writes) else None


def writes_of_keys(out: Out, attention: "RecordedAttention", head: int, query: int) -> Tensor | None:
    """The contribution of each key of one head to the row of a query, [n_k, d_model]: a_j v_j through the same calls.

    As many keys as there are queries go through the calls at once, each in the row of another query; None if they
    do not sum to the head's contribution.
    """
    rows = (attention.pattern(head)[query][:, None] * attention.v[head]).to(attention.z(head))
    parts = []
    for some in torch.split(rows, out.call.n_q):
        made = out.brings(head, torch.nn.functional.pad(some, (0, 0, 0, out.call.n_q - len(some))))
        if made is None:
            return None
        parts.append(made[: len(some)])
    whole, writes = out.brings(head, attention.z(head)), torch.cat(parts)
    return writes if whole is not None and same(writes.sum(0), whole[query]) else None


PROVED = 1e-5  # the tolerance, as a share of the largest number of the result, in float32
_WEIGHED = PRODUCTS | {"linear", "addmm", "conv1d"}
_READ_AT_ONCE = 8  # how many of the latest inputs of products with weights are followed to q, k and v


class WeightsRecorder(WritesRecorder):
    """A recorder that also keeps the calls from the inputs of products with weights to queries, keys and values."""

    def __init__(self, model: nn.Module, edits: Any = (), batch: int | None = None) -> None:
        super().__init__(model, edits, batch)
        self.read: dict[tuple[int, str, int], dict[str, tuple[Tensor, Tail]]] = {}
        self._reading: list[tuple[Tensor, Tail]] = []
        self._from_stream: list[tuple[Tensor, Tail]] = []  # the running block's
        self.read_stream: dict[tuple[int, str, int], dict[str, tuple[Tensor, Tail]]] = {}
        self._pair: tuple[Any, Any] | None = None

    def entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        given = super().entered(module, args, kwargs)
        if module in self._blocks:
            self._from_stream = [(x, Tail.of(x)) for x in self._stream]
        return given

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        out = super().__torch_function__(func, types, args, kwargs)
        if func in OPENED or name in SILENT or not self._open:
            return out
        given = inputs(args, kwargs)
        live = [x for x in given if self._tags.get(x) is not WEIGHT and not isinstance(x, nn.Parameter)]
        if name in _WEIGHED and len(live) == 1 < len(given) and all(live[0] is not x for x, _ in self._reading):
            self._reading = [*self._reading[1 - _READ_AT_ONCE :], (live[0], Tail.of(live[0]))]
        for _, tail in (*self._reading, *self._from_stream):
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
        for read, roots in ((self.read, self._reading), (self.read_stream, self._from_stream)):
            found = read.setdefault((call.forward, call.site, call.call), {})
            for name, made in zip("qkv", operands, strict=True):
                for x, tail in reversed(roots):
                    if isinstance(made, Tensor) and x is not made and name not in found and tail.knows(made):
                        found[name] = x, tail.until(made)


def weights_of(
    trace: "RecordedTrace", recorder: WeightsRecorder, attention: "RecordedAttention", *, of_stream: bool = False
) -> HeadWeights:
    """The matrices of a site's heads, from a run that `recorder` recorded.

    Args:
        of_stream: those that read the stream at the block's beginning, up to a positive factor.
    """
    alone = len(attention.steps) == 1 == len(attention.steps[0])
    call = attention.steps[0][0]
    read = recorder.read_stream if of_stream else recorder.read
    found = read.get((call.forward, call.site, call.call), {}) if alone else {}
    q, k, v = (
        _projection(trace, attention, call, name, *found[name], of_stream) if name in found else None
        for name in ("q", "k", "v")
    )
    return HeadWeights(q, k, v, _out(Out(trace, recorder, attention), attention))


def _projection(
    trace: "RecordedTrace",
    attention: "RecordedAttention",
    call: Call,
    name: str,
    x: Tensor,
    tail: Tail,
    of_stream: bool,
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
    made = read @ weight
    proved = is_scaled(made, own - bias, _bound(own)) if of_stream else same(made + bias, own, _bound(own))
    return Projection(weight, bias[:, 0], read) if proved else None


def is_scaled(made: Tensor, own: Tensor, bound: float) -> bool:
    """Whether row j of `own` [..., n, d] is that of `made` times c_j > 0, to `bound` as a share of the largest number."""
    others = [*range(made.dim() - 2), -1]
    c = (made * own).sum(others) / made.square().sum(others)
    return bool((c > 0).all()) and same(made * c[:, None], own, bound)


def through_vocabulary(trace: "RecordedTrace", table: Tensor) -> Tensor | None:
    """W_U W_E [d_model, d_model] up to a positive factor, with W_E `table` [vocab_size, d_model].

    The calls after the last block on unit rows, W_U; None if c_j x_j W_U are not the model's own logits but for their bias.
    """
    own = trace.residual(trace.streams[-1])
    n, d = own.shape
    nothing = trace.logits_of(torch.zeros_like(own))
    at_once = n if len(nothing) == n else 1  # it hands back its last row alone
    unit, parts, made = torch.eye(d, dtype=own.dtype, device=own.device), [], torch.zeros_like(nothing)
    for at, some in enumerate(torch.split(unit, at_once)):
        rows = torch.zeros_like(own)
        rows[-len(nothing) :][: len(some)] = some
        W_U = (trace.logits_of(rows) - nothing)[: len(some)]
        made += own[-len(nothing) :, at * at_once : (at + 1) * at_once] @ W_U
        parts.append(W_U @ table.to(W_U))
    logits = trace.logits_of(own) - nothing
    return torch.cat(parts) if is_scaled(made, logits, _bound(logits)) else None


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
