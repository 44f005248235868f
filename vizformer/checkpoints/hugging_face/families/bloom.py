"""BLOOM: the distance taken off every score (ALiBi), a norm after the embeddings, q, k and v in one, head by head.

Source: Workshop et al. 2022, "BLOOM: A 176B-Parameter Open-Access Multilingual Language Model", section 3.2, and the
weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import UNUSED, decoder, head
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig
from vizformer.messages import N_

LONGEST = 2048  # what the published models were trained with; config.json says no limit
FUSED = "self_attention.query_key_value"
LAYER = {
    "input_layernorm": ["self_norm"],
    FUSED: [f"self_attention.W_{letter}" for letter in "QKV"],
    "self_attention.dense": ["self_attention.W_O"],
    "post_attention_layernorm": ["feedforward_norm"],
    "mlp.dense_h_to_4h": ["feedforward.W_in"],
    "mlp.dense_4h_to_h": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, "hidden_size", "n_head", "n_layer", None)
    fields.only("apply_residual_connection_post_layernorm", False)
    fields.only("n_embed", None, options["d_model"])
    # How it is computed on several devices; the length of its training.
    fields.ignore("slow_but_exact", "seq_length", "skip_bias_add", "skip_bias_add_qkv", "offset_alibi")
    fields.assume(N_("texts up to {limit:,} tokens are accepted; config.json names no limit", limit=LONGEST))
    return {
        **options,
        "d_ff": 4 * options["d_model"],
        "max_positions": LONGEST,
        "positions": "alibi",
        "embedding_norm": True,
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": "gelu_tanh",
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    of_layers = layers(LAYER, "h.{}", "decoder.layers.{}", config.n_decoder_layers)
    return [
        Part("word_embeddings.weight", ("embedding.weight",)),
        *linear("word_embeddings_layernorm", "embedding_norm"),
        *(replace(part, heads=config.n_heads) if FUSED in part.source else part for part in of_layers),
        *linear("ln_f", "decoder.final_norm"),
        *head(config),
    ]


FAMILY = Family(
    name="BLOOM",
    types=("bloom",),
    prefix="transformer.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=lambda config: {"lm_head.weight": "word_embeddings.weight"} if config.tied_unembedding else {},
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)
