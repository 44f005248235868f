"""Cohere (Command R, Aya 23): LLaMA's layers side by side behind one LayerNorm without bias, scaled logits.

Cohere 2 (Command R7B, Command A) is the same with a sliding window in three of four layers; only those have positions.

Source: Cohere 2024, "Command R"; Aryabumi et al. 2024, "Aya 23: Open Weight Releases to Further Multilingual Progress";
Cohere 2025, "Command A: An Enterprise-Ready Large Language Model", section 2; and the weights published with them.
"""

from collections.abc import Collection
from dataclasses import replace

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
from vizformer.checkpoints.hugging_face.missing_parameters import NO_NORM_BIASES, no_norm_biases, stored
from vizformer.checkpoints.hugging_face.rope_layers import turning_in
from vizformer.checkpoints.hugging_face.sliding_window import windowed_layers
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

NORM = "input_layernorm"
LAYER = {NORM: ["self_norm", "feedforward_norm"], **ATTENTION, **OUT, **FEEDFORWARD}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    if fields.kind == "cohere2":
        options, has_head = _of_cohere_2(fields, names)
    else:
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


def _of_cohere_2(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The layers that have a window are those that turn, also where no text is longer than it."""
    fields.size("sliding_window")  # there is always one
    # Old files do not list the layers.
    every = fields.size("sliding_window_pattern") if fields.value("layer_types") is None else 1

    def windowed(layer: int) -> bool:
        return (layer + 1) % every != 0

    options, has_head = decoder(fields, names, eps="layer_norm_eps", windowed=windowed)
    fields.only("head_dim", None, options["d_model"] // options["n_heads"])
    layers = windowed_layers(fields, options["n_decoder_layers"], windowed)
    return {**options, **turning_in(layers, options)}, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    parts = stored(tensors(config, LAYER), no_norm_biases(config))
    return [replace(part, shared=NORM in part.source) for part in neighbours(config, parts)]


FAMILY = Family(
    name="Cohere",
    types=("cohere", "cohere2"),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    made=no_norm_biases,
    unused=UNUSED,
)
