"""Seed-OSS: LLaMA's layers, with biases for queries, keys and values alone.

Source: ByteDance Seed 2025, "Seed-OSS Open-Source Models", and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, tensors, ties
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json


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
    types=("seed_oss",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
