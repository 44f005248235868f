"""InternLM3: LLaMA's layers, with other names for the fields of the biases.

Source: InternLM Team 2025, "InternLM3", and the weights published with it.
"""

from collections.abc import Collection

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, tensors, ties
from vizformer.checkpoints.tokenizers.sentencepiece_files import sentencepiece_or_refuse

DEFAULTS = {
    "vocab_size": 128_512,
    "hidden_size": 4096,
    "intermediate_size": 10_240,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "hidden_act": "silu",
    "max_position_embeddings": 32_768,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "pad_token_id": 2,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "rope_theta": 10_000.0,
    "attention_bias": False,
    "mlp_bias": False,
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    bias = fields.flag("attention_bias")
    fields.only("mlp_bias", bias)  # as `transformers` has it, which takes both for one
    return {**options, "bias": bias}, has_head


def tokenizer(folder: Folder) -> Backend:
    """tokenizer.model."""
    return sentencepiece_or_refuse(folder)


FAMILY = Family(
    name="InternLM3",
    defaults={"internlm3": DEFAULTS},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=tokenizer,
    ties=ties,
    aliases={"qkv_bias": "attention_bias", "bias": "mlp_bias"},
    unused=UNUSED,
)
