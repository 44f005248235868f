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
    types=("qwen3",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=tokenizer,
    ties=ties,
    unused=UNUSED,
)
