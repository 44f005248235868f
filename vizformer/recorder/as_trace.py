"""A recorded run as the app's own: the same numbers, by the app's names of layers."""

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.model.mixing import Scoring
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace
from vizformer.recorder.reasons import reasons_of
from vizformer.text.tokenizer import Token

if TYPE_CHECKING:
    from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace


def record_of(attention: "RecordedAttention") -> AttentionRecord | None:
    """One call with scale, cap and mask; None where its map is no softmax of scaled products with these, or has sinks."""
    places = [[(forms[number], at) for number, at in attention._where] for forms in attention.forms]
    found = [[one for one, _ in row] for row in places]
    if any(form is None or form.sinks is not None for row in found for form in row):
        return None
    n_k = attention.n_k
    rows_added, rows_blocked, scales = [], [], []
    caps = {form.cap for row in found for form in row}  # type: ignore[union-attr]
    for step, row in zip(attention.steps, places, strict=True):
        n_q, keys = step[0].n_q, step[0].v.part.n
        added = torch.zeros(len(row), n_q, n_k, dtype=torch.float64)
        blocked = torch.zeros(len(row), n_q, n_k, dtype=torch.bool)
        blocked[..., keys:] = True  # keys that the step did not have yet
        for head, (form, at) in enumerate(row):
            assert form is not None
            for whole, part in ((added, form.added), (blocked, form.blocked)):
                if part is not None:
                    whole[head, :, :keys] = part[0 if len(part) == 1 else at]
        rows_added.append(added)
        rows_blocked.append(blocked)
        scales.append(torch.stack([form.scale[at] for form, at in row]))  # type: ignore[union-attr]
    if len(caps) > 1 or any(not torch.allclose(one, scales[0]) for one in scales):
        return None
    try:
        q, k, v = attention.q, attention.k, attention.v
    except TraceError:
        return None
    scale = scales[0]
    if not torch.allclose(scale, scale[:1].expand_as(scale), rtol=1e-6):
        q, scale = q * scale[:, None, None].to(q), torch.ones_like(scale)
    added, blocked = torch.cat(rows_added, 1), torch.cat(rows_blocked, 1)
    if torch.equal(blocked, blocked[:1].expand_as(blocked)):
        blocked = blocked[:1]
    bias = torch.zeros(blocked.shape).masked_fill(blocked, -torch.inf) if bool(blocked.any()) else None
    reason = None if bias is None else reasons_of(blocked)
    place = added.float() if bool(added.any()) else None
    k, v = _shared(k, v)
    scoring = Scoring(float(scale[0]), caps.pop())
    return AttentionRecord(attention.site, q, k, v, bias, reason, scoring, place, attention.tokens)


def _shared(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values once where heads in a row share them."""
    n = len(k)
    for groups in range(1, n):
        if n % groups == 0:
            size = n // groups
            if all(torch.equal(x, x[::size].repeat_interleave(size, 0)) for x in (k, v)):
                return k[::size], v[::size]
    return k, v


def app_trace(trace: "RecordedTrace") -> Trace:
    """The run by the app's names; see `RecordedTrace.as_trace`."""
    if trace.n_runs > 1:
        raise TraceError("This trace has {n} runs: choose one by trace.run(number).", n=trace.n_runs)
    calls = trace.attention
    if not calls:
        raise TraceError("This trace is empty: no attention was recorded.")
    names = _stacks(trace)
    records: dict[str, AttentionRecord] = {}
    counts: dict[tuple[str, str], int] = {}
    for call in calls:
        kind = (names[call.stack], "cross" if call.is_cross else "self")
        number = counts.get(kind, 0)
        counts[kind] = number + 1
        if (record := call.record) is None:
            raise TraceError(
                "The map at {site} is no softmax of scaled products alone, which the file of a trace says. "
                "vf.view(trace).save(path) writes the maps.",
                site=call.site,
            )
        site = f"{kind[0]}.{number}.{kind[1]}"
        records[site] = replace(record, site=site)
        first = records[f"{kind[0]}.0.{kind[1]}"]
        if (first.q.shape[:2], first.k.shape[1]) != (record.q.shape[:2], record.k.shape[1]):
            raise TraceError(
                "{site} has other heads or tokens than the layers before it: the app's layers are of one shape.",
                site=call.site,
            )
    residuals: dict[str, Tensor] = {}
    for stack, name in names.items():
        points = dict.fromkeys((one.name, one.block) for one in trace.points if one.stack == stack)
        for point, block in points:
            last = block == max(number for _, number in points)
            residuals[f"{name}.final" if last else f"{name}.{block + 1}.pre"] = trace.residual(point)
    tokens = {
        name: tuple(Token(0, text, text) for text in trace.labels(stack))
        for stack, name in names.items()
        if trace.labels(stack) and _length(trace, stack) == len(trace.labels(stack))
    }
    residuals = {name: x for name, x in residuals.items() if x.dim() == 2}
    about = {"model": trace.model_name, "recorded": "vizformer.recorder"}
    return Trace(tokens, None, (), about, None, records, residuals, trace.logits)


def _length(trace: "RecordedTrace", stack: str) -> int:
    return next((call.n_q for call in trace.attention if call.stack == stack), 0)


def _stacks(trace: "RecordedTrace") -> dict[str, str]:
    """The app's names of the stacks: with one it is a decoder where a query sees no later token, else an encoder.

    Raises:
        TraceError: more than two.
    """
    calls = trace.attention
    stacks = list(dict.fromkeys(call.stack for call in calls))
    if len(stacks) > 2:
        raise TraceError(
            "This model has {n} stacks: {names}. The app knows two.", n=len(stacks), names=", ".join(stacks)
        )
    if len(stacks) == 2:
        return dict(zip(stacks, ("encoder", "decoder"), strict=True))
    ahead = any(
        bool(torch.triu(call.maps()[0], 1).any()) for call in calls if not call.is_cross and call.n_q == call.n_k
    )
    return {stacks[0]: "encoder" if ahead else "decoder"}
