"""OLMo (the first): LLaMA's layers, with norms that learn nothing.

Source: Groeneveld et al. 2024, "OLMo: Accelerating the Science of Language Models", section 2.1, and the weights
published with it.
"""

from collections.abc import Collection
from functools import partial

import torch

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, tensors, ties
from vizformer.checkpoints.hugging_face.missing_parameters import Made, norms_of, stored
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig
from vizformer.messages import N_


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, eps=None)
    fields.only("clip_qkv", None)
    fields.assume(N_("the norms of this family learn nothing: those of the model here multiply by 1 and add 0"))
    return {
        **options,
        "norm": "layer_norm",
        "norm_eps": 1e-5,
        "bias": False,
        "attention_bias": "all" if fields.flag("attention_bias") else "none",
    }, has_head


def made(config: ModelConfig) -> Made:
    """LayerNorm(x) = (x - mean) / sqrt(var + eps)."""
    one, zero = partial(torch.ones, config.d_model), partial(torch.zeros, config.d_model)
    return {f"{norm}.{kind}": make for norm in norms_of(config) for kind, make in (("weight", one), ("bias", zero))}


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return stored(tensors(config), made(config))


FAMILY = Family(
    name="OLMo",
    types=("olmo",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    made=made,
    unused=UNUSED,
)
