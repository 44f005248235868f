"""BERT: an encoder, post-norm, learned positions and segments, and a head that fills in masked tokens.

Source: Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers", and the weights published with it.
"""

from collections.abc import Collection
from typing import Any

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.family import SPARE_BIAS, Export, Family, Options, says_head
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.activations import ACTIVATIONS, THEIRS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.refusals import no_tokenizer
from vizformer.checkpoints.tokenizers.vocabularies import wordpiece
from vizformer.config import ModelConfig
from vizformer.messages import N_, Message

DEFAULTS = {
    "vocab_size": 30_522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "tie_word_embeddings": True,
}
LAYER = {
    "attention.self.query": ["self_attention.W_Q"],
    "attention.self.key": ["self_attention.W_K"],
    "attention.self.value": ["self_attention.W_V"],
    "attention.output.dense": ["self_attention.W_O"],
    "attention.output.LayerNorm": ["self_norm"],
    "intermediate.dense": ["feedforward.W_in"],
    "output.dense": ["feedforward.W_out"],
    "output.LayerNorm": ["feedforward_norm"],
}
HEAD = "cls.predictions"


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    vocab_size = fields.size("vocab_size")
    fields.value("is_causal")  # an encoder looks both ways all the same
    has_head = any(name.startswith(HEAD) for name in names) or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=fields.size("hidden_size"),
        n_heads=fields.size("num_attention_heads"),
        d_ff=fields.size("intermediate_size"),
        n_encoder_layers=fields.size("num_hidden_layers"),
        max_positions=fields.size("max_position_embeddings"),
        positions="learned",
        n_segments=fields.size("type_vocab_size"),
        embedding_norm=True,
        norm_eps=fields.number("layer_norm_eps"),
        activation=fields.choice("hidden_act", ACTIVATIONS),
        head="transform" if has_head else "linear",
        tied_unembedding=fields.flag("tie_word_embeddings") or not has_head,
        bos_id=fields.token("bos_token_id", vocab_size),
        eos_id=fields.token("eos_token_id", vocab_size),
        pad_id=fields.token("pad_token_id", vocab_size),
    ), has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    parts = [
        Part("embeddings.word_embeddings.weight", ("embedding.weight",)),
        Part("embeddings.position_embeddings.weight", ("position_embedding.weight",)),
        Part("embeddings.token_type_embeddings.weight", ("segment_embedding.weight",)),
        *linear("embeddings.LayerNorm", "embedding_norm"),
        *layers(LAYER, "encoder.layer.{}", "encoder.layers.{}", config.n_encoder_layers),
    ]
    if config.head == "transform":
        parts += linear(f"{HEAD}.transform.dense", "prediction.dense")
        parts += linear(f"{HEAD}.transform.LayerNorm", "prediction.norm")
        bias = f"{HEAD}.bias" if config.tied_unembedding else f"{HEAD}.decoder.bias"
        parts += [Part(bias, ("prediction.logit_bias",))]
    return parts if config.tied_unembedding else [*parts, Part(f"{HEAD}.decoder.weight", ("unembedding.weight",))]


def ties(config: ModelConfig) -> dict[str, str]:
    """Second names under which some files repeat a tensor."""
    if not config.tied_unembedding:
        return {}
    return {f"{HEAD}.decoder.bias": f"{HEAD}.bias", f"{HEAD}.decoder.weight": "embeddings.word_embeddings.weight"}


def spare(config: ModelConfig) -> dict[str, tuple[str, Message]]:
    """The bias of a head that is not tied, in files that have it under one name only."""
    return {} if config.tied_unembedding else {f"{HEAD}.bias": (f"{HEAD}.decoder.bias", SPARE_BIAS)}


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
    defaults={"bert": DEFAULTS},
    prefix="bert.",
    head="cls.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    spare=spare,
    unused={
        r"embeddings\.position_ids": N_("the numbers 0, 1, 2, ...: they follow from the positions"),
        r"pooler\..*": N_("the summary of the first token, used by classifiers only"),
        r"cls\.seq_relationship\..*": N_('the head for "does sentence B follow?"'),
        r"(classifier|qa_outputs)\..*": N_("the head of another task"),
    },
    renamed={r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"},
    usual={"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"},
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
