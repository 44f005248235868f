"""Recording the attention of any PyTorch model while its own code runs.

    trace = vf.record(model, ids)                              # everything after the model goes to its forward
    with vf.recording(model, tokens=tokens) as trace:          # around anything, also a generation
        model.generate(ids)
    trace["transformer.h.0.attn"].pattern(3)

record, recording   here; forget (takes its hooks off a model again)
the recorder        torch_calls, chain (from q k^T to the map), growing_rows (of a cache), hooks, calls, recorder
the code's steps    cells (which numbers a head and a query need), op_recorder (keeps them), op_steps
the lens            tail (what runs after the last block), shares (a logit as a sum over blocks), head_weights
what it hands back  recorded_trace, patches, form (scale, cap, mask, sinks: found and proved), reasons, as_trace
what is set, tried  edits; checks (of a model), proof (of a row that is drawn)
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from vizformer.errors import TraceError
from vizformer.recorder.checks import Checked, check, check_lengths, lengths_of
from vizformer.recorder.edits import HeadEdit, StreamEdit
from vizformer.recorder.hooks import forget as forget
from vizformer.recorder.op_steps import Again
from vizformer.recorder.patches import configs_of
from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace
from vizformer.recorder.recorder import Recorder


def record(model: nn.Module, *args: Any, **kwargs: Any) -> RecordedTrace:
    """Runs `model(*args, **kwargs)` once, without gradients, and returns a trace of its attention.

    Raises:
        TraceError: dropout on attention weights (call `model.eval()`), a compiled model, a run within torch.func; a thread
            that records already.
    """
    with torch.no_grad(), recording(model) as trace:
        model(*args, **kwargs)
    trace.again = Again(model, lambda: model(*args, **kwargs))
    return trace


@contextmanager
def recording(
    model: nn.Module,
    *,
    tokens: Sequence[str] = (),
    target_tokens: Sequence[str] = (),
    batch: int | None = None,
    edits: Sequence[HeadEdit | StreamEdit] = (),
) -> Iterator[RecordedTrace]:
    """Records every forward of a model in this thread within the block; other threads are not recorded.

    Args:
        tokens: the labels of the tokens of the first stack of blocks.
        target_tokens: those of the others.
        batch: how many texts go in at once. Default: read off the first input, [batch, n, ...], or
            [n, batch, ...] where the first side is as long as there are queries and the second is not; or off the stream
            where the first input has no texts.
        edits: the numbers set by hand.

    Raises:
        TraceError: as `record`; a model that is no `nn.Module`; at the end, edits that no call matched.
    """
    if not isinstance(model, nn.Module):
        raise TraceError("{kind} is no torch.nn.Module: only those are recorded.", kind=type(model).__name__)
    recorder = Recorder(model, edits, batch)
    labels = tuple(map(str, tokens)), tuple(map(str, target_tokens))
    trace = RecordedTrace.of(recorder, tokens=labels[0], target_tokens=labels[1])
    try:
        with recorder:
            yield trace
    finally:
        trace.escaped, trace.output = tuple(recorder.escaped.values()), recorder.output
        trace.stacks, trace.tail = recorder.stacks, recorder.tail  # parallel heads are not blocks any more
        trace.images, trace.configs = frozenset(recorder.images), configs_of(model, recorder.stacks)
