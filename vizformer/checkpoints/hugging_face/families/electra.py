"""ELECTRA: BERT under another name, in small models with narrower embeddings; its generator fills in tokens.

Source: Clark et al. 2020, "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators", and the
weights published with it.
"""

from collections.abc import Collection

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.bert_like import (
    UNUSED,
    USUAL,
    body,
    embeddings,
    narrow,
    no_unembedding,
    options,
)
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers.refusals import no_tokenizer
from vizformer.checkpoints.tokenizers.vocabularies import wordpiece
from vizformer.config import ModelConfig
from vizformer.messages import N_

HEAD, OUT = "generator_predictions", "generator_lm_head"


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    found, _ = options(fields, names, HEAD)
    has_head = any(name.startswith("generator_") for name in names)
    if has_head:
        fields.only("hidden_act", "gelu")  # the head's own activation is always this one
    found |= {
        "head": "transform" if has_head else "linear",
        "tied_unembedding": fields.flag("tie_word_embeddings") or not has_head,
    }
    return narrow(fields, found, has_head), has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    parts = [*embeddings(config), *body(config)]
    if config.embedding_dim is not None:
        parts += linear("embeddings_project", "embedding_projection")
    if config.head == "transform":
        parts += linear(f"{HEAD}.dense", "prediction.dense") + linear(f"{HEAD}.LayerNorm", "prediction.norm")
        parts += [Part(f"{OUT}.bias", ("prediction.logit_bias",))]
    own = config.head == "transform" and not config.tied_unembedding
    return parts if not own else [*parts, Part(f"{OUT}.weight", ("unembedding.weight",))]


def tokenizer(folder: Folder) -> Backend:
    """vocab.txt."""
    return wordpiece(folder) if folder.has("vocab.txt") else no_tokenizer(folder, "tokenizer.json, or vocab.txt")


FAMILY = Family(
    name="ELECTRA",
    types=("electra",),
    prefix="electra.",
    head="generator_",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=lambda config: {f"{OUT}.weight": "embeddings.word_embeddings.weight"} if config.tied_unembedding else {},
    made=no_unembedding,
    unused={
        **UNUSED,
        r"discriminator_predictions\..*": N_("the head that tells replaced tokens from others"),
    },
    usual=USUAL,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)
