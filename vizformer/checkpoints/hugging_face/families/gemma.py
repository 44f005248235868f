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
    types=("gemma",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=tokenizer,
    ties=ties,
    unused=UNUSED,
)
