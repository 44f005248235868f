"""Many runs of a model over the same tokens in one batch, each with an intervention of its own (`Patch.item`)."""

from torch import Tensor

from vizformer.checkpoints import Checkpoint
from vizformer.model import Trace

MOST_ITEMS = 64  # of a batch
MOST_TOKENS = 2048  # of a batch, both stacks counted: what one forward may hold at once
MOST_LOGITS = 2**26  # numbers that come out of one forward: 256 MiB in float32


def at_once(checkpoint: Checkpoint, trace: Trace) -> int:
    """How many runs over the tokens of a trace one batch may hold."""
    length = sum(map(len, trace.tokens.values()))
    room = MOST_LOGITS // (len(trace.logits) * checkpoint.model.config.vocab_size)
    return max(1, min(MOST_ITEMS, MOST_TOKENS // length, room))


def inputs(checkpoint: Checkpoint, trace: Trace, items: int) -> tuple[list[Tensor], Tensor | None]:
    """The ids of a run for a batch of copies [items, n], stack by stack, and its segments where it has such."""
    ids = [checkpoint.tensor(tokens).expand(items, -1) for tokens in trace.tokens.values()]
    segments = None
    if len(ids) == 1:
        segments = checkpoint.segments(next(iter(trace.tokens.values())))
    return ids, None if segments is None else segments.expand(items, -1)
