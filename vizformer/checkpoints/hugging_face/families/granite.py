"""Granite: LLaMA's layers, with a factor for the embeddings, the scores, what every sublayer adds, and the logits.

Source: Granite Team 2024, "Granite 3.0 Language Models", section 2, and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, biases, decoder, tensors, ties
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json

DEFAULTS = {
    "vocab_size": 32_000,
    "hidden_size": 4096,
    "intermediate_size": 11_008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "rope_theta": 10_000.0,
    "attention_bias": False,
    "mlp_bias": False,
    "embedding_multiplier": 1.0,
    "attention_multiplier": 1.0,
    "residual_multiplier": 1.0,
    "logits_scaling": 1.0,
}


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
    defaults={"granite": DEFAULTS},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
