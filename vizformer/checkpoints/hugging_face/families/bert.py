"""BERT and what is built like it: an encoder, post-norm, positions and segments, and a head that fills in masked tokens.

Source: Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers", and what stands above each row, with the
weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

from vizformer.checkpoints.hugging_face.bert_like import (
    LIKE,
    LINEAR,
    RENAMED,
    UNUSED,
    body,
    embeddings,
    head,
    narrow,
    no_unembedding,
    options,
    spare,
    tensors,
    ties,
)
from vizformer.checkpoints.hugging_face.family import Export, Family, Options, only, reading, relative, said, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.missing_parameters import Made
from vizformer.checkpoints.hugging_face.rotary import turning_neighbours
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers.vocabularies import wordpiece_or_refuse
from vizformer.config import ModelConfig
from vizformer.messages import N_
from vizformer.model.positions import sinusoidal_encoding

PLAIN, GENERATOR, GENERATED = "lm_head", "generator_predictions", "generator_lm_head"


FIELDS = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "num_hidden_layers": "n_encoder_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "d_ff",
    "hidden_act": "activation",
    "max_position_embeddings": "max_positions",
    "type_vocab_size": "n_segments",
    "layer_norm_eps": "norm_eps",
    "tie_word_embeddings": "tied_unembedding",
    "pad_token_id": "pad_id",
}


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    kind = "BertForMaskedLM" if has_head else "BertModel"
    return {"architectures": [kind], **said(FIELDS, config), "position_embedding_type": "absolute"}


def _big_bird(fields: Fields, found: Options) -> Options:
    """Source: `transformers`, BigBirdModel.forward: up to (5 + 2 num_random_blocks) block_size tokens are looked at in full,
    whatever attention_type says.
    """
    fields.only("use_bias", True)
    fields.only("attention_type", "original_full", "block_sparse")
    block, random = fields.size("block_size"), fields.size("num_random_blocks")
    limit = (5 + 2 * random) * block
    if fields.value("attention_type") == "block_sparse" and limit < found["max_positions"]:
        fields.refuse(
            "attention_type",
            "texts of more than {limit:,} tokens are looked at in blocks only; supported is original_full",
            limit=limit,
        )
    return {"scaled_embedding": fields.flag("rescale_embeddings")}


def _generation(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    found, has_head = options(fields, names, PLAIN, segments=False)
    has_head = has_head or fields.architecture == "BertGenerationDecoder"
    tied = fields.flag("tie_word_embeddings") or not has_head
    return {**found, "head": "linear", "logit_bias": has_head, "tied_unembedding": tied}, has_head


def _tensors_of_generation(config: ModelConfig) -> list[Part]:
    bias = f"{PLAIN}.bias" if config.tied_unembedding else f"{PLAIN}.decoder.bias"
    return [
        *embeddings(config),
        *body(config),
        *([Part(bias, ("logit_bias",))] if config.logit_bias else []),
        *([] if config.tied_unembedding else [Part(f"{PLAIN}.decoder.weight", ("unembedding.weight",))]),
    ]


def _electra(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    found, _ = options(fields, names, GENERATOR)
    has_head = any(name.startswith("generator_") for name in names)
    if has_head:
        fields.only("hidden_act", "gelu")  # the head's own activation is always this one
    found |= {
        "head": "transform" if has_head else "linear",
        "tied_unembedding": fields.flag("tie_word_embeddings") or not has_head,
    }
    return narrow(fields, found, has_head), has_head


def _tensors_of_electra(config: ModelConfig) -> list[Part]:
    parts = [*embeddings(config), *body(config)]
    if config.embedding_dim is not None:
        parts += linear("embeddings_project", "embedding_projection")
    if config.head == "transform":
        parts += linear(f"{GENERATOR}.dense", "prediction.dense") + linear(f"{GENERATOR}.LayerNorm", "prediction.norm")
        parts += [Part(f"{GENERATED}.bias", ("prediction.logit_bias",))]
    own = config.head == "transform" and not config.tied_unembedding
    return parts if not own else [*parts, Part(f"{GENERATED}.weight", ("unembedding.weight",))]


def _roformer(fields: Fields, found: Options) -> Options:
    fields.only("rotary_value", False)  # otherwise the values are turned as well
    if fields.value("embedding_size") not in (None, found["d_model"]):
        fields.refuse("embedding_size", "supported are embeddings as wide as hidden_size={n}", n=found["d_model"])
    return {"positions": "rope", "rope_theta": 10_000.0}


def _tensors_of_roformer(config: ModelConfig) -> list[Part]:
    of_layers = turning_neighbours(body(config), config, {"query": config.n_heads, "key": config.n_heads})
    return [*embeddings(config), *of_layers, *head(config)]


def _waves(config: ModelConfig) -> Made:
    """Files hold the sines and cosines of the angles."""
    make = partial(sinusoidal_encoding, config.max_positions, config.d_head, "halves")
    return {"encoder.embed_positions.weight": make}


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "BERT",
        "bert",
        tokenizer=wordpiece_or_refuse,
        renamed=RENAMED,
        exports=(
            Export(
                "bert",
                dict(
                    architecture=["encoder-only"],
                    positions=["learned"],
                    embedding_norm=[True],
                    n_segments=range(1, 2**31),
                ),
                (*FIELDS.values(), "bos_id", "eos_id", "head"),
                export,
            ),
        ),
    ),
    # 1 and 2.  Sun et al. 2019, "ERNIE: Enhanced Representation through Knowledge Integration".
    replace(
        LIKE,
        name="ERNIE",
        types=("ernie",),
        prefix="ernie.",
        config=reading(options, only("task_type_vocab_size", use_task_id=False)),  # one more table
        tokenizer=wordpiece_or_refuse,
        renamed=RENAMED,
    ),
    # Texts are looked at in full as long as they are short; longer ones in blocks, which is not followed.  Zaheer et al.
    # 2020, "Big Bird: Transformers for Longer Sequences".
    relative(LIKE, "BigBird", "big_bird", options, _big_bird),
    # The norms in front of the sublayers, and one more at the end.  Shoeybi et al. 2019, "Megatron-LM: Training
    # Multi-Billion Parameter Language Models Using Model Parallelism", section 5.3.
    relative(
        LIKE,
        "Megatron-BERT",
        "megatron-bert",
        options,
        {"norm_order": "pre", "final_norm": True, "embedding_norm": False},
        weights=partial(
            tensors, template={**LINEAR, "attention.ln": ["self_norm"], "ln": ["feedforward_norm"]}, final="encoder.ln"
        ),
        tokenizer=wordpiece_or_refuse,
    ),
    # No segments, as an encoder or a decoder, with a plain head.  Rothe, Narayan & Severyn 2019, "Leveraging Pre-trained
    # Checkpoints for Sequence Generation Tasks".
    relative(
        LIKE,
        "BertGeneration",
        "bert-generation",
        _generation,
        head=f"{PLAIN}.",
        weights=_tensors_of_generation,
        ties=partial(ties, head=PLAIN),
        spare=partial(spare, head=PLAIN),
        usual={},
    ),
    # In small models narrower embeddings; its generator fills in tokens.  Clark et al. 2020, "ELECTRA: Pre-training Text
    # Encoders as Discriminators Rather Than Generators".
    relative(
        LIKE,
        "ELECTRA",
        "electra",
        _electra,
        prefix="electra.",
        head="generator_",
        weights=_tensors_of_electra,
        tokenizer=wordpiece_or_refuse,
        ties=tied_to("embeddings.word_embeddings.weight", head=GENERATED),
        spare=None,
        made=no_unembedding,
        unused={**UNUSED, r"discriminator_predictions\..*": N_("the head that tells replaced tokens from others")},
    ),
    # Rotary positions of neighbouring numbers instead of a table.  Su et al. 2021, "RoFormer: Enhanced Transformer with
    # Rotary Position Embedding".
    relative(
        LIKE,
        "RoFormer",
        "roformer",
        options,
        _roformer,
        prefix="roformer.",
        weights=_tensors_of_roformer,
        computed=_waves,
    ),
)
