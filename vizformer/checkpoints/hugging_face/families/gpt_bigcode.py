"""GPT-BigCode (SantaCoder, StarCoder): GPT-2 whose heads share one key and one value, not stored transposed.

Source: Ben Allal et al. 2023, "SantaCoder: don't reach for the stars!"; Li et al. 2023, "StarCoder: may the source be
with you!"; and the weights published with them.
"""

from collections.abc import Collection
from dataclasses import replace

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import UNUSED, decoder, head
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

FUSED = "attn.c_attn"
LAYER = {
    "ln_1": ["self_norm"],
    FUSED: [f"self_attention.W_{letter}" for letter in "QKV"],
    "attn.c_proj": ["self_attention.W_O"],
    "ln_2": ["feedforward_norm"],
    "mlp.c_fc": ["feedforward.W_in"],
    "mlp.c_proj": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, "n_embd", "n_head", "n_layer", "n_positions")
    fields.ignore("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32")  # how half precision is rounded
    fields.ignore("num_key_value_heads")  # follows from multi_query, whatever is said
    return {
        **options,
        "n_kv_heads": 1 if fields.flag("multi_query") and options["n_heads"] > 1 else None,
        "d_ff": fields.size("n_inner", 4 * options["d_model"]),
        "positions": "learned",
        "attention_scale": None if fields.flag("scale_attn_weights") else 1.0,
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": fields.choice("activation_function", ACTIVATIONS),
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor; without multi_query, queries, keys and values alternate head by head."""
    heads = 0 if config.n_kv_heads == 1 else config.n_heads
    of_layers = layers(LAYER, "h.{}", "decoder.layers.{}", config.n_decoder_layers)
    return [
        Part("wte.weight", ("embedding.weight",)),
        Part("wpe.weight", ("position_embedding.weight",)),
        *(replace(part, heads=heads) if FUSED in part.source else part for part in of_layers),
        *linear("ln_f", "decoder.final_norm"),
        *head(config),
    ]


FAMILY = Family(
    name="GPT-BigCode",
    types=("gpt_bigcode",),
    prefix="transformer.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=lambda config: {"lm_head.weight": "wte.weight"} if config.tied_unembedding else {},
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)
