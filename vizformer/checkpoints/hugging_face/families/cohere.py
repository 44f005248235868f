"""Cohere (Command R, Aya 23): LLaMA's layers side by side behind one LayerNorm without bias, scaled logits.

Source: Cohere 2024, "Command R", and Aryabumi et al. 2024, "Aya 23: Open Weight Releases to Further Multilingual
Progress", and the weights published with them.
"""

from collections.abc import Collection
from dataclasses import replace

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.absent import NO_NORM_BIASES, no_norm_biases, stored
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import ONE_NORM
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FEEDFORWARD,
    OUT,
    UNUSED,
    decoder,
    neighbours,
    tensors,
    ties,
)
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import no_tokenizer
from vizformer.config import ModelConfig

DEFAULTS = {
    "vocab_size": 256_000,
    "hidden_size": 8192,
    "intermediate_size": 22_528,
    "logit_scale": 0.0625,
    "num_hidden_layers": 40,
    "num_attention_heads": 64,
    "hidden_act": "silu",
    "max_position_embeddings": 8192,
    "layer_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
    "bos_token_id": 5,
    "eos_token_id": 255_001,
    "rope_theta": 500_000.0,
    "attention_bias": False,
    "use_qk_norm": False,
}
NORM = "input_layernorm"
LAYER = {NORM: ["self_norm", "feedforward_norm"], **ATTENTION, **OUT, **FEEDFORWARD}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, eps="layer_norm_eps")
    fields.only("use_qk_norm", False)  # norms with a scale of its own for each head
    for note in (ONE_NORM, NO_NORM_BIASES):
        fields.assume(note)
    return {
        **options,
        "norm": "layer_norm",
        "residual": "parallel",
        "bias": False,
        "attention_bias": "all" if fields.flag("attention_bias") else "none",
        "logit_scale": fields.number("logit_scale"),
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    parts = stored(tensors(config, LAYER), no_norm_biases(config))
    return [replace(part, shared=NORM in part.source) for part in neighbours(config, parts)]


def tokenizer(folder: Folder) -> Backend:
    """Only tokenizer.json is read."""
    no_tokenizer(folder, "tokenizer.json")


FAMILY = Family(
    name="Cohere",
    defaults={"cohere": DEFAULTS},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    made=no_norm_biases,
    unused=UNUSED,
)
