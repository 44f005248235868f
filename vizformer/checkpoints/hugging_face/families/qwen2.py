"""Qwen2 and 2.5: LLaMA's layers, with biases for queries, keys and values alone.

Source: Yang et al. 2024, "Qwen2 Technical Report", section 2.2, and the weights published with it.
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
    return {**options, "bias": False, "attention_bias": "qkv"}, has_head


def tokenizer(folder: Folder) -> Backend:
    """vocab.json and merges.txt."""
    return qwen(folder)


FAMILY = Family(
    name="Qwen2",
    types=("qwen2",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=tokenizer,
    ties=ties,
    unused=UNUSED,
)
