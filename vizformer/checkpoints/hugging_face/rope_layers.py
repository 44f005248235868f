"""Which layers of a decoder turn their queries and keys, where not all do."""

from collections.abc import Sequence

from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.sliding_window import MOST_LAYERS


def turning_in(layers: Sequence[int], options: Options) -> Options:
    """Positions that turn in these layers only, of `options` of which all layers would."""
    if len(layers) == options["n_decoder_layers"]:
        return {}
    return {"rope_layers": tuple(layers)} if layers else {"positions": "none"}


def listed_layers(fields: Fields, n_layers: int) -> Sequence[int]:
    """Those of no_rope_layers, which has a 1 (!) for every layer that turns; else all but every n-th one.

    Source: `transformers`, SmolLM3Config.
    """
    interval, said = fields.size("no_rope_layer_interval"), fields.value("no_rope_layers")
    if n_layers > MOST_LAYERS:
        fields.refuse("num_hidden_layers", "supported are at most {limit} layers", limit=MOST_LAYERS)
        return ()
    if said is None:
        return [layer for layer in range(n_layers) if (layer + 1) % interval]
    if not isinstance(said, list) or any(value not in (0, 1) for value in said):
        fields.refuse("no_rope_layers", "it must list 1 for a layer with rotary positions, 0 for one without")
        return range(n_layers)
    if len(said) != n_layers:
        fields.refuse("no_rope_layers", "it must have an entry for each of the {n} layers", n=n_layers)
        return range(n_layers)
    return [layer for layer, value in enumerate(said) if value]
