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
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.causes.ablation import Effect, Effects, Part, effects_of_runs, parts_of, patch_in_place
from vizformer.analysis.causes.batches import Heard, patched_logits
from vizformer.analysis.causes.part_outputs import Outputs
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.model import Patch, Trace


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


def resampled_logits(
    checkpoint: Checkpoint, trace: Trace, parts: Iterable[Part], drawn: Sequence[Outputs], *, rows: slice = slice(None)
) -> Float[Tensor, "draws rows vocab_size"]:
    """The same tokens with the outputs of each draw in the place of those of some parts.

    What was set by hand in `trace` is set here too.

    Args:
        rows: of the output that are kept; of many draws of a long text all of them take much memory.

    Raises:
        TraceError: a part that the model does not have.
    """
    batches = patched_logits(checkpoint, trace, _runs(tuple(parts), drawn))
    found = {run: one.clone() for there, logits in batches for run, one in zip(there, logits[:, rows], strict=True)}
    return torch.stack([found[run] for run in range(len(drawn))])


def _runs(parts: Collection[Part], drawn: Sequence[Outputs]) -> list[list[Patch]]:
    """The patches of each draw, all parts at once."""
    for part in parts:
        if part not in drawn[0]:
            raise TraceError("There is nothing called {name} to edit in this model.", name=part.sublayer)
    return [[patch_in_place(part, outputs[part]) for part in parts] for outputs in drawn]


def mean_log_probabilities(logits: Float[Tensor, "draws n vocab_size"], row: int) -> Float[Tensor, " vocab_size"]:
    """ln of the mean probability of every token at a row of the output, over the draws."""
    return logits[:, row].double().log_softmax(-1).logsumexp(0) - math.log(len(logits))


def resampled_effect(
    checkpoint: Checkpoint, trace: Trace, parts: Collection[Part], drawn: Sequence[Outputs], row: int, token: int
) -> Effect:
    """What the outputs of other texts in the place of some parts, all at once, change on average over the draws.

    Raises:
        TraceError: as `resampled_logits`.
    """
    values = effects_of_runs(checkpoint, trace, _runs(parts, drawn), row, token)
    return _mean_effect(next(iter(parts)), values)


def _mean_effect(part: Part, values: Float[ndarray, "4 draws"]) -> Effect:
    """With the standard deviation of the divergences as `spread`."""
    return Effect.of(part, values.mean(1).tolist(), float(values[0].std()))


def resample_sweep(
    checkpoint: Checkpoint,
    trace: Trace,
    row: int,
    token: int,
    drawn: Sequence[Outputs],
    *,
    parts: Sequence[Part] | None = None,
    loss: bool = True,
    heard: Heard | None = None,
) -> Effects:
    """One part after the other; as `vizformer.analysis.causes.ablation.sweep`, with a run for each draw.

    Args:
        drawn: of `draw_outputs`.
    """
    wanted = parts_of(trace) if parts is None else parts
    runs = [run for part in wanted for run in _runs([part], drawn)]
    values = effects_of_runs(checkpoint, trace, runs, row, token, loss=loss, heard=heard)
    return Effects(map(_mean_effect, wanted, values.reshape(4, len(wanted), -1).swapaxes(0, 1)))
