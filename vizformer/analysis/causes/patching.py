"""Activation patching: which numbers of the clean run, put into the corrupted one, bring the clean answer back?

Two prompts of equal length differ in a word or two, so that the model's answer differs.  With LD the logit of the clean
answer less that of the corrupted one, at one row of the output, a number of the forward is judged by

    recovered = (LD(patched) - LD(corrupted)) / (LD(clean) - LD(corrupted))

where "patched" is the corrupted prompt with that number taken from the clean run: 0 where it says nothing of what differs,
1 where all of it comes through there.  Below 0 or above 1 is possible.  It is one forward for each number, many of them in
one batch.

Attribution patching is the estimate of all of them from one gradient on the corrupted run, by a first-order Taylor step:

    recovered ~ sum((clean - corrupted) * dLD/dx) / (LD(clean) - LD(corrupted))

It is exact where LD is linear in between, and not where a softmax is saturated or a norm's divisor changes.

Source: Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis"; Meng et al. 2022,
"Locating and Editing Factual Associations in GPT"; Zhang & Nanda 2023, "Towards Best Practices of Activation Patching";
Nanda 2023, "Attribution Patching: Activation Patching At Industrial Scale".
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.causes.batches import Heard, gradients, judged, patched_logits
from vizformer.analysis.causes.prompt_pairs import PromptPair
from vizformer.analysis.frames import frame
from vizformer.analysis.heads.maps import Kind, as_table, kinds, n_layers, site_name
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model import Patch, Trace

What = Literal["stream", "heads", "heads_by_position", "patterns"]


@dataclass(frozen=True)
class Patched:
    """The share of the logit difference that patching each activation of one kind recovers.

    Attributes:
        what: "stream": a row of the residual stream; "heads": the output z of a head at all positions, or at one
            ("heads_by_position"); "patterns": where a head looks, with the values of the corrupted run.
        kind: of attention; for the stream, "encoder" or "decoder" is the stack.
        names: of the rows of the tables: points of the stream, or sites.
        recovered: measured, [points, positions], [layers, heads] or [layers, heads, positions]; NaN where a layer has
            fewer heads than another.
        estimate: by the gradient, of the same shape; NaN of recorded code.
    """

    what: What
    kind: Kind
    names: tuple[str, ...]
    recovered: Float[ndarray, "*shape"]
    estimate: Float[ndarray, "*shape"]

    def to_frame(self) -> Any:
        """A DataFrame: a row for each number that was put in, the largest |recovered| first."""
        columns = ("position",) if self.what == "stream" else ("head", "position")
        cells = np.argwhere(np.isfinite(self.recovered)).tolist()
        return frame(
            {"place": self.names[at[0]]}
            | dict(zip(columns, at[1:], strict=False))
            | {"recovered": self.recovered[tuple(at)], "estimate": self.estimate[tuple(at)]}
            for at in sorted(cells, key=lambda at: -abs(self.recovered[tuple(at)]))
        )

    @property
    def error(self) -> float:
        """The largest difference between estimate and measurement."""
        return float(np.nanmax(np.abs(self.estimate - self.recovered)))

    @property
    def mean_error(self) -> float:
        return float(np.nanmean(np.abs(self.estimate - self.recovered)))

    @property
    def agreement(self) -> float:
        """The correlation of estimate and measurement; NaN where one of them is the same everywhere."""
        flat = [x[np.isfinite(self.recovered)] for x in (self.recovered, self.estimate)]
        if min(x.std() for x in flat) < 1e-12:
            return float("nan")
        return float(np.corrcoef(*flat)[0, 1])


def patch_runs(
    checkpoint: AnyCheckpoint,
    pair: PromptPair,
    what: What,
    kind: Kind,
    *,
    layers: Sequence[int] | None = None,
    heard: Heard | None = None,
) -> Patched:
    """Patches the corrupted run with every number of one kind, one at a time, and estimates the same by one gradient.

    Args:
        layers: of the attention, those of the table; all where nothing is said.  The stream always has all its points.

    Raises:
        TraceError: the model has no such attention, or no such layer.
    """
    names, patches, cells = _wanted(pair, what, kind, layers)
    recovered = recovered_by(checkpoint, pair, patches, heard)
    estimate = _estimated(checkpoint, pair, patches) if checkpoint.is_own else np.full(len(patches), np.nan)
    return Patched(what, kind, names, as_table(cells, recovered), as_table(cells, estimate))


def recovered_by(
    checkpoint: AnyCheckpoint, pair: PromptPair, patches: Sequence[Patch], heard: Heard | None = None
) -> Float[ndarray, " patches"]:
    """The share that each patch with clean values recovers alone in the corrupted run; see the module."""
    runs, first = [[one] for one in patches], min(pair.row, pair.first_difference)
    batches = patched_logits(checkpoint, pair.corrupted, runs, pair.row, heard, first=first)
    return judged(batches, len(runs), pair.recovered_at_row)


def attribution_patches(
    checkpoint: AnyCheckpoint, pair: PromptPair, what: What, kind: Kind, *, layers: Sequence[int] | None = None
) -> Float[ndarray, "*shape"]:
    """Attribution patching alone: the `estimate` of `patch_runs`, by one forward and one gradient for all cells.

    Raises:
        TraceError: as `patch_runs`.
    """
    __, patches, cells = _wanted(pair, what, kind, layers)
    return as_table(cells, _estimated(checkpoint, pair, patches))


def patch_of(pair: PromptPair, what: What, kind: Kind, cell: Sequence[int]) -> Patch:
    """The patch of one cell of the whole table, for a forward of its own: Edit(patches=(patch_of(...),)).

    Raises:
        TraceError: as `patch_runs`; a cell outside the table.
    """
    layers = None if what == "stream" else cell[:1]
    __, patches, cells = _wanted(pair, what, kind, layers)
    at = tuple(cell) if what == "stream" else (0, *cell[1:])
    if at not in cells:
        raise TraceError("There is no cell {cell} in this table (counted from 0).", cell=str(list(cell)))
    return patches[cells.index(at)]


def _wanted(
    pair: PromptPair, what: What, kind: Kind, chosen: Sequence[int] | None
) -> tuple[tuple[str, ...], list[Patch], list[tuple[int, ...]]]:
    """The rows of the table, a patch for each of its cells, and these cells."""
    clean = pair.clean
    if kind not in kinds(clean) or (what == "stream" and kind == "cross"):
        raise TraceError(
            "This model has no {kind} attention; it has: {known}.", kind=kind, known=", ".join(kinds(clean))
        )
    layers, n = n_layers(clean, kind), len(clean.tokens["encoder" if kind == "encoder" else "decoder"])
    if what == "stream":
        names = (*(f"{kind}.{layer}.pre" for layer in range(layers)), f"{kind}.final")
        points = list(itertools.product(range(len(names)), range(n)))
        return names, [Patch(names[at], (i,), clean.residual(names[at])[i]) for at, i in points], [*points]
    which = range(layers) if chosen is None else chosen
    if not which or not all(0 <= layer < layers for layer in which):
        raise TraceError("This attention has the layers 0 to {last}.", last=layers - 1)
    names = tuple(site_name(kind, layer) for layer in which)
    heads = [(at, head) for at, name in enumerate(names) for head in range(clean[name].n_heads)]
    if what == "patterns":
        return names, [Patch(f"{names[a]}.pattern", (h,), clean[names[a]].pattern(h)) for a, h in heads], [*heads]
    zs = [(f"{names[at]}.z", head, clean[names[at]].z(head)) for at, head in heads]
    if what == "heads":
        return names, [Patch(name, (head,), z) for name, head, z in zs], [*heads]
    patches = [Patch(name, (head, i), z[i]) for name, head, z in zs for i in range(n)]
    return names, patches, [(*cell, i) for cell in heads for i in range(n)]


def _estimated(checkpoint: AnyCheckpoint, pair: PromptPair, patches: Sequence[Patch]) -> Float[ndarray, " patches"]:
    """The first-order estimate of each patch's effect, by the gradient on the corrupted run, as a share of `moved`."""
    before = {name: _value(pair.corrupted, name) for name in {patch.tensor for patch in patches}}
    slopes = gradients(checkpoint, pair.corrupted, before, pair.row, pair.difference_at_row)
    return np.array([_first_order(one, before[one.tensor], slopes[one.tensor]) for one in patches]) / pair.moved


@torch.inference_mode()
def _value(trace: Trace, tensor: str) -> Tensor:
    """A whole tensor of a run, by the name that a patch has for it."""
    site, _, part = tensor.rpartition(".")
    if part not in ("z", "pattern"):
        return trace.residual(tensor)
    record = trace[site]
    return torch.stack([record.z(h) if part == "z" else record.pattern(h) for h in range(record.n_heads)])


def _first_order(patch: Patch, before: Tensor, gradient: Tensor) -> float:
    """The change of LD that the gradient promises where `patch` takes the place of a part of `before`."""
    where = tuple(at for at in patch.index if at is not None)
    change = torch.as_tensor(patch.value, device=before.device).double() - before[where].double()
    return float((change * gradient[where].double()).sum())
