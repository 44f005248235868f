"""What several pages compute from a subject, once for everybody.

What a cached function returns is shared: read only.
"""

from functools import partial
from typing import TYPE_CHECKING

from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.model_cache import predicts
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import Without
from vizformer.web.words import labels

if TYPE_CHECKING:
    from vizformer.analysis import HeadOverview, Kind, PairTerms, Prediction, TraceHeads
    from vizformer.components.payload import HeadsPayload
    from vizformer.explain import Step
    from vizformer.model import Trace


@cached
def left_out(subject: Subject, kind: "Kind", without: Without) -> tuple[int, ...]:
    """The keys that a choice of `vizformer.web.link.view.Without` leaves out of a kind of attention."""
    import numpy as np

    from vizformer.analysis import sinks

    if without == "first":
        return (0,)
    if without == "sinks":
        layers = range(numbers(subject, kind).shape[0])
        return sinks(np.concatenate([layer_overview(subject, kind, "none", one).measures.received for one in layers]))
    keys = subject.trace.tokens[labels.stacks(kind)[1]] if without == "marks" else ()
    return tuple(i for i, token in enumerate(keys) if token.special or not any(map(str.isalnum, token.text)))


def seen(subject: Subject, kind: "Kind", without: Without) -> "Trace":
    """The trace with which a kind of attention is drawn; not kept, it has only masks of its own."""
    from vizformer.analysis import without_keys

    keys = left_out(subject, kind, without)
    return without_keys(subject.trace, kind, keys) if keys else subject.trace


def numbers(subject: Subject, kind: "Kind", without: Without = "none") -> "TraceHeads":
    """The heads of one kind as they are drawn; of what they answer only the passes over a layer are kept."""
    from vizformer.analysis import TraceHeads, records_of

    records = records_of(seen(subject, kind, without), kind)
    return TraceHeads(records, partial(layer_overview, subject, kind, without))


@cached
def layer_overview(subject: Subject, kind: "Kind", without: Without, layer: int) -> "HeadOverview":
    """The small maps of one layer's heads, and what they can be sorted by."""
    from vizformer.analysis import TraceHeads, records_of

    return TraceHeads(records_of(seen(subject, kind, without), kind)).overview(layer)


@cached
def heads(subject: Subject, kind: "Kind", chosen: tuple[int, int] | None, without: Without = "none") -> "HeadsPayload":
    """All heads of one kind, packed for the browser; where they do not all fit, small maps of all and the `chosen` one."""
    from vizformer.components.packing import pack

    return pack(numbers(subject, kind, without), chosen=chosen or (0, 0))


@cached
def lines(subject: Subject, kind: "Kind", layer: int | None, without: Without = "none") -> "HeadsPayload":
    """The weights of all heads of one kind; those of one layer's heads where they do not all fit (else None)."""
    from vizformer.components.packing import pack_lines

    return pack_lines(numbers(subject, kind, without), layer=layer or 0)


@cached
def pair(subject: Subject, site: str, head: int, query: int, key: int) -> "PairTerms":
    """The score of a query and a key, taken apart."""
    from vizformer.analysis import pair_terms

    return pair_terms(subject.trace, site, head, query, key)


@cached
def predictions(subject: Subject, position: int) -> "tuple[Prediction, ...]":
    from vizformer.analysis import next_tokens

    return next_tokens(subject.checkpoint, subject.trace, position)


@cached
def steps(subject: Subject, site: str, head: int, query: int) -> "list[Step]":
    from vizformer.explain import attention_steps, light

    return light(attention_steps(subject.checkpoint, subject.trace, site, head, query))


@cached
def layer(subject: Subject, stack: str, number: int) -> "tuple[list[Step], list[str]]":
    """The steps of a layer and, after the last one, of the prediction, with the texts of the leading candidates."""
    from vizformer.explain import candidates, layer_steps, light, output_steps

    loaded, traced = subject.checkpoint, subject.trace
    steps = layer_steps(loaded, traced, f"{stack}.{number}")
    final = "decoder" if loaded.model.decoder is not None else "encoder"
    config = loaded.model.config
    n_layers = config.n_decoder_layers if final == "decoder" else config.n_encoder_layers
    if (stack, number) != (final, n_layers - 1) or not predicts(subject.model):
        return light(steps), []
    ids = [token.id for token in traced.tokens.get(final, ())]
    position = ids.index(config.mask_id) if config.mask_id in ids else traced.logits.shape[0] - 1
    best = loaded.tokenizer.tokens(candidates(loaded, traced, position))
    return light([*steps, *output_steps(loaded, traced, position)]), labels.told_apart(best)
