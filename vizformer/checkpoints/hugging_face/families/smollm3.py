"""SmolLM3: LLaMA's layers, of which every fourth has no positions.

Source: Bakouch et al. 2025, "SmolLM3: smol, multilingual, long-context reasoner", and the weights published with it;
Yang et al. 2025, "Rope to Nope and Back Again: A New Hybrid Attention Strategy".
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, biases, decoder, tensors, ties
from vizformer.checkpoints.hugging_face.rope_layers import listed_layers, turning_in
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json

DEFAULTS = {
    "vocab_size": 128_256,
    "hidden_size": 2048,
    "intermediate_size": 11_008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "hidden_act": "silu",
    "max_position_embeddings": 32_768,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "pad_token_id": 128_004,
    "bos_token_id": 128_000,
    "eos_token_id": 128_001,
    "rope_theta": 2_000_000.0,
    "no_rope_layer_interval": 4,
    "attention_bias": False,
    "mlp_bias": False,
    "use_sliding_window": False,
    "sliding_window": None,
    "layer_types": None,
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    turned = listed_layers(fields, fields.size("num_hidden_layers"))
    # Where the layers are not listed, those that do not turn have the window.
    options, has_head = decoder(fields, names, windowed=lambda layer: layer not in turned)
    return {**options, **turning_in(turned, options), **biases(fields)}, has_head


FAMILY = Family(
    name="SmolLM3",
    defaults={"smollm3": DEFAULTS},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
