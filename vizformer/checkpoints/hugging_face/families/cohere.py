"""Cohere (Command R, Aya 23): LLaMA's layers side by side behind one LayerNorm without bias, scaled logits.

Cohere 2 (Command R7B, Command A) is the same with a sliding window in three of four layers; only those have positions.

Source: Cohere 2024, "Command R"; Aryabumi et al. 2024, "Aya 23: Open Weight Releases to Further Multilingual Progress";
Cohere 2025, "Command A: An Enterprise-Ready Large Language Model", section 2; and the weights published with them.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from vizformer.checkpoints.hugging_face.family import Family, Options, only, reading
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import ONE_NORM
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FEEDFORWARD,
    LIKE,
    OUT,
    attention_bias,
    decoder,
    tensors,
)
from vizformer.checkpoints.hugging_face.missing_parameters import NO_NORM_BIASES, no_norm_biases
from vizformer.checkpoints.hugging_face.sliding_window import every_nth, turning_in, windowed_layers

LAYER = {"input_layernorm": ["self_norm", "feedforward_norm"], **ATTENTION, **OUT, **FEEDFORWARD}


def _second(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The layers that have a window are those that turn, also where no text is longer than it."""
    windowed = every_nth(fields)
    options, has_head = decoder(fields, names, eps="layer_norm_eps", windowed=windowed)
    fields.only("head_dim", None, options["d_model"] // options["n_heads"])
    layers = windowed_layers(fields, options["n_decoder_layers"], windowed)
    return {**options, **turning_in(layers, options)}, has_head


def _both(fields: Fields, options: Options) -> Options:
    for note in (ONE_NORM, NO_NORM_BIASES):
        fields.assume(note)
    return {
        "norm": "layer_norm",
        "residual": "parallel",
        **attention_bias("all")(fields, options),
        "logit_scale": fields.number("logit_scale"),
    }


COHERE = replace(
    LIKE,
    name="Cohere",
    types=("cohere",),
    # (use_qk_norm: norms with a scale of its own for each head)
    config=reading(partial(decoder, eps="layer_norm_eps"), only(use_qk_norm=False), _both),
    weights=partial(tensors, template=LAYER, neighbours=True),
    made=no_norm_biases,
)
FAMILIES: tuple[Family, ...] = (COHERE, replace(COHERE, types=("cohere2",), config=reading(_second, _both)))
