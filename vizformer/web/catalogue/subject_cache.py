"""What several pages compute from a subject, once for everybody.

What a cached function returns is shared: read only.
"""

from typing import TYPE_CHECKING

from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.model_cache import predicts
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import Without
from vizformer.web.words import labels

if TYPE_CHECKING:
    from numpy import ndarray

    from vizformer.analysis import HeadMaps, HeadMeasures, Kind, PairTerms, Prediction
    from vizformer.components.payload import HeadsPayload
    from vizformer.explain import Step
    from vizformer.model import Trace


@cached
def left_out(subject: Subject, kind: "Kind", without: Without) -> tuple[int, ...]:
    """The keys that a choice of `vizformer.web.link.view.Without` leaves out of a kind of attention."""
    if without == "first":
        return (0,)
    if without == "sinks":
        return overview(subject, kind, "none")[2].sinks
    keys = subject.trace.tokens[labels.stacks(kind)[1]] if without == "marks" else ()
    return tuple(i for i, token in enumerate(keys) if token.special or not any(map(str.isalnum, token.text)))


def seen(subject: Subject, kind: "Kind", without: Without) -> "Trace":
    """The trace with which a kind of attention is drawn; not kept, it has only masks of its own."""
    from vizformer.analysis import without_keys

    keys = left_out(subject, kind, without)
    return without_keys(subject.trace, kind, keys) if keys else subject.trace


@cached
def heads(subject: Subject, kind: "Kind", chosen: tuple[int, int] | None, without: Without = "none") -> "HeadsPayload":
    """All heads of one kind, packed for the browser; where they do not all fit, small maps of all and the `chosen` one."""
    from vizformer.analysis import head_maps, head_operands, one_head
    from vizformer.components.attention import pack_chosen, pack_heads, pack_operands

    trace = seen(subject, kind, without)
    small, reasons, measures = overview(subject, kind, without)
    if chosen is None:
        maps: HeadMaps = head_maps(trace, kind)
        payload = pack_heads(maps.weights, maps.scores, maps.reasons)
    elif (found := head_operands(trace, kind, *chosen)) is not None:
        payload = pack_operands(small, found.q, found.k, found.by_distance, reasons, chosen=chosen)
    else:
        one = one_head(trace, kind, *chosen)
        payload = pack_chosen(small, one.weights, one.scores, reasons, chosen=chosen)
    return payload.measured(entropy=measures.entropy, distance=measures.distance, first=measures.first)


@cached
def overview(subject: Subject, kind: "Kind", without: Without) -> "tuple[ndarray, ndarray, HeadMeasures]":
    """The small maps of all heads of one kind, why cells are blocked, and what the heads can be sorted by."""
    import numpy as np

    from vizformer.analysis import HeadMeasures, mask_reasons, n_layers

    trace = seen(subject, kind, without)
    layers = [small_maps(subject, kind, without, layer) for layer in range(n_layers(trace, kind))]
    measures = [one for _, one in layers]
    distances = [one.distance for one in measures if one.distance is not None]
    found = HeadMeasures(
        np.concatenate([one.entropy for one in measures]),
        np.concatenate(distances) if distances else None,
        np.concatenate([one.first for one in measures]),
        np.concatenate([one.received for one in measures]),
    )
    return np.concatenate([maps for maps, _ in layers]), mask_reasons(trace, kind), found


@cached
def small_maps(subject: Subject, kind: "Kind", without: Without, layer: int) -> "tuple[ndarray, HeadMeasures]":
    """The small maps of one layer's heads [1, n_heads, rows, columns], and what they can be sorted by."""
    from vizformer.analysis import head_overview, site_name
    from vizformer.components.small_maps import pools, shades

    trace = seen(subject, kind, without)
    first = trace[site_name(kind, layer)]
    found = head_overview(trace, kind, pools(first.q.shape[1]), pools(first.k.shape[1]), [layer])
    return shades(found.largest), found.measures


@cached
def lines(subject: Subject, kind: "Kind", layer: int | None, without: Without = "none") -> "HeadsPayload":
    """The weights of all heads of one kind; those of one layer's heads where they do not all fit (else None)."""
    from vizformer.analysis import head_maps, layer_weights, n_layers, site_name
    from vizformer.components.lines import pack_heads, pack_layer

    trace = seen(subject, kind, without)
    if layer is None:
        maps: HeadMaps = head_maps(trace, kind)
        return pack_heads(maps.weights, None, maps.reasons)
    blocked = trace[site_name(kind, layer)].reason(0).cpu().numpy()
    weights = layer_weights(trace, kind, layer)
    return pack_layer(weights, blocked, layer=layer, layers=n_layers(trace, kind))


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
