"""Whether a folder's model does the same here as the code of `transformers`, recorded while it runs the same tokens."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from vizformer.checkpoints.opening import Opened, load_recorded
from vizformer.checkpoints.tensors.memory import DTYPES, name_of
from vizformer.errors import CheckpointError

TOLERANCE = 1e-5
ROUNDINGS = 32  # units in the last place of half precision: both round many times in every layer, at other places


@dataclass(frozen=True)
class Agreement:
    """The difference between our numbers and theirs on one text: max |ours - theirs| / max(1, |theirs|, size of its row).

    The size of a row is its root mean square: both round sums of such numbers.  In bfloat16 and float16 32 units in the
    last place are allowed, 32 eps.
    """

    tokens: int
    maps: float  # the difference of the attention weights of all heads
    z: float  # the difference of z, the weighted sums of the values
    logits: float | None  # the difference of the logits; None where the weights have no head
    version: str
    dtype: str = "float32"

    @property
    def tolerance(self) -> float:
        dtype = DTYPES[self.dtype]
        return ROUNDINGS * torch.finfo(dtype).eps if dtype.itemsize < 4 else TOLERANCE

    @property
    def units(self) -> int:
        """The tolerance in units in the last place: tolerance / eps of the dtype."""
        return round(self.tolerance / torch.finfo(DTYPES[self.dtype]).eps)

    @property
    def largest(self) -> float:
        return max(self.maps, self.z, self.logits or 0.0)

    @property
    def holds(self) -> bool:
        return self.largest <= self.tolerance


def is_possible() -> bool:
    """Whether `transformers` is installed; it is not imported for the question."""
    return find_spec("transformers") is not None


def agreement(ours: Opened, folder: Path, text: str) -> Agreement:
    """Runs the tokens of a text through both, in the precision of `ours` and where it is.

    Raises:
        CheckpointError: not a folder in the layout of `transformers`; or it does not open there, or not into memory beside
            `ours`, or attends to other tokens.
        VizformerError: as `Checkpoint.trace`.
    """
    if not is_possible() or ours.report.format != "hugging-face":
        raise CheckpointError(
            "VizFormer compares only folders in Hugging Face layout, and only where transformers is installed."
        )
    trace = ours.trace(text)
    ids, *target = ([token.id for token in tokens] for tokens in trace.tokens.values())
    theirs = load_recorded(folder, ours.dtype, ours.device).trace(ids=ids, target_ids=target[0] if target else None)
    if any(trace[site].q.shape != theirs[site].q.shape for site in trace.sites if site in theirs.sites) or set(
        trace.sites
    ) != set(theirs.sites):
        raise CheckpointError(
            "Its code in `transformers` returns no attention map of these tokens for every head, so it "
            "cannot be compared."
        )
    heads = [(trace[site], theirs[site], head) for site in trace.sites for head in range(trace[site].n_heads)]
    return Agreement(
        tokens=len(ids) + sum(map(len, target)),
        maps=_largest((one.pattern(head), other.pattern(head)) for one, other, head in heads),
        z=_largest((one.z(head), other.z(head)) for one, other, head in heads),
        logits=_largest([(trace.logits, theirs.logits)]) if ours.report.has_head else None,
        version=__import__("transformers").__version__,
        dtype=name_of(ours.dtype),
    )


def _largest(pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    return max((_apart(torch.as_tensor(one), torch.as_tensor(other)) for one, other in pairs), default=0.0)


def _apart(ours: Tensor, theirs: Tensor) -> float:
    ours, theirs = ours.double(), theirs.double()
    row = theirs.square().mean(-1, keepdim=True).sqrt()
    scale = torch.maximum(theirs.abs().clamp(min=1), row)
    return float(((ours - theirs).abs() / scale).max())
