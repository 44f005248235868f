"""Many runs of a model over the tokens of a trace, each with patches of its own, many of them in one batch.

A run has the numbers of the trace up to its first patch, so that it begins there: at the layer of this patch and, in a
decoder, where no position sees what comes after it, at the position of it, with the keys and values of those before
from the trace.  Only the rows that are read meet the vocabulary.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.masks import rerun
from vizformer.checkpoints import AnyCheckpoint
from vizformer.model import Cache, Edit, Patch, Trace
from vizformer.model.block import Block
from vizformer.model.edit import POSITION
from vizformer.model.forward_pass import ForwardPass

MOST_ITEMS = 64  # of a batch
MOST_TOKENS = 2048  # of a batch, both stacks counted: what one forward may hold at once
MOST_LOGITS = 2**26  # numbers that come out of one forward: 256 MiB in float32
MOST_BESIDE = 16  # items whose patches are at positions of their own: the batch begins at the first of these
Heard = Callable[[int, int], None]
"""A callback that gets the runs done and their total after each batch; an exception that it raises ends the work."""


class Start(NamedTuple):
    """Where a run departs from the trace; they are ordered as the forward goes.

    Attributes:
        stack: "encoder" or "decoder"; the former comes first.
        layer: that is the first to be computed; the number of layers for the end of the stack.
        position: the first one whose numbers change.
    """

    later: bool
    layer: int
    position: int = 0

    @property
    def stack(self) -> str:
        return "decoder" if self.later else "encoder"


def start_of(checkpoint: AnyCheckpoint, tensors: Sequence[str]) -> Start:
    """Where a run that changes these tensors ("decoder.2.self.z") departs from the trace; the end without any."""
    config, last = checkpoint.model.config, "encoder" if checkpoint.model.decoder is None else "decoder"
    found = []
    for tensor in (*tensors, f"{last}.final"):
        stack, layer = tensor.split(".")[:2]
        found.append(Start(stack == "decoder", config.layers_of(stack) if layer == "final" else int(layer)))
    return min(found)


def _start(checkpoint: AnyCheckpoint, run: Sequence[Patch], row: int | None, first: int) -> Start:
    start = start_of(checkpoint, [patch.tensor for patch in run])
    if row is None or not start.later:
        return start
    at = [first if (place := _position(patch)) is None else place for patch in run]
    return start._replace(position=min([row, *at]))


def _position(patch: Patch) -> int | None:
    """The position that a patch changes; None where it changes all positions."""
    at = POSITION.get(patch.tensor.rpartition(".")[2], 0)
    return patch.index[at] if len(patch.index) > at else None


def at_once(checkpoint: AnyCheckpoint, length: int, rows: int) -> int:
    """The largest batch of runs: `length` tokens each, both stacks counted, with logits read at `rows` rows of each."""
    room = MOST_LOGITS // (rows * checkpoint.model.config.vocab_size)
    return max(1, min(MOST_ITEMS, MOST_TOKENS // length, room))


def inputs(checkpoint: AnyCheckpoint, trace: Trace, items: int) -> tuple[list[Tensor], Tensor | None]:
    """The ids of a run for a batch of copies [items, n], stack by stack, and its segments where it has such."""
    ids = [checkpoint.tensor(tokens).expand(items, -1) for tokens in trace.tokens.values()]
    segments = None
    if len(ids) == 1:
        segments = checkpoint.segments(next(iter(trace.tokens.values())))
    return ids, None if segments is None else segments.expand(items, -1)


def resumed(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    start: Start,
    x: Float[Tensor, "b n_x d_model"],
    edit: Edit | None = None,
    *,
    row: int | None = None,
) -> Float[Tensor, "b *n_out d_model"]:
    """The output of the last stack where `x` enters a layer from a position on; everything earlier is as in the trace.

    Args:
        row: the only row that is returned; the last layer of a decoder then computes no other one.
    """
    model, items, first = checkpoint.model, len(x), start.position
    ids = {stack: checkpoint.tensor(tokens).expand(items, -1) for stack, tokens in trace.tokens.items()}
    if not start.later:
        assert model.encoder is not None
        x = model.encoder(x, model.forward_pass("encoder", ids["encoder"], edit=edit), first=start.layer)
        x = x if model.decoder is None else model.decode(ids["decoder"], x, edit=edit)
        return x if row is None else x[:, row]
    assert model.decoder is not None
    cache, layers, at = Cache(length=first), model.decoder.layers, start.layer
    memory = None if model.encoder is None else trace.residual("encoder.final").expand(items, -1, -1)
    for site in trace.sites if first else ():
        record, before = trace[site], slice(None) if site.endswith("cross") else slice(first)
        cache.keys[site] = record.k[:, before].expand(items, -1, -1, -1)
        cache.values[site] = record.v[:, before].expand(items, -1, -1, -1)

    def run(begin: int, end: int) -> ForwardPass:
        return model.forward_pass("decoder", ids["decoder"][:, begin:end], memory=memory, edit=edit, cache=cache)

    last = len(layers) - 1
    whole = run(first, first + x.shape[1])
    if row is None or row == first or at >= last or _touches(edit, f"decoder.{last}."):
        x = model.decoder(x, whole, first=at)
        return x if row is None else x[:, row - first]
    for layer in range(at, last):
        x = layers[layer](x, whole, f"decoder.{layer}")
    block: Block = layers[last]  # type: ignore[assignment]
    read = block.around("self").enter(x[:, : row - first])
    block.self_attention.keys_and_values(read, run(first, row), f"decoder.{last}.self")  # are left in the cache
    cache.length = row
    x = model.decoder(x[:, row - first : row - first + 1], run(row, row + 1), first=last)
    return x[:, 0]


def _touches(edit: Edit | None, layer: str) -> bool:
    return edit is not None and any(patch.tensor.startswith(layer) for patch in edit.patches)


def entering(trace: Trace, start: Start, items: int) -> Float[Tensor, "b n d_model"]:
    """The input rows of the layer at which runs start, from the position of the start on."""
    name = f"{start.stack}.{start.layer}.pre"
    x = trace.residual(name if name in trace.residuals else f"{start.stack}.{start.layer - 1}.post")
    return x[start.position :].expand(items, *x[start.position :].shape)


@torch.inference_mode()
def logits_of_runs(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    starts: Sequence[Start],
    edit_of: Callable[[Sequence[int], int], Edit],
    row: int | None = None,
    heard: Heard | None = None,
) -> Iterator[tuple[list[int], Float[Tensor, "b *n vocab_size"]]]:
    """Batch by batch which runs were done, and their logits, at one row or at all.

    What was set by hand in `trace` has to be in the edits as well; then a run begins at the beginning.

    Args:
        starts: where each run departs from the trace.
        edit_of: of some runs the edit of a batch of them in this order, and the position at which it begins.
    """
    order, done, model = sorted(range(len(starts)), key=starts.__getitem__), 0, checkpoint.model
    rows = len(trace.logits) if row is None else 1
    lengths = {stack: len(tokens) for stack, tokens in trace.tokens.items()}
    while done < len(order):
        start = starts[order[done]]
        length = sum(lengths.values()) if not start.later else lengths["decoder"] - start.position
        size = at_once(checkpoint, length, rows)
        if trace.edit is not None and trace.edit.cells:
            size = 1  # numbers set by hand reach the first item of a batch alone
        elif trace.edit is None and starts[order[min(done + size, len(order)) - 1]].position > start.position:
            size = min(size, MOST_BESIDE)
        there = order[done : done + size]
        if trace.edit is None:
            there = [each for each in there if starts[each][:2] == start[:2]]
            x = entering(trace, start, len(there))
            logits = model.logits(resumed(checkpoint, trace, start, x, edit_of(there, start.position), row=row))
        else:
            ids, segments = inputs(checkpoint, trace, len(there))
            at = None if row is None else (slice(None), row)
            logits = model(*ids, segments=segments, edit=edit_of(there, 0), rows=at)
        done += len(there)
        yield there, logits
        if heard is not None:
            heard(done, len(order))


def patched_logits(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    runs: Sequence[Sequence[Patch]],
    row: int | None = None,
    heard: Heard | None = None,
    *,
    first: int = 0,
) -> Iterator[tuple[list[int], Float[Tensor, "b *n vocab_size"]]]:
    """The logits of runs with patches of their own, added to the edit of `trace`, as `logits_of_runs` yields them.

    Args:
        first: a position before which the values of no patch of a decoder differ from what is there; values of all
            positions have then a row for each.

    Raises:
        TraceError: a patch of what is not there.
    """
    if not checkpoint.is_own:
        return _one_by_one(checkpoint, trace, runs, row, heard)
    base = trace.edit or Edit()
    Edit(patches=tuple(itertools.chain(*runs))).check(trace.editable())

    def edit_of(there: Sequence[int], first: int) -> Edit:
        own = (_moved(patch, first, item) for item, run in enumerate(there) for patch in runs[run])
        return replace(base, patches=(*base.patches, *own))

    starts = [_start(checkpoint, run, row, first) for run in runs]
    return logits_of_runs(checkpoint, trace, starts, edit_of, row, heard)


def _one_by_one(
    checkpoint: AnyCheckpoint, trace: Trace, runs: Sequence[Sequence[Patch]], row: int | None, heard: Heard | None
) -> Iterator[tuple[list[int], Float[Tensor, "1 *n vocab_size"]]]:
    """The logits of runs of recorded code, which computes one whole forward for each run."""
    base = trace.edit or Edit()
    for number, run in enumerate(runs):
        logits = rerun(checkpoint, trace.tokens, replace(base, patches=(*base.patches, *run))).logits
        yield [number], (logits if row is None else logits[row])[None]
        if heard is not None:
            heard(number + 1, len(runs))


def _moved(patch: Patch, first: int, item: int) -> Patch:
    """The patch in an item of a batch that begins at a position."""
    index, value, at = patch.index, patch.value, POSITION.get(patch.tensor.rpartition(".")[2], 0)
    if first and _position(patch) is None:
        value = value[..., first:, :]  # type: ignore[index]
    elif first:
        index = tuple(i - first if place == at and i is not None else i for place, i in enumerate(index))
    return Patch(patch.tensor, index, value, patch.adds, item)


def judged(
    batches: Iterator[tuple[list[int], Tensor]], count: int, judge: Callable[[Tensor], Float[ndarray, "*shape b"]]
) -> Float[ndarray, "*shape runs"]:
    """Applies `judge` to the logits of each batch and puts the results in the order of the runs."""
    found: Float[ndarray, "*shape runs"] | None = None
    for there, logits in batches:
        values = judge(logits)
        found = np.zeros((*values.shape[:-1], count)) if found is None else found
        found[..., there] = values
    return np.zeros(0) if found is None else found


def gradients(
    checkpoint: AnyCheckpoint, trace: Trace, tensors: Mapping[str, Tensor], row: int, judge: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    """d judge(logits at a row) / dx, by zeros that are added to each tensor of a run and want a gradient.

    Args:
        tensors: by the names that patches have for them; of each the gradient has the shape.
    """
    with torch.inference_mode(False), torch.enable_grad():
        zeros = {name: torch.zeros_like(x, requires_grad=True) for name, x in tensors.items()}
        edit = Edit(patches=tuple(Patch(name, (), zero, adds=True) for name, zero in zeros.items()))
        ids, segments = inputs(checkpoint, trace, 1)
        copies, segments = [one.clone() for one in ids], None if segments is None else segments.clone()
        logits = checkpoint.model(*copies, segments=segments, edit=edit, rows=(0, row))
        found = torch.autograd.grad(judge(logits), list(zeros.values()))
    return dict(zip(zeros, found, strict=True))
