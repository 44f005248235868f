"""The contribution of each head to the stream: the calls between z and the sum, run again with the z of one head alone.

    o_h = out(z with that of other heads 0) - out(0)        sum_h o_h + out(0) = the attention's output

The last equation is checked; if it does not hold (a norm stands between), the heads have no contributions of their own.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from vizformer.errors import TraceError
from vizformer.recorder.calls import Call
from vizformer.recorder.cells import MOVES
from vizformer.recorder.proof import EXACT
from vizformer.recorder.recorder import Recorder
from vizformer.recorder.tail import Tail
from vizformer.recorder.torch_calls import OPENED, SILENT, name_of, tensors

if TYPE_CHECKING:
    from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace


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
        given = [x for x in tensors((args, kwargs), 3) if isinstance(x, Tensor)]
        before = len(self.calls)
        out = super().__torch_function__(func, types, args, kwargs)
        if len(self.calls) > before:
            tail = Tail()
            tail.begin(out)
            self.behind.append((self.calls[-1], tail, tuple(out.shape)))
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
    if trace.again is None:
        raise TraceError(
            "Steps run the model once more, which this trace does not know how to: make it by vf.record(model, ...)."
        )
    recorder = kind(trace.again.model, trace.again.edits, trace.again.batch)
    with torch.no_grad(), recorder:
        trace.again.run()
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
    """The contribution of each head, [heads, n, d_model]; None if heads are separate modules, or if it is not proved."""
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
