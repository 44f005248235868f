"""EuroBERT: LLaMA's layers as an encoder, which looks both ways.

Source: Boizard et al. 2025, "EuroBERT: Scaling Multilingual Encoders for European Languages", and the weights published
with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, tensors, ties
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    found, has_head = decoder(fields, names)
    fields.ignore("is_causal", "classifier_pooling")  # an encoder looks both ways all the same
    attention, bias = fields.flag("attention_bias"), fields.flag("mlp_bias")
    return {
        **found,
        "n_encoder_layers": found["n_decoder_layers"],
        "n_decoder_layers": 0,
        "bias": bias,
        "attention_bias": "same" if attention is bias else "all" if attention else "none",
        "logit_bias": "lm_head.bias" in names,
        "mask_id": fields.token("mask_token_id", found["vocab_size"]),
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    parts = tensors(config, stack="encoder")
    return [*parts, *([Part("lm_head.bias", ("logit_bias",))] if config.logit_bias else [])]


FAMILY = Family(
    name="EuroBERT",
    types=("eurobert",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
