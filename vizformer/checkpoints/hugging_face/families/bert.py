"""BERT: an encoder, post-norm, learned positions and segments, and a head that fills in masked tokens.

Source: Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers", and the weights published with it.
"""

from collections.abc import Collection
from typing import Any

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.bert_like import (
    RENAMED,
    UNUSED,
    USUAL,
    body,
    embeddings,
    head,
    options,
    spare,
    ties,
)
from vizformer.checkpoints.hugging_face.family import Export, Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.activations import THEIRS
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import no_tokenizer
from vizformer.checkpoints.tokenizers.vocabularies import wordpiece
from vizformer.config import ModelConfig


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    return options(fields, names)


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return [*embeddings(config), *body(config), *head(config)]


def tokenizer(folder: Folder) -> Backend:
    """vocab.txt."""
    return wordpiece(folder) if folder.has("vocab.txt") else no_tokenizer(folder, "tokenizer.json, or vocab.txt")


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json."""
    return dict(
        architectures=["BertForMaskedLM" if has_head else "BertModel"],
        vocab_size=config.vocab_size,
        hidden_size=config.d_model,
        num_hidden_layers=config.n_encoder_layers,
        num_attention_heads=config.n_heads,
        intermediate_size=config.d_ff,
        hidden_act=THEIRS[config.activation],
        max_position_embeddings=config.max_positions,
        type_vocab_size=config.n_segments,
        layer_norm_eps=config.norm_eps,
        tie_word_embeddings=config.tied_unembedding,
        pad_token_id=config.pad_id,
        position_embedding_type="absolute",
    )


FAMILY = Family(
    name="BERT",
    types=("bert",),
    prefix="bert.",
    head="cls.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    spare=spare,
    unused=UNUSED,
    renamed=RENAMED,
    usual=USUAL,
    exports=(
        Export(
            "bert",
            dict(
                architecture=["encoder-only"],
                positions=["learned"],
                norm_order=["post"],
                norm=["layer_norm"],
                final_norm=[False],
                feedforward=["plain"],
                bias=[True],
                scaled_embedding=[False],
                embedding_norm=[True],
                n_segments=range(1, 2**31),
            ),
            (
                "vocab_size",
                "d_model",
                "n_heads",
                "d_ff",
                "n_encoder_layers",
                "max_positions",
                "norm_eps",
                "activation",
                "tied_unembedding",
                "pad_id",
                "bos_id",
                "eos_id",
                "head",
            ),
            export,
        ),
    ),
)
FAMILIES: tuple[Family, ...] = (FAMILY,)
