"""Checks that a recording has all the attention of a model: three checks, each of which runs the model.

exact      z, computed again from what was recorded, is the model's z at every site
whole      with all z set to 0, no token's row changes another's between the first block's input and the last one's end
tokenwise  with all z set to 0, a row that is changed changes q, k and v in its own row alone

A model may treat longer texts differently: `check_lengths` runs them at several lengths, one beyond its longest window.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.recorder.calls import Call
from vizformer.recorder.edits import HeadEdit, StreamEdit
from vizformer.recorder.form import EXACT
from vizformer.recorder.recorded_trace import RecordedTrace
from vizformer.recorder.recorder import Recorder

_SAME = 1e-5
"""The tolerance for equal rows, as a share of the largest number, of at least 1: in a mixture of experts a changed row
may go to other experts, so that other rows are multiplied together, which changes last digits.
"""

SHORT, LONGER, MOST = 7, 8, 512
"""Numbers of tokens: of the short text, of the part of the long one beyond the longest window, and the most that are
tried.
"""

_WINDOW = re.compile(r".*window.*|.*chunk.*|local_(attention|radius).*")
_NO_WINDOW = re.compile(r"max_.*|.*(layers|feed_forward|lm_head).*")
_HARMLESS = ("unsure", "softmax", "tensor")
"""Kinds of calls that the recorder could not follow and that mix no tokens if nothing does with all z at 0."""


@dataclass(frozen=True)
class Checked:
    """The result of the checks.

    Attributes:
        errors: for each site the difference between z, recomputed, and the model's, as a share of its largest number.
        inexact: the sites at which it exceeds the tolerance of the model's precision.
        mixing: the modules that mix tokens although all z are 0; None if no repeated blocks were found, so that nothing
            was checked.
        moved: the sites at which q, k or v of a token depend on other tokens; None likewise.
        unmatched: the sites whose q, k or v do not have one row per token, so that this was not checked.
        escaped: the calls that the recorder could not follow, without those proved to mix no tokens.
        lengths: the numbers of tokens of the texts; none are said by `check`.
        window: the longest window that is named, if no text was longer; else None, and by `check`.
        outside: the sites in no repeated block, if others are in one: other mixing beside them was not checked.
    """

    errors: Mapping[str, float]
    inexact: tuple[str, ...]
    mixing: tuple[str, ...] | None
    moved: tuple[str, ...] | None
    escaped: tuple[Message, ...]
    lengths: tuple[int, ...] = ()
    window: int | None = None
    outside: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether there is attention, and all of it was recomputed exactly."""
        return bool(self.errors) and not self.inexact

    @property
    def whole(self) -> bool:
        return self.mixing == () and not self.escaped and not self.outside

    @property
    def tokenwise(self) -> bool:
        return bool(self.errors) and self.moved == () and not self.unmatched

    @property
    def said(self) -> tuple[Message, ...]:
        """Sentences about what does not hold; empty if all three checks pass."""
        found = [] if self.errors else [N_("no attention was recorded")]
        found += self.escaped
        if self.inexact:
            found.append(
                N_("at {sites} z, recomputed from q, k and v, differs from the model's", sites=", ".join(self.inexact))
            )
        if self.mixing is None:
            found.append(N_("no repeated blocks were found: whether tokens mix elsewhere was not tested"))
        elif self.mixing:
            found.append(N_("tokens also mix in {modules}", modules=", ".join(self.mixing)))
        if self.outside:
            found.append(
                N_(
                    "at {sites} attention lies outside of the repeated blocks: whether tokens mix "
                    "elsewhere there was not tested",
                    sites=", ".join(self.outside),
                )
            )
        if self.moved:
            found.append(
                N_(
                    "at {sites} queries, keys or values contain other tokens than their own",
                    sites=", ".join(self.moved),
                )
            )
        if self.unmatched:
            found.append(
                N_(
                    "at {sites} the rows of queries, keys or values do not match the tokens of the block "
                    "one to one: whether they contain other tokens was not tested",
                    sites=", ".join(self.unmatched),
                )
            )
        if self.window is not None:
            found.append(
                N_(
                    "a window of {window} tokens was named, and texts of at most {n} were tried",
                    window=self.window,
                    n=max(self.lengths),
                )
            )
        return tuple(found)


def check(model: nn.Module, *args: Any, **kwargs: Any) -> Checked:
    """The checks of `model(*args, **kwargs)`, which runs several times without gradients.

    Raises:
        TraceError: what `vizformer.recorder.record` raises.
    """
    found = _Found()
    found.tried(model, lambda: model(*args, **kwargs), lambda part: None)
    return found.checked()


def check_lengths(
    model: nn.Module,
    run: Callable[[int], object],
    lengths: Sequence[int] | None = None,
    *,
    heard: Callable[[float], None] | None = None,
) -> Checked:
    """The checks on texts of several lengths.

    Args:
        run: runs the model on a text of so many tokens; the same text every time.
        lengths: default those of `lengths_of`.
        heard: called between runs of the model with the share that is done; an error that it raises ends the checks.

    Raises:
        TraceError: as `check`.
    """
    lengths = tuple(lengths_of(model) if lengths is None else lengths)
    found = _Found()
    for number, n in enumerate(lengths):

        def done(part: float, number: int = number) -> None:
            if heard is not None:
                heard((number + part) / len(lengths))

        found.tried(model, partial(run, n), done)
    longest = max(windows(model), default=0)
    return found.checked(lengths, longest if longest >= max(lengths) else None)


def windows(model: nn.Module) -> tuple[int, ...]:
    """The lengths of windows and chunks that the modules and their configs name, ascending."""
    found = set()
    for module in model.modules():
        config = getattr(module, "config", None)
        for fields in (vars(module), getattr(config, "__dict__", {})):
            for name, value in fields.items():
                if _WINDOW.fullmatch(name) and not _NO_WINDOW.fullmatch(name):
                    values = value if isinstance(value, list | tuple) else [value]
                    found |= {one for one in values if type(one) is int and one > 1}
    return tuple(sorted(found))


def lengths_of(model: nn.Module, most: int = MOST) -> tuple[int, ...]:
    """The length of a short text, and of a longer one: `LONGER` tokens more than the longest window with which these are at
    most `most`, and at least three times the short one.
    """
    reached = [one + LONGER for one in windows(model) if one + LONGER <= most]
    return tuple(dict.fromkeys((min(SHORT, most), min(most, max([3 * SHORT, *reached])))))


class _Found:
    """The results of the checks, collected over several texts."""

    def __init__(self) -> None:
        self.errors: dict[str, float] = {}
        self.inexact: dict[str, None] = {}
        self.mixing: dict[str, None] | None = None
        self.moved: dict[str, None] = {}
        self.unmatched: dict[str, None] = {}
        self.escaped: dict[tuple[str, object], Message] = {}
        self.outside: dict[str, None] = {}

    def checked(self, lengths: tuple[int, ...] = (), window: int | None = None) -> Checked:
        harmless = self.mixing is not None and not self.mixing
        escaped = [
            said
            for what, said in self.escaped.items()
            if not (harmless and isinstance(what, tuple) and what[0] in _HARMLESS)
        ]
        mixing, moved = (None, None) if self.mixing is None else (tuple(self.mixing), tuple(self.moved))
        outside, unmatched = ((), ()) if self.mixing is None else (tuple(self.outside), tuple(self.unmatched))
        inexact = tuple(self.inexact)
        return Checked(self.errors, inexact, mixing, moved, tuple(escaped), lengths, window, outside, unmatched)

    def tried(self, model: nn.Module, run: Callable[[], object], heard: Callable[[float], None]) -> None:
        """Runs the checks on one text; `heard` is called after each run with the share that is done."""
        trace = _run(model, run, (), escaped=self.escaped)
        self.outside |= dict.fromkeys(one.site for one in trace.attention if not one.stack)
        for one in trace.attention:
            error = one.error()
            self.errors[one.site] = max(self.errors.get(one.site, 0.0), error)
            z = one.steps[0][0].z
            if z is None or not error <= EXACT.get(z.dtype, 1e-4):
                self.inexact[one.site] = None
        stacks: dict[str, Tensor] = {}
        for point in trace.points:
            if point.block == -1:
                stacks.setdefault(point.stack, point.x)
        runs = 2 + 4 * len(stacks)
        heard(1 / runs)
        if not stacks:
            return
        self.mixing = self.mixing or {}
        silent = HeadEdit(None, z=0.0) if trace.calls else None
        base = _run(model, run, (silent,))
        done = 2
        heard(done / runs)
        for stack, x in stacks.items():
            dim, n = _tokens_of(trace, stack, x)
            kin = _kin(trace, stack)
            for row in sorted({0, n // 2}):
                edit = StreamEdit(stack, lambda x, dim=dim, row=row: _turned(x, dim, row), 0)  # type: ignore[misc]
                other = _run(model, run, (silent, edit))
                if [len(base.points), len(base.calls)] != [len(other.points), len(other.calls)]:
                    self.mixing[stack] = None  # which modules run depends on the numbers
                    continue
                if not all(
                    _same_elsewhere(a.x, b.x, dim, row if a.stack in kin else None)
                    for a, b in zip(base.points, other.points, strict=True)
                ):
                    names = _mixers(model, run, (silent,), (silent, edit), dim, row, n)
                    self.mixing |= dict.fromkeys(names or [stack])
                self._moved(base, other, kin, row, n)
                done += 2
                heard(done / runs)

    def _moved(self, base: RecordedTrace, other: RecordedTrace, kin: frozenset[str], row: int, n: int) -> None:
        for a, b in zip(base.attention, other.attention, strict=True):
            sides = {"q": a.stack, "k": a.steps[0][0].keys_of, "v": a.steps[0][0].keys_of}
            for name, side in sides.items():
                try:
                    one, two = getattr(a, name), getattr(b, name)
                except TraceError:
                    continue
                own = row if side in kin else None
                if own is not None and one.shape[1] != n:
                    if not _is_later(base, a.steps[0][0]) or _n_changed(one, two) > 1:
                        self.unmatched[a.site] = None
                elif not _same_elsewhere(one, two, 1, own):
                    (self.moved if side else self.unmatched)[a.site] = None


def _kin(trace: RecordedTrace, stack: str) -> frozenset[str]:
    """The lists of blocks that a stream alternates between: their rows are the same tokens."""
    names = [point.stack for point in trace.points]
    first, last = names.index(stack), len(names) - 1 - names[::-1].index(stack)
    among = set(names[first : last + 1])
    around = {name for name in names if names.index(name) < first and name in names[last:]}
    return frozenset(among | around)


def _run(
    model: nn.Module,
    run: Callable[[], object],
    edits: tuple[Any, ...],
    heard: Any = None,
    escaped: dict[tuple[str, object], Message] | None = None,
) -> RecordedTrace:
    recorder = Recorder(model, tuple(edit for edit in edits if edit is not None), heard=heard)
    with torch.no_grad(), recorder:
        run()
    if escaped is not None:
        escaped |= recorder.escaped
    return RecordedTrace.of(recorder)


def _tokens_of(trace: RecordedTrace, stack: str, x: Tensor) -> tuple[int, int]:
    """The dimension of the tokens in a stream, and their number."""
    call = next((call for call in trace.calls if call.stack == stack), None)
    n, batch = (call.n_q, call.batch) if call else (None, 1)
    if x.dim() == 2:
        return 0, x.shape[0]
    if x.shape[0] == n != batch and x.shape[1] == batch:
        return 0, x.shape[0]
    dim = next((at for at in range(1, x.dim() - 1) if x.shape[at] == n), 1)
    return dim, x.shape[dim]


def _turned(x: Tensor, dim: int, row: int) -> Tensor:
    x = x.clone()
    one = x.select(dim, row)
    one.copy_(one.roll(1, -1) + 0.1 * x.std())
    return x


def _same_elsewhere(a: Tensor, b: Tensor, dim: int, row: int | None) -> bool:
    """Whether two tensors are equal outside one row."""
    if a.shape != b.shape:
        return False
    if row is not None and a.dim() > dim and row < a.shape[dim]:
        rest = [at for at in range(a.shape[dim]) if at != row]
        a, b = (x.index_select(dim, torch.tensor(rest, dtype=torch.long, device=x.device)) for x in (a, b))
    if not a.numel():
        return True
    bound = _SAME * max(1.0, float(a.abs().max()))
    return bool(((a - b).abs() <= bound).logical_or(a == b).all())


def _is_later(trace: RecordedTrace, call: Call) -> bool:
    """Whether the blocks of a call had run before in the same forward, such as one that generates with a cache."""
    passes = sum((one.name, one.forward) == (call.stack, call.forward) for one in trace.points)
    calls = sum((one.site, one.forward) == (call.site, call.forward) for one in trace.calls)
    return passes > 1 and call.call >= calls // passes


def _n_changed(a: Tensor, b: Tensor) -> int:
    """The number of rows of two tensors [h, rows, d] that differ."""
    bound = _SAME * max(1.0, float(a.abs().max()))
    return int(((a - b).abs() > bound).any(-1).any(0).sum()) if a.shape == b.shape else a.shape[1]


def _mixers(model: nn.Module, run: Callable[[], object], one: Any, two: Any, dim: int, row: int, n: int) -> list[str]:
    """The innermost modules whose inputs differ in one row only, and whose outputs differ in others."""

    def collect(edits: Any) -> list[tuple[str, list[Tensor], list[Tensor]]]:
        found: list[tuple[str, list[Tensor], list[Tensor]]] = []

        def heard(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
            given, made = (_rows(value, dim, n) for value in ((args, list(kwargs.values())), out))
            found.append((name, given, made))

        _run(model, run, edits, heard)
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
