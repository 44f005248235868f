"""The calls of the author's own code behind one head and one query, or one row of a layer, each computed again in float64.

    steps = vf.record(model, ids).steps("transformer.h.0.attn", head=3, query=-1)
    for step in steps:
        print(step.group, step.name, step.source, step.error)

The model runs twice more: the first run says which cells of each tensor the head and the query need, the second keeps these.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from vizformer.errors import TraceError
from vizformer.recorder.calls import Call
from vizformer.recorder.cells import Index, Value, needed, union, values, widened
from vizformer.recorder.edits import HeadEdit, StreamEdit
from vizformer.recorder.op_recorder import Numbers, Op, OpRecorder, Proved, Source, Span, difference
from vizformer.recorder.torch_calls import PRODUCTS, SDPA

if TYPE_CHECKING:
    from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace

Group = Literal["input", "projections", "q and k", "scores", "softmax", "weighted sum", "output", "sum"]
GROUPS: tuple[Group, ...] = (
    "input", "projections", "q and k", "scores", "softmax", "weighted sum", "output", "sum"
)  # fmt: skip
ROOM = 48 * 2**20
"""The most bytes of numbers that are kept for one head and one query; a tensor of more than a 16th of it keeps only its
shape.
"""


@dataclass(frozen=True, eq=False)
class OpOperand:
    """An operand of a step: the result of earlier steps (`of`), a parameter (`weight`), or neither."""

    numbers: Numbers
    of: tuple[int, ...] = ()
    weight: str = ""
    of_text: bool = False


@dataclass(frozen=True, eq=False)
class OpStep:
    """One call of the author's code, with the cells that the head and the query need.

    Attributes:
        group: in attention one of `GROUPS`; in a layer the name of the module within the block.
        name: the name of the call: "linear", "matmul", "softmax"; "input" for the stream, "memory" for that of another
            stack, "attention" for z of all heads.
        module: the module whose code made it.
        source: the line of the author's code; None where all of it is inside torch.
        error: the largest difference from float64; None if it is not known, and then `reason` says why.
        moves: the names of the calls that only moved its operands to their places.
    """

    group: str
    name: str
    module: str
    module_class: str
    source: Source | None
    operands: tuple[OpOperand, ...]
    result: Numbers
    error: float | None = None
    holds: bool = True
    reason: str = ""
    moves: tuple[str, ...] = ()
    edited: bool = False

    def __repr__(self) -> str:
        where = self.source or f"in torch, {self.module}: {self.module_class}"
        said = f"error {self.error:.1e}" if self.error is not None else self.reason
        return f"<{self.group}: {self.name} {list(self.result.shape)} ({where}) {said}>"


@dataclass(frozen=True)
class Again:
    """The model and the function that run a recording again."""

    model: nn.Module
    run: Callable[[], Any]
    edits: tuple[HeadEdit | StreamEdit, ...] = ()
    batch: int | None = None


def attention_ops(
    trace: "RecordedTrace", attention: "RecordedAttention", head: int, query: int, room: int = ROOM
) -> tuple[OpStep, ...]:
    """The attention of one query in a head, call by call of the author's code (`RecordedTrace.steps`)."""
    site = attention.site
    attention.check(head)
    if not -attention.n_q <= query < attention.n_q:
        raise TraceError(
            "There is no query {query} at {site}: choose 0 to {last}.",
            query=query,
            site=site,
            last=attention.n_q - 1,
        )
    query %= attention.n_q
    row = query
    number, at = attention._where[head]
    for step in attention.steps:
        if row < step[0].n_q:
            break
        row -= step[0].n_q
    call, group = step[number], step
    again = again_of(trace)
    first = _run(again, _inside(again.model, call))
    span, closing = _closing(first, call)
    closers = {op.number for op in span.ops if op.closes is not None and any(_same(op.closes, one) for one in group)}
    z = closing.outs[0]
    cells = _cells_of_z(call, at, row, z.shape)
    batch = trace.item, call.batch, call.n_q
    before = _backward(
        span, {id(z): (z, cells)}, [closing.number], stop=lambda one: one.stream or _is_z(span, one, closing)
    )
    after, total = _after(span, closers, site, before, batch, row)
    second = _run_planned(again, span, {**after, **before}, room, site)
    groups = _groups(span, before, closing) | dict.fromkeys(after, "output") | dict.fromkeys(total, "sum")
    order = sorted({*before, *after})
    steps = _steps(again, span, second, order, groups, {**after, **before}, (head, row, at))
    _compare(steps, attention, head, query, bool(again.edits))
    return steps


def layer_ops(trace: "RecordedTrace", block: str, query: int, room: int = ROOM) -> tuple[OpStep, ...]:
    """The other calls of one row in a block (`RecordedTrace.layer_steps`)."""
    points = [one for one in trace.points if one.name == block and one.block >= 0]
    if not points:
        known = ", ".join(dict.fromkeys(one.name for one in trace.points if one.block >= 0)) or "-"
        raise TraceError("This trace has no block {name!r}. It has: {known}.", name=block, known=known)
    again = again_of(trace)
    found = [one for one in _run(again, block).spans if one.forward == points[0].forward]
    if not found or found[-1].end is None or found[-1].end.made_by is None:
        raise TraceError("What {name} hands on is made by no call of its own.", name=block)
    span, end = found[-1], found[-1].end
    call = next((one for one in trace.calls if one.stack == points[0].stack and one.forward == span.forward), None)
    n_q, batch = (call.n_q, call.batch) if call is not None else (end.shape[-2], 1)
    if not -n_q <= query < n_q:
        raise TraceError(
            "There is no query {query} at {site}: choose 0 to {last}.", query=query, site=block, last=n_q - 1
        )
    cells = _row(end.shape, trace.item, batch, n_q, query % n_q)
    if cells is None:
        raise TraceError(
            "The stream at {name} has the shape {shape}: it has no row for each token.",
            name=block,
            shape=list(end.shape),
        )
    calls = {id(op.outs[0]) for op in span.ops if op.closes is not None}
    ops = _backward(
        span, {id(end): (end, cells)}, [len(span.ops) - 1], stop=lambda one: one.made_by is None or id(one) in calls
    )
    second = _run_planned(again, span, ops, room, block)
    groups = {number: _child(again.model, span.ops[number].module, block) for number in ops}
    return _steps(again, span, second, sorted(ops), groups, ops, None)


# the two runs -------------------------------------------------------------------------------------------------


def again_of(trace: "RecordedTrace") -> Again:
    if trace.again is None:
        raise TraceError(
            "Steps run the model once more, which this trace does not know how to: make it by vf.record(model, ...)."
        )
    return trace.again


def _run(again: Again, inside: str, plan: Any = None, room: int = 0) -> OpRecorder:
    recorder = OpRecorder(again.model, inside, again.edits, plan, room, again.batch)
    with torch.no_grad(), recorder:
        again.run()
    return recorder


def _run_planned(again: Again, span: Span, wanted: "Wanted", room: int, site: str) -> OpRecorder:
    """The second run, which keeps the wanted cells."""
    plan = {}
    for number, mine in wanted.items():
        op = span.ops[number]
        if not op.is_move:
            pick = min(mine)
            plan[span.number, number] = _operands(op, mine), pick, mine[pick]
    second = _run(again, span.name, plan, room)
    at = next((one for one in second.spans if one.number == span.number), None)
    if at is None or len(at.ops) != len(span.ops):
        raise TraceError("{site} runs other calls each time: its steps cannot be shown.", site=site)
    return second


def _inside(model: nn.Module, call: Call) -> str:
    """The name of the module whose calls are noted: the block with the attention, or without blocks the attention
    itself.
    """
    if call.block >= 0:
        blocks = model.get_submodule(call.stack) if call.stack else model
        return f"{call.stack}.{list(dict(blocks.named_children()))[call.block]}".removeprefix(".")
    return call.site


def _same(a: Call, b: Call) -> bool:
    return (a.forward, a.site, a.call) == (b.forward, b.site, b.call)


def _closing(recorder: OpRecorder, call: Call) -> tuple[Span, Op]:
    for span in recorder.spans:
        for op in span.ops:
            if op.closes is not None and _same(op.closes, call):
                return span, op
    raise TraceError("{site} did not attend when the model ran once more: its steps cannot be shown.", site=call.site)


def _is_z(span: Span, value: Value, closing: Op) -> bool:
    return value.made_by is not None and value.made_by != closing.number and span.ops[value.made_by].closes is not None


# which cells --------------------------------------------------------------------------------------------------

Wanted = dict[int, dict[int, Index]]
"""Number of a call -> index of a result -> the cells wanted."""


def _cells_of_z(call: Call, at: int, row: int, shape: tuple[int, ...]) -> Index:
    """The cells of one head's row in the result of map @ v."""
    lead = np.unravel_index(at, call.lead) if call.lead else ()
    if call.layout is None:
        return (*(np.array([one]) for one in lead), np.array([row]), np.arange(shape[-1]))
    layout = call.layout
    of = {c: np.array([one]) for c, one in zip(layout.lead, lead, strict=True)}
    of[layout.query] = np.array([row])
    return tuple(of.get(c, np.arange(size)) for c, size in zip(layout.z, shape, strict=True))


def _backward(
    span: Span, asked: dict[int, tuple[Value, Index]], start: Sequence[int], stop: Callable[[Value], bool]
) -> Wanted:
    """The calls that the asked cells depend on, back to values that `stop` accepts or that do not depend on the text."""
    wanted: Wanted = {}
    cells = dict(asked)
    for op in reversed(span.ops[: max(start) + 1]):
        mine = {number: cells[id(out)][1] for number, out in enumerate(op.outs) if id(out) in cells}
        if not mine or not any(one.of_text for one in op.outs):
            continue
        mine = {at: widened(op.name, op.args, op.kwargs, index, op.outs[at].shape) for at, index in mine.items()}
        wanted[op.number] = mine
        for value, index in _operands(op, mine):
            if value.of_text and value.made_by is not None and not stop(value):
                cells[id(value)] = value, union(cells.get(id(value), (value, None))[1], index)
    return wanted


def _operands(op: Op, mine: dict[int, Index]) -> list[tuple[Value, Index]]:
    if op.func is SDPA and op.closes is not None:
        return _of_sdpa(op, mine[0])
    return needed(op.name, op.func, op.args, op.kwargs, op.outs, mine)


def _of_sdpa(op: Op, out: Index) -> list[tuple[Value, Index]]:
    """The cells of a fused call's operands: the query's row, all keys and values of its head, and the mask's row."""
    found = []
    given = dict(zip(("query", "key", "value", "attn_mask"), op.args, strict=False)) | op.kwargs
    n_k = given["key"].shape[-2]
    for value in values((op.args, op.kwargs)):
        if value is given.get("attn_mask"):
            size = (*op.outs[0].shape[:-1], n_k)
            index = [*out[:-1], np.arange(n_k)][len(size) - len(value.shape) :]
            found.append(
                (
                    value,
                    tuple(np.zeros(1, np.int64) if n == 1 else at for n, at in zip(value.shape, index, strict=True)),
                )
            )
            continue
        lead = list(out[:-2])[len(out) - len(value.shape) :]
        for dim, n in enumerate(value.shape[:-2]):
            most = op.outs[0].shape[len(out) - len(value.shape) + dim]
            lead[dim] = np.unique(lead[dim] * n // most)  # heads in a row share keys
        row = out[-2] if value is given["query"] and value is not given["key"] else np.arange(value.shape[-2])
        found.append((value, (*lead, row, np.arange(value.shape[-1]))))
    return found


def _row(shape: Sequence[int], item: int, batch: int, n: int, query: int) -> Index | None:
    """The cells of one token's row in a stream; None if the stream has another shape."""
    row, last = np.array([query]), np.arange(shape[-1])
    if len(shape) == 3 and shape[0] == n != batch and shape[1] == batch:
        return row, np.array([item]), last
    if len(shape) == 3 and shape[0] == batch and shape[1] == n:
        return np.array([item]), row, last
    if len(shape) == 2 and shape[0] == batch * n:
        return row + item * n, last
    return None


def _after(
    span: Span, closers: set[int], site: str, before: Wanted, batch: tuple[int, int, int], row: int
) -> tuple[Wanted, list[int]]:
    """The calls from z to the sum with the stream, or to the end of the attention, and the numbers of those that sum."""
    known = {id(one) for number in before for one in values((span.ops[number].args, span.ops[number].kwargs))}
    from_z = {id(span.ops[number].outs[0]) for number in closers}
    z_values = set(from_z)
    item, size, n = batch
    end: Op | None = None
    total: list[int] = []
    for op in span.ops[min(closers) + 1 :]:
        given = list(values((op.args, op.kwargs)))
        if (
            op.number in closers
            or not any(id(one) in from_z for one in given)
            or not op.outs[0].dtype.is_floating_point
        ):
            continue
        if op.closes is not None:
            break
        others = [one for one in given if one.of_text and id(one) not in from_z]
        from_z |= {id(one) for one in op.outs}
        fits = _row(op.outs[0].shape, item, size, n, row) is not None
        if op.name in ("add", "radd") and others and fits:
            total.append(op.number)
            if any(id(one) in known or one.stream for one in others):
                end = op
                break
        elif (
            fits and not total and (op.module == site or op.module.startswith(f"{site}.") or site.startswith(op.module))
        ):
            end = op
    else:
        total = []
    if end is None:
        return {}, []
    out = end.outs[0]
    cells = _row(out.shape, item, size, n, row)
    assert cells is not None
    stop = lambda one: id(one) not in from_z or id(one) in z_values  # noqa: E731
    return _backward(span, {id(out): (out, cells)}, [end.number], stop), [one for one in total if one <= end.number]


# groups -------------------------------------------------------------------------------------------------------


def _groups(span: Span, before: Wanted, closing: Op) -> dict[int, str]:
    """The part of attention that each call belongs to."""
    ops = {number: span.ops[number] for number in sorted(before)}
    makers = {
        number: {one.made_by for one in values((op.args, op.kwargs)) if one.made_by in ops}
        for number, op in ops.items()
    }
    product = next((number for number, op in ops.items() if op.product), closing.number)
    softmax = next((number for number, op in ops.items() if op.softmax), closing.number)
    behind = _reached(ops, makers, {product}) if product != closing.number else set()  # what depends on the product
    weighs = {number for number, op in ops.items() if _weighs(op)} - behind
    after_weights, to_weights = _reached(ops, makers, weighs), _led_to(makers, weighs)
    to_factors = _led_to(makers, {product, *(one for one in makers[closing.number] if one not in behind)})
    found: dict[int, str] = {}
    for number, op in ops.items():
        of = [found[one] for one in makers[number] if one is not None]
        if number == closing.number:
            found[number] = "weighted sum"
        elif number in behind:
            found[number] = "softmax" if number >= softmax else "scores"
        elif number not in after_weights:
            found[number] = "input"
        elif number in to_weights or (_adds_weight(op) and set(of) == {"projections"}):
            found[number] = "projections"
        else:
            found[number] = "q and k" if number in to_factors else "scores"
    return found


def _weighs(op: Op) -> bool:
    """Whether a call multiplies activations by a weight matrix."""
    if op.name not in PRODUCTS and op.name not in ("linear", "addmm", "conv1d", "conv2d") and "linear" not in op.name:
        return False
    return any(one.weight and len(one.shape) > 1 for one in values((op.args, op.kwargs)))


def _adds_weight(op: Op) -> bool:
    return op.is_move or (op.name in ("add", "radd") and any(one.weight for one in values((op.args, op.kwargs))))


def _reached(ops: Iterable[int], makers: dict[int, set[int]], start: set[int]) -> set[int]:
    found = set(start)
    for number in ops:
        if makers[number] & found:
            found.add(number)
    return found


def _led_to(makers: dict[int, set[int]], end: set[int]) -> set[int]:
    found = set(end)
    for number in sorted(makers, reverse=True):
        if number in found:
            found |= makers[number]
    return found


def _child(model: nn.Module, module: str, block: str) -> str:
    """The part of a block whose code runs: "mlp" for "h.0.mlp.c_fc"; "" for the block's own code."""
    found, at = [], model.get_submodule(block)
    for name in module.removeprefix(block).removeprefix(".").split("."):
        if not name:
            break
        found.append(name)
        at = at.get_submodule(name)
        if not isinstance(at, nn.ModuleList | nn.ModuleDict):
            break
    return ".".join(found)


# what is handed back ------------------------------------------------------------------------------------------


def _steps(
    again: Again,
    span: Span,
    recorder: OpRecorder,
    order: Sequence[int],
    groups: dict[int, str],
    wanted: Wanted,
    place: tuple[int, int, int] | None,
) -> tuple[OpStep, ...]:
    steps: list[OpStep] = []
    made: dict[int, tuple[int, ...]] = {}  # the steps that computed a value
    moved: dict[int, tuple[str, ...]] = {}
    classes = {name: type(module).__name__ for name, module in again.model.named_modules()}
    inputs: dict[int, Value] = {}  # the value before it was moved
    for number in order:
        op = span.ops[number]
        given = list(values((op.args, op.kwargs)))
        if op.is_move:
            sources = tuple(dict.fromkeys(at for one in given for at in made.get(id(one), ())))
            root = next((inputs.get(id(one), one) for one in given if one.of_text and not made.get(id(one))), None)
            for one in op.outs:
                made[id(one)] = sources
                moved[id(one)] = (*(name for value in given for name in moved.get(id(value), ())), op.name)
                if root is not None and not sources:
                    inputs[id(one)] = root
            continue
        proved = recorder.proved[span.number, number]
        operands = []
        for value, numbers in zip(given, proved.operands, strict=True):
            if value.of_text and not made.get(id(value)):
                root = inputs.get(id(value), value)
                if not made.get(id(root)):  # it enters the block here
                    group = "input" if place is not None and groups[number] != "sum" else groups[number]
                    made[id(root)] = (len(steps),)
                    steps.append(OpStep(group, _entry(span, root), span.name, classes[span.name], None, (), numbers))
                made[id(value)] = made[id(root)]
            weight = value.weight if value.weight != "-" else ""
            operands.append(OpOperand(numbers, made.get(id(value), ()), weight, value.of_text))
        moves = tuple(dict.fromkeys(name for value in given for name in moved.get(id(value), ())))
        edited = op.closes is not None and bool(recorder.head_edits)
        step = OpStep(
            groups[number], op.name, op.module, classes.get(op.module, ""), proved.source, tuple(operands),
            proved.result, proved.error, proved.holds, proved.reason, moves, edited,
        )  # fmt: skip
        if op.func is SDPA and op.closes is not None and place is not None:
            steps += _opened(step, proved, *place, first=len(steps))
        else:
            steps.append(step)
        for one in op.outs:
            made[id(one)] = (len(steps) - 1,)
    if place is None:
        return tuple(steps)
    rank = {name: at for at, name in enumerate(GROUPS)}
    new = sorted(range(len(steps)), key=lambda at: (rank[steps[at].group], at))  # type: ignore[index]
    place_of = {old: at for at, old in enumerate(new)}
    return tuple(
        replace(
            steps[old],
            operands=tuple(
                replace(one, of=tuple(sorted(place_of[at] for at in one.of))) for one in steps[old].operands
            ),
        )
        for old in new
    )


def _entry(span: Span, value: Value) -> str:
    """The kind of a tensor that enters: the stream, z of an attention, or another stack's output."""
    if value.made_by is not None and span.ops[value.made_by].closes is not None:
        return "attention"
    return "input" if value.stream or value.made_by is not None else "memory"


def _opened(step: OpStep, proved: Proved, head: int, row: int, at: int, first: int) -> list[OpStep]:
    """The three products that a fused call stands for: scores, softmax, weighted sum."""
    call = proved.call
    assert call is not None
    scores, added = call.scaled(torch.float64, at)
    masked, v = (scores if added is None else scores + added)[0, row], call.v.rows(call.lead, at)
    weights, n_k = torch.softmax(masked, -1), len(masked)
    assert v is not None
    assert call.z is not None
    z, v = weights @ v.double(), v.double()
    error, holds = difference(call.z[at, row], z, weights.nan_to_num() @ v.abs())

    def numbers(x: Tensor, *shape: int) -> Numbers:
        return Numbers(shape, tuple(np.arange(n) for n in x.shape), x.to(torch.float32))

    lead, n_q = call.lead, call.n_q
    q_in, k_in, v_in, *rest = step.operands
    made_scores = numbers(masked, *lead, n_q, n_k)
    made_weights = numbers(weights, *lead, n_q, n_k)
    step = replace(step, error=error, holds=holds)
    by_softmax = OpOperand(made_scores, (first,), "", True)
    by_v = OpOperand(made_weights, (first + 1,), "", True)
    return [
        replace(step, group="scores", operands=(q_in, k_in, *rest), result=made_scores),
        replace(step, group="softmax", operands=(by_softmax,), result=made_weights, moves=()),
        replace(step, group="weighted sum", operands=(by_v, v_in)),
    ]


def _compare(steps: Sequence[OpStep], attention: Any, head: int, query: int, edited: bool) -> None:
    """Refuses steps whose z differs from the recorded one: the model computes something else each time."""
    z = next((one.result.x for one in reversed(steps) if one.group == "weighted sum"), None)
    recorded = attention.z(head)[query]
    if z is None or edited:
        return
    apart = (z.reshape(-1).double() - recorded.reshape(-1).double()).abs()
    if not bool((apart <= 1e-4 * recorded.abs().double().clamp(min=1.0)).all()):
        raise TraceError(
            "{site} gives other numbers each time it runs: its steps are not those of the recorded run.",
            site=attention.site,
        )
