"""What each head writes into the stream: the calls between z and the sum, run again with the z of one head alone.

    o_h = out(z with that of other heads 0) - out(0)        sum_h o_h + out(0) = what the attention brings

The last line is tried; where it does not hold (a norm stands between), no head has a share of its own.
"""

from typing import TYPE_CHECKING, Any

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
    """Keeps the calls behind each z, up to the sum with something that is not made of it."""

    def __init__(self, model: nn.Module, edits: Any = (), batch: int | None = None) -> None:
        super().__init__(model, edits, batch)
        self.behind: list[tuple[Call, Tail, tuple[int, ...]]] = []
        self._ends: dict[int, Tensor] = {}
        self._made: list[Any] = []
        self._stream: Any = WeakIdKeyDictionary()
        self._first = 0  # of `behind` in the block that runs
        self._kept: set[int] = set()  # whose block hands on the stream with nothing but sums in it

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
        """The calls behind the z of a call, z's shape, and what they give."""
        for number, (own, tail, shape) in enumerate(self.behind):
            same = (own.forward, own.site, own.call) == (call.forward, call.site, call.call)
            if same and number in self._ends and number in self._kept:
                return tail, shape, self._ends[number]
        return None


def writes_of(trace: "RecordedTrace") -> WritesRecorder:
    """The run of a trace once more.

    Raises:
        TraceError: the trace cannot run its model again.
    """
    if trace.again is None:
        raise TraceError(
            "Steps run the model once more, which this trace does not know how to: make it by vf.record(model, ...)."
        )
    recorder = WritesRecorder(trace.again.model, trace.again.edits, trace.again.batch)
    with torch.no_grad(), recorder:
        trace.again.run()
    return recorder


def writes_of_heads(trace: "RecordedTrace", recorder: WritesRecorder, attention: "RecordedAttention") -> Tensor | None:
    """[heads, n, d_model]: what each head brings; None where heads are separate modules, or do not sum to the whole."""
    call = attention.steps[0][0]
    found = recorder.brought(call)
    if len(attention.steps) > 1 or len(attention.steps[0]) > 1 or found is None or call.z is None:
        return None
    tail, shape, whole = found
    z = call.z

    def out(heads: list[int]) -> Tensor | None:
        given = z.new_zeros(shape)
        turned = given if call.layout is None else call.layout.of_z(given)
        for head in heads:
            at = attention._where[head][1]
            turned[tuple(np.unravel_index(at, call.lead)) if call.lead else ...] = z[at]
        made = tail.replay(given, 0)
        return None if made is None else trace.rows_like(made, call)

    nothing = out([])
    parts = [out([head]) for head in range(attention.n_heads)]
    if nothing is None or any(one is None for one in parts):
        return None
    writes = torch.stack([one - nothing for one in parts if one is not None])
    every = trace.rows_like(whole, call)
    size = max(1e-3, float(every.abs().max()))
    limit = EXACT.get(every.dtype, 1e-4) * size
    return writes if float((writes.sum(0) + nothing - every).abs().max()) <= limit else None
