"""Megatron-BERT: BERT with the norms in front of the sublayers, and one more at the end.

Source: Shoeybi et al. 2019, "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism",
section 5.3, and the weights published with it.
"""

from collections.abc import Collection

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.bert_like import (
    LAYER,
    UNUSED,
    USUAL,
    body,
    embeddings,
    head,
    name,
    options,
    spare,
    ties,
)
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers.refusals import no_tokenizer
from vizformer.checkpoints.tokenizers.vocabularies import wordpiece
from vizformer.config import ModelConfig

MODULES = {
    **{theirs: ours for theirs, ours in LAYER.items() if not theirs.endswith("LayerNorm")},
    "attention.ln": ["self_norm"],
    "ln": ["feedforward_norm"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    found, has_head = options(fields, names)
    return {**found, "norm_order": "pre", "final_norm": True, "embedding_norm": False}, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    final = linear("encoder.ln", f"{name(config)}.final_norm")
    return [*embeddings(config), *body(config, MODULES), *final, *head(config)]


def tokenizer(folder: Folder) -> Backend:
    """vocab.txt."""
    return wordpiece(folder) if folder.has("vocab.txt") else no_tokenizer(folder, "tokenizer.json, or vocab.txt")


FAMILY = Family(
    name="Megatron-BERT",
    types=("megatron-bert",),
    prefix="bert.",
    head="cls.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    spare=spare,
    unused=UNUSED,
    usual=USUAL,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)
