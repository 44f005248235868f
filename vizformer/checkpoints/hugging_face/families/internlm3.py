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
    types=("internlm3",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=tokenizer,
    ties=ties,
    unused=UNUSED,
)
