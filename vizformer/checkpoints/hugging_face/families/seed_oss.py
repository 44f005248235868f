"""Seed-OSS: LLaMA's layers, with biases for queries, keys and values alone.

Source: ByteDance Seed 2025, "Seed-OSS Open-Source Models", and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, tensors, ties
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json

DEFAULTS = {
    "vocab_size": 155_136,
    "hidden_size": 4096,
    "intermediate_size": 27_648,
    "num_hidden_layers": 64,
    "num_attention_heads": 80,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_act": "silu",
    "max_position_embeddings": 524_288,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "rope_theta": 10_000.0,
    "attention_bias": True,
    "attention_out_bias": False,
    "mlp_bias": False,
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    qkv, out = fields.flag("attention_bias"), fields.flag("attention_out_bias")
    if out:
        fields.only("attention_bias", True)  # a bias of the output alone is not supported
    return {
        **options,
        "bias": fields.flag("mlp_bias"),
        "attention_bias": "all" if out else "qkv" if qkv else "none",
    }, has_head


FAMILY = Family(
    name="Seed-OSS",
    defaults={"seed_oss": DEFAULTS},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
