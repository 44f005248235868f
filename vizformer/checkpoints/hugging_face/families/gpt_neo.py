"""GPT-Neo: GPT-2 with a window in every second layer, scores that are not divided, and no biases of q, k and v.

Source: Black et al. 2021, "GPT-Neo: Large Scale Autoregressive Language Modeling with Mesh-Tensorflow", and the weights
published with it.
"""

from collections.abc import Collection
from functools import partial

from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import LIKE, byte_level_texts, decoder, tensors
from vizformer.checkpoints.hugging_face.missing_parameters import Made, zeros
from vizformer.checkpoints.hugging_face.sliding_window import MOST_LAYERS
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.config import ModelConfig

ATTENTION = {f"attn.attention.{letter}_proj": [f"self_attention.W_{letter.upper()}"] for letter in "qkv"}
LAYER = {
    "ln_1": ["self_norm"],
    **ATTENTION,
    "attn.attention.out_proj": ["self_attention.W_O"],
    "ln_2": ["feedforward_norm"],
    "mlp.c_fc": ["feedforward.W_in"],
    "mlp.c_proj": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, "hidden_size", "num_heads", "num_layers")
    fields.assume("queries, keys and values of this family have no biases: those of the model here are 0")
    return {
        **options,
        **_window(fields, options["n_decoder_layers"], options["max_positions"]),
        "d_ff": fields.size("intermediate_size", 4 * options["d_model"]),
        "positions": "learned",
        "attention_scale": 1.0,
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": fields.choice("activation_function", ACTIVATIONS),
    }, has_head


def _window(fields: Fields, n_layers: int, longest: int) -> Options:
    """Which layers look at the last window_size tokens only.

    attention_layers lists their kinds; where it is not there, attention_types lists kinds and how often they repeat.
    """
    size, repeated, kinds = (fields.size("window_size"), *map(fields.value, ("attention_types", "attention_layers")))
    name = "attention_types" if kinds is None else "attention_layers"
    if kinds is None:
        kinds = _repeated(repeated)
    if not isinstance(kinds, list) or len(kinds) != n_layers or any(kind not in ("global", "local") for kind in kinds):
        fields.refuse(name, "it must list global or local for each of the {n} layers", n=n_layers)
        return {}
    local = tuple(layer for layer, kind in enumerate(kinds) if kind == "local")
    if not local or size >= longest:
        return {}
    return {"sliding_window": size, "sliding_layers": None if len(local) == n_layers else local}


def _repeated(said: object) -> list[object] | None:
    """[[["global", "local"], 2]] -> ["global", "local", "global", "local"]; None where it is no such list."""
    kinds: list[object] = []
    for entry in said if isinstance(said, list) else [None]:
        match entry:
            case [list(names), int(times)] if len(kinds) + times * len(names) <= MOST_LAYERS:
                kinds += names * times
            case _:
                return None
    return kinds


def made(config: ModelConfig) -> Made:
    names = [
        f"decoder.layers.{layer}.{ours}.bias"
        for layer in range(config.n_decoder_layers)
        for (ours,) in ATTENTION.values()
    ]
    return zeros(names, config.d_model)


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "GPT-Neo",
        "gpt_neo",
        config,
        weights=partial(tensors, template=LAYER, positions="wpe"),
        tokenizer=byte_level_texts,
        made=made,
    ),
)
