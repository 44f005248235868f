"""What several pages compute from a subject, once for everybody.

What a cached function returns is shared: read only.
"""

from typing import TYPE_CHECKING

from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.model_cache import predicts
from vizformer.web.catalogue.subject import Subject

if TYPE_CHECKING:
    from vizformer.analysis import HeadMaps, Kind, Prediction
    from vizformer.components.payload import HeadsPayload
    from vizformer.explain import Step


@cached
def heads(subject: Subject, kind: "Kind", chosen: tuple[int, int] | None) -> "HeadsPayload":
    """All heads of one kind, packed for the browser; `chosen` matters only where they do not all fit (else None)."""
    from vizformer.analysis import head_maps
    from vizformer.components.attention import pack_heads

    maps: HeadMaps = head_maps(subject.trace, kind)
    return pack_heads(maps.weights, maps.scores, maps.reasons, chosen=chosen or (0, 0))


@cached
def lines(subject: Subject, kind: "Kind", layer: int | None) -> "HeadsPayload":
    """The weights of all heads of one kind; those of one layer's heads where they do not all fit (else None)."""
    from vizformer.analysis import head_maps
    from vizformer.components.lines import pack_heads, pack_layer

    maps: HeadMaps = head_maps(subject.trace, kind)
    if layer is None:
        return pack_heads(maps.weights, None, maps.reasons)
    return pack_layer(maps.weights[layer], maps.reasons[layer], layer=layer, layers=len(maps.weights))


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
    return light([*steps, *output_steps(loaded, traced, position)]), [token.text for token in best]
