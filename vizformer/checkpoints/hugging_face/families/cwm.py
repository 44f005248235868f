"""CWM, the Code World Model: LLaMA's layers, of which three out of four have a sliding window.

Source: FAIR CodeGen team 2025, "CWM: An Open-Weights LLM for Research on Code Generation with World Models", section 3,
and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, tensors, ties
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json

DEFAULTS = {
    "vocab_size": 128_256,
    "hidden_size": 6144,
    "intermediate_size": 21_504,
    "num_hidden_layers": 64,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_act": "silu",
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "bos_token_id": 128_000,
    "eos_token_id": [128_001, 128_008, 128_009],
    "mlp_bias": False,
    "rope_theta": 1_000_000.0,
    "rope_parameters": {
        "rope_type": "llama3",
        "rope_theta": 1_000_000.0,
        "factor": 16.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "sliding_window": 8192,
    "layer_types": None,
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    if fields.raw.get("rope_parameters", ...) is None:  # null stands for what the family has anyway
        del fields.raw["rope_parameters"]
    fields.size("sliding_window")  # there is always one
    options, has_head = decoder(fields, names, windowed=lambda layer: layer % 4 != 0)
    return {**options, "bias": fields.flag("mlp_bias"), "attention_bias": "none"}, has_head


FAMILY = Family(
    name="CWM",
    defaults={"cwm": DEFAULTS},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
