"""Whether a recording of a model is all there is to say: three checks, each by running the model.

exact      z, computed again from what was recorded, is the model's z at every site
whole      with all z set to 0, no token's row changes another's between the first block's input and the last one's end
tokenwise  with all z set to 0, a row that is changed changes q, k and v in its own row alone
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.recorder.edits import HeadEdit, StreamEdit
from vizformer.recorder.recorded_trace import EXACT, RecordedTrace
from vizformer.recorder.recorder import Recorder

_SAME = 1e-5
"""By what a row may differ where it is the same, as a part of the largest number: experts take other rows together."""


@dataclass(frozen=True)
class Checked:
    """What came out.

    Attributes:
        errors: of each site how far z, computed again, is from the model's, as a part of its largest number.
        inexact: the sites where that is more than the precision leaves.
        mixing: the modules that mix tokens although all z are 0; None where no repeated blocks were found, so that nothing
            was tried.
        moved: the sites whose q, k or v hold other rows than their own; None likewise.
        escaped: what the recorder could not follow.
    """

    errors: Mapping[str, float]
    inexact: tuple[str, ...]
    mixing: tuple[str, ...] | None
    moved: tuple[str, ...] | None
    escaped: tuple[Message, ...]

    @property
    def exact(self) -> bool:
        return not self.inexact

    @property
    def whole(self) -> bool:
        return self.mixing == () and not self.escaped

    @property
    def tokenwise(self) -> bool:
        return self.moved == ()

    @property
    def said(self) -> tuple[Message, ...]:
        """What does not hold, in words; empty where all three do."""
        found = list(self.escaped)
        if self.inexact:
            found.append(N_("z, computed again, is not the model's at {sites}", sites=", ".join(self.inexact)))
        if self.mixing is None:
            found.append(N_("no repeated blocks were found: whether tokens mix elsewhere was not tried"))
        elif self.mixing:
            found.append(N_("tokens also mix in {modules}", modules=", ".join(self.mixing)))
        if self.moved:
            found.append(
                N_("queries, keys or values hold other tokens than their own at {sites}", sites=", ".join(self.moved))
            )
        return tuple(found)


def check(model: nn.Module, *args: Any, **kwargs: Any) -> Checked:
    """Runs `model(*args, **kwargs)` several times, without gradients, and compares the runs.

    Raises:
        TraceError: no attention was recorded; what `vizformer.recorder.record` raises.
    """
    trace = _run(model, args, kwargs, ())
    if not trace.sites:
        raise TraceError("No attention was recorded. {escaped}", escaped=trace.escaped or "")
    errors: dict[str, float] = {}
    inexact: dict[str, None] = {}
    for one in trace.attention:
        errors[one.site] = max(errors.get(one.site, 0.0), one.error())
        z = one.steps[0][0].z
        if z is None or not errors[one.site] <= EXACT.get(z.dtype, 1e-4):
            inexact[one.site] = None
    stacks = {point.stack: point.x for point in trace.points if point.block == -1}
    if not stacks:
        return Checked(errors, tuple(inexact), None, None, trace.escaped)
    silent = HeadEdit(None, z=0.0)
    base = _run(model, args, kwargs, (silent,))
    mixing: dict[str, None] = {}
    moved: dict[str, None] = {}
    for stack, x in stacks.items():
        dim, n = _tokens_of(trace, stack, x)
        for row in sorted({0, n // 2}):
            edit = StreamEdit(stack, lambda x, dim=dim, row=row: _turned(x, dim, row))  # type: ignore[misc]
            other = _run(model, args, kwargs, (silent, edit))
            if not all(
                _same_elsewhere(a.x, b.x, dim, row if a.stack == stack else None)
                for a, b in zip(base.points, other.points, strict=True)
            ):
                mixing |= dict.fromkeys(_mixers(model, args, kwargs, (silent,), (silent, edit), dim, row, n))
            for a, b in zip(base.attention, other.attention, strict=True):
                sides = {"q": a.stack, "k": a.steps[0][0].keys_of, "v": a.steps[0][0].keys_of}
                for name, side in sides.items():
                    try:
                        one, two = getattr(a, name), getattr(b, name)
                    except TraceError:
                        continue
                    own = row if side == stack else None
                    if (own is not None and one.shape[1] != n) or not _same_elsewhere(one, two, 1, own):
                        moved[a.site] = None
    return Checked(errors, tuple(inexact), tuple(mixing), tuple(moved), trace.escaped)


def _run(model: nn.Module, args: Any, kwargs: Any, edits: tuple[Any, ...], heard: Any = None) -> RecordedTrace:
    recorder = Recorder(model, edits, heard=heard)
    with torch.no_grad(), recorder:
        model(*args, **kwargs)
    return RecordedTrace(
        recorder.calls,
        recorder.points,
        tuple(recorder.escaped.values()),
        recorder.stacks,
        model_name=type(model).__name__,
    )


def _tokens_of(trace: RecordedTrace, stack: str, x: Tensor) -> tuple[int, int]:
    """The dimension of the stream that its tokens have, and how many they are."""
    call = next((call for call in trace.calls if call.stack == stack), None)
    n, batch = (call.n_q, call.batch) if call else (None, 1)
    if x.dim() == 2:
        return 0, x.shape[0]
    dim = 0 if x.shape[0] == n != batch and x.shape[1] == batch else 1
    return dim, x.shape[dim]


def _turned(x: Tensor, dim: int, row: int) -> Tensor:
    x = x.clone()
    one = x.select(dim, row)
    one.copy_(one.roll(1, -1) + 0.1 * x.std())
    return x


def _same_elsewhere(a: Tensor, b: Tensor, dim: int, row: int | None) -> bool:
    """Whether two tensors are the same but in one row."""
    if a.shape != b.shape:
        return False
    if row is not None:
        rest = [at for at in range(a.shape[dim]) if at != row]
        a, b = (x.index_select(dim, torch.tensor(rest, device=x.device)) for x in (a, b))
    if not a.numel():
        return True
    bound = _SAME * max(1.0, float(a.abs().max()))
    return bool(((a - b).abs() <= bound).logical_or(a == b).all())


def _mixers(model: nn.Module, args: Any, kwargs: Any, one: Any, two: Any, dim: int, row: int, n: int) -> list[str]:
    """The innermost modules whose inputs differ in a row alone, and whose outputs differ in others."""

    def collect(edits: Any) -> list[tuple[str, list[Tensor], list[Tensor]]]:
        found: list[tuple[str, list[Tensor], list[Tensor]]] = []

        def heard(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
            given, made = (_rows(value, dim, n) for value in ((args, list(kwargs.values())), out))
            found.append((name, given, made))

        _run(model, args, kwargs, edits, heard)
        return found

    names = []
    for (name, given, made), (_, other, again) in zip(collect(one), collect(two), strict=True):
        same = all(_same_elsewhere(a, b, dim, row) for a, b in zip(given, other, strict=True))
        if given and same and not all(_same_elsewhere(a, b, dim, row) for a, b in zip(made, again, strict=True)):
            names.append(name)
    return [
        name for name in dict.fromkeys(names) if not any(one.startswith(f"{name}.") for one in names if name) and name
    ]


def _rows(value: Any, dim: int, n: int) -> list[Tensor]:
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.dim() == 3 and value.shape[dim] == n
        return [value.detach().clone()] if fits else []
    if isinstance(value, list | tuple):
        return [x for one in value for x in _rows(one, dim, n)]
    return []
