"""Qwen3: LLaMA's layers, with norms of queries and keys and heads of a width of their own.

Source: Yang et al. 2025, "Qwen3 Technical Report", section 2, and the weights published with it.
"""

from collections.abc import Collection

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, tensors, ties
from vizformer.checkpoints.tokenizers.vocabularies import qwen

DEFAULTS = {
    "vocab_size": 151_936,
    "hidden_size": 4096,
    "intermediate_size": 22_016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "head_dim": 128,
    "hidden_act": "silu",
    "max_position_embeddings": 32_768,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "rope_theta": 10_000.0,
    "attention_bias": False,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "layer_types": None,
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    biases = "all" if fields.flag("attention_bias") else "none"
    return {**options, "bias": False, "attention_bias": biases, "qk_norm": True}, has_head


def tokenizer(folder: Folder) -> Backend:
    """vocab.json and merges.txt."""
    return qwen(folder)


FAMILY = Family(
    name="Qwen3",
    defaults={"qwen3": DEFAULTS},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=tokenizer,
    ties=ties,
    unused=UNUSED,
)
