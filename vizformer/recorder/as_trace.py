"""A recorded run as a `vf.Trace`: the same numbers, by the app's names of layers."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, UInt8
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.model.masks import Reason
from vizformer.model.records import AttentionRecord, Scoring
from vizformer.model.trace import Trace
from vizformer.text.tokenizer import Token

if TYPE_CHECKING:
    from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace
    from vizformer.recorder.recorder import Point


def record_of(attention: "RecordedAttention") -> AttentionRecord | None:
    """The `AttentionRecord` of one attention call; None if the weights of a row are no shares of 1, or if it is not known
    which values belong to which head.

    Where scale, cap and mask were found and proved, the record has them; a map that is no softmax of scaled products is
    given by its logarithm.
    """
    return _by_form(attention) or _by_weights(attention)


def _by_form(attention: "RecordedAttention") -> AttentionRecord | None:
    places = [[(forms[number], at) for number, at in attention._where] for forms in attention.forms]
    if any(form is None for row in places for form, _ in row):
        return None
    n_k = attention.n_k
    rows_added, rows_blocked, scales, rows_sinks = [], [], [], []
    caps = {form.cap for row in places for form, _ in row}  # type: ignore[union-attr]
    for step, row in zip(attention.steps, places, strict=True):
        shape, keys = (step[0].n_q, n_k), step[0].v.part.n
        rows_added.append(_of_heads([(form.added, at) for form, at in row], shape, keys, torch.float64))  # type: ignore[union-attr]
        rows_blocked.append(_of_heads([(form.blocked, at) for form, at in row], shape, keys, torch.bool))  # type: ignore[union-attr]
        rows_blocked[-1][..., keys:] = True  # keys of later steps
        scales.append(torch.stack([form.scale[at] for form, at in row]))  # type: ignore[union-attr]
        rows_sinks.append([form.sinks for form, _ in row])  # type: ignore[union-attr]
    if len(caps) > 1 or any(not torch.allclose(one, scales[0]) for one in scales):
        return None
    none = [sink is None for row in rows_sinks for sink in row]
    if any(none) and not all(none):
        return None
    try:
        q, k, v = attention.q, attention.k, attention.v
    except TraceError:
        return None
    scale = scales[0]
    if not torch.allclose(scale, scale[:1].expand_as(scale), rtol=1e-6):
        q, scale = q * scale[:, None, None].to(q), torch.ones_like(scale)
    added, blocked = (_beside(rows).to(q.device) for rows in (rows_added, rows_blocked))
    sinks = None
    if not all(none):
        sinks = torch.stack([form.sinks[at] for form, at in places[0]])[:, None].float()  # type: ignore[union-attr, index]
    if torch.equal(blocked, blocked[:1].expand_as(blocked)):
        blocked = blocked[:1]
    bias = (
        torch.zeros_like(blocked, dtype=torch.float32).masked_fill(blocked, -torch.inf) if bool(blocked.any()) else None
    )
    reason = None if bias is None else reasons_of(blocked)
    place = added.float().expand(len(q), -1, -1) if bool(added.any()) else None
    k, v = _shared(k, v)
    scoring = Scoring(float(scale[0]), caps.pop())
    return AttentionRecord(attention.site, q, k, v, bias, reason, scoring, place, attention.tokens, sinks=sinks)


def _of_heads(
    parts: Sequence[tuple[Tensor | None, int]], shape: tuple[int, int], keys: int, dtype: torch.dtype
) -> Tensor:
    """One tensor of the forms for all heads, [heads, *shape], or [1, *shape] if it is the same for all; 0 beyond
    `keys`.
    """
    first = parts[0][0]
    same = all(part is first for part, _ in parts) and (first is None or len(first) == 1)
    device = next((part.device for part, _ in parts if part is not None), None)
    whole = torch.zeros(1 if same else len(parts), *shape, dtype=dtype, device=device)
    for head, (part, at) in enumerate(parts[:1] if same else parts):
        if part is not None:
            whole[head, :, :keys] = part[0 if len(part) == 1 else at]
    return whole


def _beside(steps: Sequence[Tensor]) -> Tensor:
    """The rows of several steps concatenated, [heads or 1, n_q, n_k]."""
    heads = max(map(len, steps))
    return torch.cat([one.expand(heads, -1, -1) for one in steps], 1)


def _by_weights(attention: "RecordedAttention") -> AttentionRecord | None:
    """A record whose softmax gives the weights w: scores log w, sink log(1 - sum w); None if w are no shares of 1."""
    try:
        v = attention.v
    except TraceError:
        return None
    maps = attention.maps().float().nan_to_num(0.0)
    sums = maps.sum(-1)
    if float(maps.min()) < 0 or float(sums.max()) > 1 + 1e-4:
        return None
    blocked = (maps == 0).all(0, keepdim=True)
    bias, reason = None, reasons_of(blocked)
    proved = set(reason.flatten().tolist()) == {0, int(Reason.FUTURE)}  # a weight of 0 does not prove a mask
    if proved:
        bias = torch.zeros_like(blocked, dtype=torch.float32).masked_fill(blocked, -torch.inf)
    left = 1 - sums
    sinks = left.clamp(min=0).log() if bool((left > 1e-4).any()) else None
    nothing = v.new_zeros(len(maps), 1, 1)
    q, k = nothing.expand(-1, attention.n_q, 1), nothing.expand(-1, attention.n_k, 1)
    found = AttentionRecord(
        attention.site, q, k, v, bias, reason if proved else None, Scoring(1.0), maps.log(), attention.tokens
    )
    return replace(found, sinks=sinks, scored=False)


def _shared(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values without copies, if consecutive query heads share them."""
    n = len(k)
    for groups in range(1, n):
        if n % groups == 0:
            size = n // groups
            if all(torch.equal(x, x[::size].repeat_interleave(size, 0)) for x in (k, v)):
                return k[::size], v[::size]
    return k, v


def app_trace(trace: "RecordedTrace") -> Trace:
    """The run as a `Trace` by the app's names; see `RecordedTrace.as_trace`."""
    names = trace.app_stacks
    records: dict[str, AttentionRecord] = {}
    for site, call in app_sites(trace).items():
        record = call.drawn
        if call.unproved is not None:
            raise TraceError(call.unproved)
        records[site] = replace(_sharing(record, records.values()), site=site)
        stack, _, what = site.split(".")
        first = records[f"{stack}.0.{what}"]
        if (first.q.shape[1], first.k.shape[1]) != (record.q.shape[1], record.k.shape[1]):
            raise TraceError(
                "{site} has other tokens than the layers before it: the app's layers read the same ones.",
                site=call.site,
            )
    residuals: dict[str, Tensor] = {}
    for name in dict.fromkeys(names.values()):
        found = {key: points for key, points in app_points(trace).items() if key.startswith(f"{name}.")}
        with suppress(TraceError):  # a stream without one row per token
            residuals |= {key: torch.cat([trace.rows(point) for point in points]) for key, points in found.items()}
    tokens = {
        name: tuple(Token(0, text, text) for text in trace.labels(stack))
        for stack, name in names.items()
        if trace.labels(stack) and _length(trace, stack) == len(trace.labels(stack))
    }
    about = {"model": trace.model_name, "recorded": "vizformer.recorder"}
    return Trace(tokens, None, (), about, None, records, residuals, trace.logits)


def _sharing(record: AttentionRecord, others: Iterable[AttentionRecord]) -> AttentionRecord:
    """The attention call with the mask of an earlier one, if the two are equal, so that it is stored once."""
    for other in others:
        both = record.bias is not None and other.bias is not None
        if both and torch.equal(record.bias, other.bias) and torch.equal(record.reason_map, other.reason_map):  # type: ignore[arg-type]
            return replace(record, bias=other.bias, reason_map=other.reason_map)
    return record


def app_sites(trace: "RecordedTrace") -> "dict[str, RecordedAttention]":
    """The attention calls of one run by the app's names: one per layer, in the order in which they ran.

    Raises:
        TraceError: several runs, no attention, or what `stacks_of` raises.
    """
    if trace.n_runs > 1:
        raise TraceError("This trace has {n} runs: choose one by trace.run(number).", n=trace.n_runs)
    if not trace.attention:
        raise TraceError(
            "No attention was seen while {name} ran. {escaped}",
            name=trace.model_name or "-",
            escaped=trace.escaped or "",
        )
    names, found = trace.app_stacks, dict[str, "RecordedAttention"]()
    counts: dict[tuple[str, str], int] = {}
    for call in trace.attention:
        kind = (names[call.stack], "cross" if call.is_cross else "self")
        number = counts.get(kind, 0)
        counts[kind] = number + 1
        found[f"{kind[0]}.{number}.{kind[1]}"] = call
    return found


def app_points(trace: "RecordedTrace") -> "dict[str, list[Point]]":
    """The points of the stream by the app's names: as it enters each layer that attends, and as it leaves the last block; of
    several steps one of each.

    Blocks that do not attend have no layer of their own; where blocks that run again cannot be told apart there is none.
    """
    names, found = trace.app_stacks, dict[str, "list[Point]"]()
    for name in dict.fromkeys(names.values()):
        steps = _steps(trace, [stack for stack, of in names.items() if of == name])
        ends = _ends(trace, name, names, steps)
        layers = {f"{name}.{number}.pre": at - 1 for number, at in enumerate(ends)}
        for key, at in {**layers, **({f"{name}.final": len(steps[0]) - 1} if ends else {})}.items():
            found[key] = [step[at] for step in steps]
    return found


def app_ends(trace: "RecordedTrace") -> "dict[str, Point]":
    """The point at the end of each layer's block, by the app's names ("decoder.2"); of several steps the first."""
    names, found = trace.app_stacks, dict[str, "Point"]()
    for name in dict.fromkeys(names.values()):
        steps = _steps(trace, [stack for stack, of in names.items() if of == name])
        for number, at in enumerate(_ends(trace, name, names, steps)):
            found[f"{name}.{number}"] = steps[0][at]
    return found


def _steps(trace: "RecordedTrace", stacks: Sequence[str]) -> "list[list[Point]]":
    """The points of a stack, one list per forward."""
    points = [point for point in trace.points if point.stack in stacks]
    return [[point for point in points if point.forward == one] for one in dict.fromkeys(p.forward for p in points)]


def _ends(trace: "RecordedTrace", name: str, names: Mapping[str, str], steps: "Sequence[Sequence[Point]]") -> list[int]:
    """For each layer the index of the point, among those of a forward, at which its block ends."""
    if not steps or len({len(step) for step in steps}) > 1:
        return []
    ends = [at for at, point in enumerate(steps[0]) if point.block >= 0]
    blocks = [(steps[0][at].stack, steps[0][at].block) for at in ends]
    own = [call.steps[0][0] for call in trace.attention if names[call.stack] == name and not call.is_cross]
    if len(own) == len(ends):
        return ends
    if len(set(blocks)) < len(blocks) or any((call.stack, call.block) not in blocks for call in own):
        return []
    return [ends[blocks.index((call.stack, call.block))] for call in own]


def _length(trace: "RecordedTrace", stack: str) -> int:
    return next((call.n_q for call in trace.attention if call.stack == stack), 0)


def stacks_of(trace: "RecordedTrace") -> dict[str, str]:
    """The app's name of each list of blocks.

    Where a stack attends to another one, these two are encoder and decoder, in the order in which they ran.  Else all are
    one stack: what `trace.causal` says, or a decoder where no query sees a later token, else an encoder.

    Raises:
        TraceError: a stack attends to another one, and there are not exactly two.
    """
    calls = trace.attention
    stacks = list(dict.fromkeys(call.stack for call in calls))
    if any(call.is_cross for call in calls):
        if len(stacks) != 2:
            raise TraceError(
                "This model has {n} stacks: {names}. The app knows two.", n=len(stacks), names=", ".join(stacks)
            )
        return dict(zip(stacks, ("encoder", "decoder"), strict=True))
    if trace.causal is not None:
        return dict.fromkeys(stacks, "decoder" if trace.causal else "encoder")
    ahead = any(bool(torch.triu(one, 1).any()) for call in calls if call.n_q == call.n_k for one in call.maps())
    return dict.fromkeys(stacks, "encoder" if ahead else "decoder")


def reasons_of(blocked: Bool[Tensor, "h n_q n_k"]) -> UInt8[Tensor, "h n_q n_k"]:
    """The reasons of a mask's cells, 0 where they are visible.

    A key that no query sees is padding.  Of what is left a mask is causal where it
    blocks exactly the keys behind each query, the last query standing at the last key.  Any other cell is masked by the
    model, and no more is said.
    """
    return torch.stack([_of_one(one) for one in blocked])


def _of_one(blocked: Tensor) -> Tensor:
    n_q, n_k = blocked.shape
    hidden = blocked.all(0)
    ahead = torch.ones_like(blocked).triu(1 + n_k - n_q)
    reason = torch.where(blocked, int(Reason.OF_THE_MODEL), 0).to(torch.uint8)
    if torch.equal(blocked & ~hidden, ahead & ~hidden) and bool((ahead & ~hidden).any()):
        reason[blocked & ahead] = int(Reason.FUTURE)
    reason[blocked & hidden] = int(Reason.PADDING)
    return reason
