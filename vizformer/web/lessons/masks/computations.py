"""Cached computations of the lesson Masks; settings and texts are the keys, never an array."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from vizformer.analysis import CellQuestion, Kind, site_name
from vizformer.analysis.masks import mistakes as mask_mistakes
from vizformer.analysis.masks import runs as masked_runs
from vizformer.analysis.masks.leakage import Leak, RunMask, Stack, leak_of, run_blocked
from vizformer.analysis.masks.mistakes import Outcome, in_every_precision
from vizformer.analysis.masks.runs import Expected, PaddedRun, layers_masked_alike, padded_run, painted_run
from vizformer.explain import Masked, masked_attention
from vizformer.model import AttentionRecord, Trace
from vizformer.model.mask_recipe import MaskRecipe
from vizformer.text import Token
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks.which_attention import causal_on, tokens
from vizformer.web.words import labels


@dataclass(frozen=True)
class Laid:
    """A mask laid over a head: the numbers, the tokens of rows and columns, and which of them are padding."""

    masked: Masked
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    kept: UInt8[np.ndarray, "n_q n_k"] | None
    unused: tuple[int, ...]


@cached
def laid(subject: Subject, attention: Kind, layer: int, head: int, recipe: MaskRecipe) -> Laid:
    """A mask of one sentence over a head of its trace."""
    rows, columns = tokens(subject, attention)
    found = masked_attention(_record(subject, attention, layer), head, recipe.mask(len(rows)))
    kept = recipe.kept(len(rows))
    return Laid(found, rows, columns, None if kept is None else kept.numpy(), ())


@cached
def batch(subject: Subject, other: str, second: bool) -> PaddedRun:
    """The sentence and another one in a batch; with `second` the other one is batch item 0, which is shown.

    Raises:
        VizformerError: a text that the model cannot read.
    """
    own, added = subject.trace, Subject(subject.model, other, "").trace
    return padded_run(subject.checkpoint, *((added, own) if second else (own, added)))


@cached
def laid_batch(subject: Subject, other: str, second: bool, attention: Kind, layer: int, head: int) -> Laid:
    """The mask of the padded batch over a head, for the sentence that is shown."""
    run = batch(subject, other, second)
    rows, columns = labels.stacks(attention)
    found = masked_attention(run.trace[site_name(attention, layer)], head)
    return Laid(found, run.tokens[rows], run.tokens[columns], None, run.unused(rows))


# --- painted by hand --------------------------------------------------------------------------------------------------


def alike(subject: Subject, attention: Kind, layer: int) -> tuple[int, ...]:
    """The layers whose own mask is that of `layer`: all of them, unless some have a sliding window."""
    return layers_masked_alike(subject.trace, attention, layer)


@cached
def painted(subject: Subject, attention: Kind, flips: tuple[tuple[int, int], ...], layers: tuple[int, ...]) -> Trace:
    """The model run with these cells of its own mask turned over, in these layers of a kind of attention."""
    return painted_run(subject.checkpoint, subject.trace, attention, flips, layers)


def painted_head(
    subject: Subject, attention: Kind, flips: tuple[tuple[int, int], ...], layer: int, head: int
) -> tuple[Masked, UInt8[np.ndarray, "n_q n_k"]]:
    """A head of that run, and the reasons of the model's own mask."""
    own = _record(subject, attention, layer).reason(head).cpu().numpy()
    run = painted(subject, attention, flips, alike(subject, attention, layer))
    return masked_attention(run[site_name(attention, layer)], head), own


@cached
def expectations(
    subject: Subject, attention: Kind, flips: tuple[tuple[int, int], ...], layers: tuple[int, ...]
) -> tuple[Expected, ...]:
    """The predictions at every position of the last stack, before and after cells were turned over in these layers."""
    after = painted(subject, attention, flips, layers)
    return masked_runs.expectations(subject.checkpoint, subject.trace, after)


@cached
def cell_question(subject: Subject, attention: Kind, most: int) -> CellQuestion | None:
    from vizformer.analysis import cell_question

    return cell_question(subject.trace, attention, most)


# --- notations and mistakes -------------------------------------------------------------------------------------------


def causal_head(subject: Subject, layer: int, head: int) -> Masked:
    """A head of the self-attention with the causal mask, whether it has one of its own or not."""
    return laid(subject, causal_on(subject), layer, head, MaskRecipe("causal")).masked


@cached
def agreement(subject: Subject, layer: int, head: int) -> dict[str, float]:
    """By how much the z that each notation gives with its own call differs from the arithmetic in float64."""
    record = _record(subject, causal_on(subject), layer)
    return mask_mistakes.agreement(record, head, causal_head(subject, layer, head).blocked)


@cached
def blind_output(subject: Subject, layer: int, head: int, row: int) -> float:
    """Largest |z| that the fused call gives for a query of which every key is blocked; NaN if it gives NaN."""
    record = _record(subject, causal_on(subject), layer)
    return mask_mistakes.blind_output(record, head, causal_head(subject, layer, head).blocked, row)


@cached
def precisions(subject: Subject, layer: int, head: int, row: int) -> tuple[Outcome, ...]:
    """What big negative numbers do to a row of scores, for every precision and way."""
    masked = causal_head(subject, layer, head)
    return in_every_precision(masked.scores[row], masked.blocked[row])


# --- leakage ----------------------------------------------------------------------------------------------------------


@cached
def replacements(subject: Subject, stack: Stack, position: int) -> tuple[Token, ...]:
    """Tokens to put in place of one."""
    from vizformer.analysis.masks.leakage import replacements

    return replacements(subject.checkpoint, subject.trace, stack, position)


@cached
def leakage(subject: Subject, stack: Stack, position: int, token_id: int, run: RunMask, reach: int) -> Leak:
    """How far the outputs of a stack move when one of its tokens is replaced, with a mask of choice in all layers."""
    blocked = run_blocked(subject.trace, stack, run, reach)
    return leak_of(subject.checkpoint, subject.trace, stack, position, token_id, blocked)


def _record(subject: Subject, attention: Kind, layer: int) -> AttentionRecord:
    return subject.trace[site_name(attention, layer)]
