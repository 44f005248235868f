"""What several pages compute from a subject, once for everybody."""

from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from vizformer import analysis, explain
from vizformer.components.packing import pack, pack_lines
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.model_cache import predicts
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import Without
from vizformer.web.words import labels

if TYPE_CHECKING:
    from vizformer.analysis import HeadOverview, Kind, PairTerms, Prediction, TraceHeads
    from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
    from vizformer.components.packing import HeadsPayload
    from vizformer.explain import Step
    from vizformer.model import Trace


@cached
def left_out(subject: Subject, kind: "Kind", without: Without) -> tuple[int, ...]:
    """The keys that a choice of `vizformer.web.link.view.Without` leaves out of a kind of attention."""
    if without == "first":
        return (0,)
    if without == "sinks":
        layers = range(numbers(subject, kind).shape[0])
        return analysis.sinks(
            np.concatenate([layer_overview(subject, kind, "none", one).measures.received for one in layers])
        )
    keys = subject.trace.tokens[labels.stacks(kind)[1]] if without == "marks" else ()
    return tuple(i for i, token in enumerate(keys) if token.special or not any(map(str.isalnum, token.text)))


def seen(subject: Subject, kind: "Kind", without: Without) -> "Trace":
    """The trace with which a kind of attention is drawn; not kept, it has only masks of its own."""
    keys = left_out(subject, kind, without)
    return analysis.without_keys(subject.trace, kind, keys) if keys else subject.trace


def numbers(subject: Subject, kind: "Kind", without: Without = "none") -> "TraceHeads":
    """The heads of one kind as they are drawn; of what they answer only the passes over a layer are kept."""
    records = analysis.records_of(seen(subject, kind, without), kind)
    return analysis.TraceHeads(records, partial(layer_overview, subject, kind, without))


@cached
def layer_overview(subject: Subject, kind: "Kind", without: Without, layer: int) -> "HeadOverview":
    """The small maps of one layer's heads, and what they can be sorted by."""
    return analysis.TraceHeads(analysis.records_of(seen(subject, kind, without), kind)).overview(layer)


@cached
def heads(subject: Subject, kind: "Kind", chosen: tuple[int, int] | None, without: Without = "none") -> "HeadsPayload":
    """All heads of one kind, packed for the browser; where they do not all fit, small maps of all and the `chosen` one."""
    return pack(numbers(subject, kind, without), chosen=chosen or (0, 0))


@cached
def lines(subject: Subject, kind: "Kind", layer: int | None, without: Without = "none") -> "HeadsPayload":
    """The weights of all heads of one kind; those of one layer's heads where they do not all fit (else None)."""
    return pack_lines(numbers(subject, kind, without), layer=layer or 0)


@cached
def pair(subject: Subject, site: str, head: int, query: int, key: int) -> "PairTerms":
    """The score of a query and a key, taken apart."""
    return analysis.pair_terms(subject.trace, site, head, query, key)


@cached
def predictions(subject: Subject, position: int) -> "tuple[Prediction, ...]":
    return analysis.next_tokens(subject.checkpoint, subject.trace, position)


@cached
def steps(subject: Subject, site: str, head: int, query: int) -> "list[Step]":
    """The steps of one attention row: of our own arithmetic, or the calls of a recorded model's code."""
    if not subject.checkpoint.is_own:
        return explain.recorded_steps(_recorded(subject), subject.trace, site, head, query)
    return explain.light(explain.attention_steps(subject.checkpoint, subject.trace, site, head, query))


@cached
def recorded_layer(subject: Subject, stack: str, number: int, query: int) -> "list[Step]":
    """One row on its way through a layer of a recorded model, by the calls of its author's code."""
    return explain.recorded_layer_steps(_recorded(subject), subject.trace, f"{stack}.{number}", query)


def _recorded(subject: Subject) -> "RecordedCheckpoint":
    return cast("RecordedCheckpoint", subject.checkpoint)


@cached
def layer(subject: Subject, stack: str, number: int) -> "tuple[list[Step], list[str]]":
    """The steps of a layer and, after the last one, of the prediction, with the texts of the leading candidates."""
    loaded, traced = subject.checkpoint, subject.trace
    steps = explain.layer_steps(loaded, traced, f"{stack}.{number}")
    final = "decoder" if loaded.model.decoder is not None else "encoder"
    config = loaded.model.config
    n_layers = config.layers_of(final)
    if (stack, number) != (final, n_layers - 1) or not predicts(subject.model):
        return explain.light(steps), []
    ids = [token.id for token in traced.tokens.get(final, ())]
    position = ids.index(config.mask_id) if config.mask_id in ids else traced.logits.shape[0] - 1
    best = loaded.tokenizer.tokens(explain.candidates(loaded, traced, position))
    return explain.light([*steps, *explain.output_steps(loaded, traced, position)]), labels.told_apart(best)
