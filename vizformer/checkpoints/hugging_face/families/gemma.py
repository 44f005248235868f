"""Gemma (the first): LLaMA's layers, norms that scale by 1 + weight, scaled embeddings, a GELU in the gate.

Source: Gemma Team 2024, "Gemma: Open Models Based on Gemini Research and Technology", section 2, and the weights
published with it.
"""

from collections.abc import Collection

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, tensors, ties
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tokenizers.sentencepiece_files import sentencepiece_or_refuse
from vizformer.messages import N_

DEFAULTS = {
    "vocab_size": 256_000,
    "hidden_size": 3072,
    "intermediate_size": 24_576,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 256,
    "hidden_act": "gelu_pytorch_tanh",
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "rope_theta": 10_000.0,
    "attention_bias": False,
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    fields.only("use_bidirectional_attention", None, False)
    fields.only("hidden_activation", None, "gelu_pytorch_tanh")
    if fields.value("hidden_act") == "gelu":
        fields.assume(
            N_(
                "hidden_act={value} stands for the approximation by tanh in this family, as `transformers` reads it",
                value='"gelu"',
            )
        )
    return {
        **options,
        "bias": False,
        "attention_bias": "all" if fields.flag("attention_bias") else "none",
        "activation": fields.choice("hidden_act", {**ACTIVATIONS, "gelu": "gelu_tanh"}),
        "norm_offset": True,
        "scaled_embedding": True,
    }, has_head


def tokenizer(folder: Folder) -> Backend:
    """tokenizer.model, as the first Gemma came with."""
    return sentencepiece_or_refuse(folder)


FAMILY = Family(
    name="Gemma",
    defaults={"gemma": DEFAULTS},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=tokenizer,
    ties=ties,
    unused=UNUSED,
)
