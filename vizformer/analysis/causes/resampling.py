"""Resample ablation: what the answer becomes where a part puts out what it put out for another text.

Zero is a number that the rest of the model may never have seen in that place, and a mean is one that no text gives; the
output for another text is one that it knows, and says nothing of this one.  Which text it is, is drawn:

    effect = (1 / D) sum over draws of effect(P, P'_draw)

with the effects of `ablation`, and their standard deviation over the draws beside it.  In one draw all
parts are taken from the same text.  A position takes the row of its own number there; where the other text has ended, a row
of it that is drawn as well.

Source: Chan et al. 2022, "Causal Scrubbing: a method for rigorously testing interpretability hypotheses" (resampling
ablation); Zhang & Nanda 2023, "Towards Best Practices of Activation Patching", section 2 (against zeros and means).
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vizformer.analysis.causes.ablation import Effect, Part, effect, parts_of
from vizformer.analysis.causes.batches import at_once, inputs
from vizformer.analysis.causes.part_outputs import Outputs
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.model import Edit, Patch, Trace
from vizformer.model.input_check import row_at, token_id


def draw_outputs(trace: Trace, others: Sequence[Outputs], draws: int, seed: int = 0) -> tuple[Outputs, ...]:
    """Outputs in the shape of a trace, one for each draw, each from one of the other texts.

    Args:
        others: of `outputs_of`, text by text.
        seed: the same seed draws the same.

    Raises:
        TraceError: there is no other text.
    """
    if not others:
        raise TraceError("There is no other text from which outputs could be taken.")
    rng, found = np.random.default_rng(seed), list[Outputs]()
    for _ in range(draws):
        other = others[int(rng.integers(len(others)))]
        rows = {stack: _rows(len(tokens), _length(other, stack), rng) for stack, tokens in trace.tokens.items()}
        found.append({part: z[rows[part.sublayer.partition(".")[0]]] for part, z in other.items()})
    return tuple(found)


def _length(outputs: Outputs, stack: str) -> int:
    return next(len(z) for part, z in outputs.items() if part.sublayer.startswith(stack))


def _rows(n: int, there: int, rng: np.random.Generator) -> Tensor:
    """For each of n positions its own number where the other text has one, else a number that is drawn."""
    drawn = rng.integers(there, size=n)
    return torch.from_numpy(np.where(np.arange(n) < there, np.arange(n), drawn))


@torch.inference_mode()
def resampled_logits(
    checkpoint: Checkpoint,
    trace: Trace,
    parts: Iterable[Part],
    drawn: Sequence[Outputs],
    *,
    rows: slice = slice(None),
) -> Float[Tensor, "draws rows vocab_size"]:
    """The same tokens with the outputs of each draw in the place of those of some parts.

    What was set by hand in `trace` is set here too.

    Args:
        rows: of the output that are kept; of many draws of a long text all of them take much memory.

    Raises:
        TraceError: a part that the model does not have.
    """
    return torch.cat([logits[:, rows].clone() for logits in _runs(checkpoint, trace, parts, drawn)])


@torch.inference_mode()
def _runs(
    checkpoint: Checkpoint, trace: Trace, parts: Iterable[Part], drawn: Sequence[Outputs]
) -> Iterator[Float[Tensor, "b n vocab_size"]]:
    """The logits of some draws after the other, as many as fit into a batch."""
    wanted, edit = tuple(parts), trace.edit or Edit()
    for part in wanted:
        if part not in drawn[0]:
            raise TraceError("There is nothing called {name} to edit in this model.", name=part.sublayer)
    size = 1 if edit.cells else at_once(checkpoint, trace)  # numbers set by hand reach the first item of a batch alone
    for first in range(0, len(drawn), size):
        group = drawn[first : first + size]
        patches = (_patch(part, torch.stack([outputs[part] for outputs in group])) for part in wanted)
        whole = Edit(edit.cells, edit.unscaled, edit.temperatures, (*edit.patches, *patches), edit.skipped)
        ids, segments = inputs(checkpoint, trace, len(group))
        yield checkpoint.model(*ids, segments=segments, edit=whole)


def mean_log_probabilities(logits: Float[Tensor, "draws n vocab_size"], row: int) -> Float[Tensor, " vocab_size"]:
    """ln of the mean probability of every token at a row of the output, over the draws."""
    return logits[:, row].double().log_softmax(-1).logsumexp(0) - math.log(len(logits))


def _patch(part: Part, value: Float[Tensor, "draws n d"]) -> Patch:
    return Patch(part.sublayer, (), value) if part.head is None else Patch(f"{part.sublayer}.z", (part.head,), value)


def resampled_effect(
    checkpoint: Checkpoint, trace: Trace, parts: Collection[Part], drawn: Sequence[Outputs], row: int, token: int
) -> Effect:
    """What the outputs of other texts in the place of some parts, all at once, change on average over the draws.

    Raises:
        TraceError: as `resampled_logits`.
    """
    first = next(iter(parts))
    runs = _runs(checkpoint, trace, parts, drawn)
    return mean_effect([effect(trace, first, trace.logits, one, row, token) for logits in runs for one in logits])


def mean_effect(effects: Sequence[Effect]) -> Effect:
    """The mean of effects of one part, with the standard deviation of their divergences as `spread`."""
    losses = [one.loss for one in effects if one.loss is not None]
    divergences = [one.divergence for one in effects]
    return Effect(
        effects[0].part,
        divergence=float(np.mean(divergences)),
        logit=float(np.mean([one.logit for one in effects])),
        probability=float(np.mean([one.probability for one in effects])),
        loss=float(np.mean(losses)) if losses else None,
        spread=float(np.std(divergences)),
    )


def resample_sweep(
    checkpoint: Checkpoint,
    trace: Trace,
    row: int,
    token: int,
    drawn: Sequence[Outputs],
    *,
    parts: Sequence[Part] | None = None,
    heard: Callable[[int, int], None] | None = None,
) -> tuple[Effect, ...]:
    """One part after the other; as `vizformer.analysis.causes.ablation.sweep`, with a run for each draw.

    Args:
        drawn: of `draw_outputs`.
        heard: is told after each part how many runs are done, and how many there are; what it raises ends the sweep.
    """
    wanted = parts_of(trace) if parts is None else parts
    row, token = row_at(row, len(trace.logits)), token_id(token, trace.logits.shape[1])
    found = list[Effect]()
    for done, part in enumerate(wanted, start=1):
        found.append(resampled_effect(checkpoint, trace, [part], drawn, row, token))
        if heard is not None:
            heard(done * len(drawn), len(wanted) * len(drawn))
    return tuple(found)
