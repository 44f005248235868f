"""Granite: LLaMA's layers, with a factor for the embeddings, the scores, what every sublayer adds, and the logits.

Source: Granite Team 2024, "Granite 3.0 Language Models", section 2, and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, biases, decoder, tensors, ties
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    return {
        **options,
        **biases(fields),
        "embedding_scale": fields.number("embedding_multiplier"),
        "attention_scale": fields.number("attention_multiplier"),
        "residual_scale": fields.number("residual_multiplier"),
        "logit_scale": 1.0 / fields.number("logits_scaling"),
    }, has_head


FAMILY = Family(
    name="Granite",
    types=("granite",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
