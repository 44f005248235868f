"""A recorder of the calls in one block: a first run notes which they are, a second run keeps the numbers that are needed.

The first run keeps only names, shapes and which call reads which result: from these follows what a head and a query need
of each tensor (`cells`).  The second run keeps these numbers alone and recomputes each call from them in float64.
"""

import linecache
import site
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from vizformer.recorder.calls import Call
from vizformer.recorder.cells import CELLWISE, MOVES, Index, Value, is_sliced, taken, values
from vizformer.recorder.chain import Node
from vizformer.recorder.edits import HeadEdit, StreamEdit
from vizformer.recorder.recorder import Recorder
from vizformer.recorder.torch_calls import (
    OPENED,
    PRODUCTS,
    SDPA,
    SILENT,
    VIEWS,
    changed,
    inputs,
    name_of,
    names,
    tensors,
    works_in_place,
)

# The line of the author's own code that made a call: file, line number and text, which is read and never run.

LONGEST = 160  # characters of a line that are shown
_MOST_LINES = 6  # the most lines of one expression
_TORCH = str(Path(sys.modules["torch"].__file__ or "").parent) if "torch" in sys.modules else ""
_OWN = str(Path(__file__).parent)


@dataclass(frozen=True)
class Source:
    """A place in a program.

    Attributes:
        file: its path within the folder of packages or of the work, or its bare name.
        line: counted from 1.
        text: the words of the line; of an expression over several lines all of these, a space for each break.
        part: the expression within them that made the call; "" if Python does not know it.
    """

    file: str
    line: int
    text: str
    part: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller(outermost: FrameType | None) -> Source | None:
    """The innermost line outside torch, einops and this package, within the call of the model; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not outermost:
        if not _is_inside(frame.f_code.co_filename):
            return _source(frame)
        frame = frame.f_back
    return None


@cache
def _is_inside(file: str) -> bool:
    return file.startswith((_TORCH, _OWN)) or "/einops/" in file.replace("\\", "/")


def _source(frame: FrameType) -> Source:
    file = frame.f_code.co_filename
    positions = list(frame.f_code.co_positions())
    at = frame.f_lasti // 2
    first, last, start, end = positions[at] if at < len(positions) else (None, None, None, None)
    first, last = first or frame.f_lineno, last or frame.f_lineno
    lines = [linecache.getline(file, number) for number in range(first, min(last, first + _MOST_LINES - 1) + 1)]
    part = ""
    if start is not None and end is not None and last - first < _MOST_LINES and all(lines):
        cut = [line.encode() for line in lines]  # columns are bytes
        cut[-1] = cut[-1][:end]
        cut[0] = cut[0][start:]
        part = _joined(one.decode(errors="replace") for one in cut)
    return Source(_shown(file), first, _joined(lines), part)


def _joined(lines: object) -> str:
    text = " ".join(line.strip() for line in lines).strip()  # type: ignore[attr-defined]
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


@cache
def _shown(file: str) -> str:
    """A path without the folders above the packages or the working directory, which are private."""
    path = Path(file)
    for above in (*site.getsitepackages(), sysconfig.get_paths()["stdlib"], str(Path.cwd())):
        if path.is_relative_to(above):
            return path.relative_to(above).as_posix()
    return path.name


PRECISE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 2.0**-5, torch.float16: 2.0**-8}
"""The tolerance of a recomputed number, as a share of the terms that it is computed from, of at least 1."""

_MADE = names("""
zeros_like ones_like full_like empty_like rand_like randn_like new_zeros new_ones new_full new_empty new_tensor
""")
_KNOWN = 2**20  # numbers of an index that is kept
_WIDE = 2**26  # numbers of operands that are computed again where a call cannot be cut


@dataclass(eq=False)
class Op:
    """One call of torch, with a `Value` for each tensor in its arguments."""

    number: int
    func: Any
    name: str
    args: Any
    kwargs: Any
    outs: list[Value]
    module: str
    closes: Call | None = None
    product: bool = False  # whether it is the product of queries and keys
    softmax: bool = False

    @property
    def is_move(self) -> bool:
        return self.name in MOVES


@dataclass(eq=False)
class Span:
    """The calls in one run of a block."""

    name: str
    number: int  # the index of this run of the block
    forward: int
    ops: list[Op] = field(default_factory=list)
    entries: list[Value] = field(default_factory=list)  # the tensors that came from outside the block
    end: Value | None = None  # the output of the block


@dataclass(frozen=True, eq=False)
class Numbers:
    """The kept cells of a tensor: their positions in the whole tensor of shape `shape`, and their values.

    Attributes:
        x: the values; None if they are too many to keep.
    """

    shape: tuple[int, ...]
    cells: Index
    x: Tensor | None


@dataclass(frozen=True, eq=False)
class Proved:
    """The second run's result for one call.

    Attributes:
        operands: the numbers of each tensor among the arguments, in order.
        result: the numbers of its result.
        error: the difference between the result and the same call in float64; None if that cannot be computed.
        reason: why it cannot be computed.
        holds: whether the error is within the tolerance of the model's precision (`PRECISE`).
    """

    operands: tuple[Numbers, ...]
    result: Numbers
    error: float | None
    holds: bool
    reason: str
    source: Source | None
    call: Call | None = None


class OpRecorder(Recorder):
    """A recorder that notes the calls within one module; with a plan it keeps the numbers that the plan names."""

    def __init__(
        self,
        model: nn.Module,
        inside: str,
        edits: Sequence[HeadEdit | StreamEdit] = (),
        plan: Mapping[tuple[int, int], tuple[list[tuple[Value, Index]], int, Index]] | None = None,
        room: int = 0,
        batch: int | None = None,
    ) -> None:
        super().__init__(model, edits, batch)
        self.inside, self.plan = inside, plan
        self.spans: list[Span] = []
        self.proved: dict[tuple[int, int], Proved] = {}
        self.room, self.most = room, room // 16
        self._span: Span | None = None
        self._depth_inside = 0
        self._values: Any = WeakIdKeyDictionary()
        self._products: dict[Node, Op] = {}
        self._outermost: FrameType | None = None
        self._weights: dict[int, str] = {}
        for name, parameter in (*model.named_parameters(remove_duplicate=False), *model.named_buffers()):
            self._weights.setdefault(id(parameter), name)

    # the module that is looked at -----------------------------------------------------------------------------

    def entered(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        if not self._open:
            self._outermost = sys._getframe(2)  # the frame of the model's call, which calls the hook
        given = super().entered(module, args, kwargs)
        if self._names.get(module) == self.inside and self._open:
            if self._span is None:
                with torch._C.DisableTorchFunction():  # a hook runs outside of the mode
                    self._begin(*(given or (args, kwargs)))
            self._depth_inside += 1
        return given

    def _begin(self, args: Any, kwargs: Any) -> None:
        number = sum(one.name == self.inside for one in self.spans)
        self._span = Span(self.inside, number, self.forward)
        self._values.clear()
        found = [x for x in tensors((args, kwargs)) if x.is_floating_point() and x.dim() > 1]
        for at, x in enumerate(found):
            value = self._value(x)
            if at == 0:
                value.stream = value.of_text = True
            elif not self._bits and value.shape[-1:] == self._value(found[0]).shape[-1:]:
                value.of_text = not value.weight

    def left(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        own = self._names.get(module) == self.inside and self._span is not None
        changed_out = super().left(module, args, kwargs, out)
        if own and self._span is not None:
            self._depth_inside -= 1
            if not self._depth_inside:
                x = next((x for x in tensors(changed_out) if x.is_floating_point() and x.dim() > 1), None)
                self._span.end = None if x is None else self._values.get(x)
                self.spans.append(self._span)
                self._span = None
        return changed_out

    def _end(self, broken: bool) -> None:
        super()._end(broken)
        self._values.clear()
        self._products.clear()
        self._outermost = None

    # its calls ------------------------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        if self._span is None or func in OPENED or name in SILENT:
            return super().__torch_function__(func, types, args, kwargs)
        given = inputs(args, kwargs)
        read = [self._value(x) for x in given]
        span = self._span
        key = (span.number, len(span.ops))
        plan = None if self.plan is None else self.plan.get(key)
        cut = None if plan is None else self._cut(name, func, args, kwargs, plan[0], given)
        calls = len(self.calls)
        out = super().__torch_function__(func, types, args, kwargs)
        closes = self.calls[-1] if len(self.calls) > calls else None
        made = [args[0]] if name == "setitem" else list(tensors(out, 3))
        if not made or self._span is not span:
            return out
        as_values = changed(args, self._value), changed(kwargs, self._value)
        op = Op(len(span.ops), func, name, *as_values, [], self._site, closes)
        op.outs = [self._made(x, op, read) for x in made]
        if self.plan is None:
            self._mark(op, made)
        span.ops.append(op)
        if plan is not None and cut is not None:
            self.proved[key] = self._prove(op, cut, made[plan[1]], plan[2])
        return out

    def _value(self, x: Tensor) -> Value:
        """The value of a tensor; a new one if the tensor comes from outside the block."""
        found: Value | None = self._values.get(x)
        if found is None:
            base = x._base if not x.is_inference() else None
            weight = self._weights.get(id(x)) or self._weights.get(id(base), "")
            weight = weight or ("-" if isinstance(x, nn.Parameter) else "")
            known = x.detach() if not x.is_floating_point() and x.numel() <= _KNOWN else None
            found = Value(tuple(x.shape), x.dtype, None, not weight and self._source(x) > 0, weight, known=known)
            self._values[x] = found
            if self._span is not None:
                self._span.entries.append(found)
        return found

    def _made(self, x: Tensor, op: Op, read: Sequence[Value]) -> Value:
        of_text = op.name not in _MADE and any(one.of_text for one in read) and x.is_floating_point()
        weight = read[0].weight if read and op.name in VIEWS and all(one.weight for one in read) else ""
        known = x.detach() if not x.is_floating_point() and x.numel() <= _KNOWN else None
        made = Value(tuple(x.shape), x.dtype, op.number, of_text, weight, known=known)
        if op.name in ("add", "radd") or op.is_move:  # a moved stream is still the stream
            of = [one for one in read if one.of_text]
            made.stream = (
                any(one.stream and one.shape == made.shape for one in of)
                and len(of) == (1 if op.is_move else 2)
                and all(one.shape == made.shape for one in of)
            )
        self._values[x] = made
        return made

    def _mark(self, op: Op, made: list[Tensor]) -> None:
        tag = self._tags.get(made[0])
        if isinstance(tag, Node):
            if tag.product is not None:
                self._products[tag] = op
            op.softmax = tag.normal is not None and all(one.normal is None for one in tag.before)
        if op.closes is not None and op.closes.best in self._products:
            self._products[op.closes.best].product = True

    # their numbers --------------------------------------------------------------------------------------------

    def _cut(
        self, name: str, func: Any, args: Any, kwargs: Any, asked: list[tuple[Value, Index]], given: list[Tensor]
    ) -> tuple[Any, Any, list[tuple[Tensor, Index]], bool]:
        """The arguments in float64 for recomputing the call, and the needed cells of each tensor unchanged."""
        sliced = is_sliced(name, args, kwargs) and func is not SDPA
        whole = sum(x.numel() for x in given) <= _WIDE
        cells = [at for _, at in asked]
        kept: list[tuple[Tensor, Index]] = []
        order = iter(range(len(given)))

        def fill(x: Tensor) -> Tensor:
            number = next(order)
            at = cells[number]
            part = taken(x.detach(), at).clone()
            kept.append((part, at))
            used = part if sliced else x.detach().clone() if whole and func is not SDPA else part
            return used.double() if used.is_floating_point() else used

        return changed(args, fill), changed(kwargs, fill), kept, sliced

    def _prove(self, op: Op, cut: Any, made: Tensor, at: Index) -> Proved:
        args, kwargs, kept, sliced = cut
        result = taken(made.detach(), at).clone()
        error, holds, reason = None, False, ""
        if op.func is not SDPA:
            try:
                pick = next((number for number, one in enumerate(op.outs) if self._values.get(made) is one), 0)
                again, terms = _again(op, args, kwargs, pick)
                again, terms = (again, terms) if sliced else (taken(again, at), taken(terms, at))
                error, holds = difference(result, again, terms)
            except (RuntimeError, TypeError, NotImplementedError, ValueError, IndexError) as raised:
                reason = str(raised).partition("\n")[0][:200] or type(raised).__name__
        operands = tuple(
            self._kept(x, index, value.shape)
            for (x, index), value in zip(kept, values((op.args, op.kwargs)), strict=True)
        )
        where = caller(self._outermost)
        return Proved(operands, self._kept(result, at, tuple(made.shape)), error, holds, reason, where, op.closes)

    def _kept(self, x: Tensor, at: Index, shape: tuple[int, ...]) -> Numbers:
        """The numbers, if there is room for them."""
        size = x.numel() * x.element_size()
        if size > min(self.room, self.most):
            return Numbers(shape, at, None)
        self.room -= size
        return Numbers(shape, at, x)


def _again(op: Op, args: Any, kwargs: Any, pick: int) -> tuple[Tensor, Tensor]:
    """The result of a call in float64, and the size of the terms that it is computed from."""

    def wide(one: Any) -> Any:
        return torch.float64 if isinstance(one, torch.dtype) and one.is_floating_point else one

    def positive(x: Tensor) -> Tensor:
        return x.abs() if x.is_floating_point() else x

    args, kwargs = tuple(wide(one) for one in args), {name: wide(one) for name, one in kwargs.items()}
    with torch.no_grad():
        sizes = None
        if op.name in PRODUCTS or op.name in ("linear", "addmm", "sum", "mean"):
            sizes = op.func(*changed(args, positive), **changed(kwargs, positive))
        elif op.name in CELLWISE:
            floats = [x.abs() for x in tensors((args, kwargs), 3) if x.is_floating_point()]
            sizes = torch.stack(list(torch.broadcast_tensors(*floats))).amax(0)  # type: ignore[no-untyped-call]
        if works_in_place(op.func):
            args = (args[0].clone(), *args[1:])
        out = op.func(*args, **kwargs)
        out = args[0] if op.name == "setitem" else out
        if not isinstance(out, Tensor):
            out = list(tensors(out, 3))[pick]
        out = out.double()
        sizes = out.abs() if sizes is None else torch.maximum(sizes.double().abs().expand(out.shape), out.abs())
    return out, sizes


def difference(result: Tensor, again: Tensor, terms: Tensor) -> tuple[float, bool]:
    """The largest difference between a result and the same in float64, and whether it is within the tolerance.

    Raises:
        ValueError: their shapes differ.
    """
    if result.shape != again.shape:
        raise ValueError(f"the call gives {list(again.shape)} for {list(result.shape)}")
    if not result.numel():
        return 0.0, True
    mine, limit = result.double(), PRECISE.get(result.dtype, 1e-5)
    same = (mine == again) | (mine.isnan() & again.isnan())
    apart = torch.where(same, 0.0, (mine - again).abs())
    lowest = torch.finfo(result.dtype).max if result.is_floating_point() else torch.inf
    # a number beyond the range of the precision becomes infinite, or the largest one
    over = (again.abs() >= lowest * (1 - 1e-3)) & (mine.abs() >= lowest * (1 - 1e-3)) & (mine.sign() == again.sign())
    apart = torch.where(over, 0.0, apart)
    allowed = limit * terms.nan_to_num(0.0, posinf=0.0).clamp(min=1.0)
    return float(apart.max()), bool((apart <= allowed).all())
