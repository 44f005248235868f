"""Gemma 3n's language model: several residual streams (AltUp), a second way around attention (LAuReL), gates with a cutoff.

Like Gemma 4's small models it reads tokens again in every layer, and its last layers share keys and values.

Source: Google DeepMind 2025, "Gemma 3n", and the weights published with it, as `transformers` has them.
"""

from collections.abc import Collection
from typing import Any

from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gemma_like import AGAIN, SAME, TABLES, UNUSED_KEYS, shared_keys
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FEEDFORWARD,
    FOUR_NORMS,
    LIKE,
    OUT,
    QK_NORMS,
    decoder,
    tensors,
)
from vizformer.checkpoints.hugging_face.rotary import rope_of_layer_types
from vizformer.checkpoints.hugging_face.sliding_window import MOST_LAYERS, windowed_layers
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig
from vizformer.messages import N_

_SPARSE_AT_FIRST = (10, 0.95)  # layers of a deeper model that have a cutoff where no list says it, and its share
_STREAMS = {
    "altup.router_norm": ["streams.norm"],
    "altup.modality_router": ["streams.W_t"],
    "altup.prediction_coefs": ["streams.W_predict"],
    "altup.correction_coefs": ["streams.W_correct"],
    "laurel.linear_left": ["laurel.W_left"],
    "laurel.linear_right": ["laurel.W_right"],
    "laurel.post_laurel_norm": ["laurel.norm"],
}
_ENDS = {"altup_projections": "W_split", "altup_unembed_projections": "W_merge"}


def _config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    n_layers, vocab_size = fields.size("num_hidden_layers"), fields.size("vocab_size")

    def windowed(layer: int) -> bool:
        return (layer + 1) % 5 != 0

    def turning(fields: Fields) -> Options:
        return rope_of_layer_types(fields, sliding, old_local="rope_local_base_freq")

    fields.size("sliding_window")  # there is always one
    sliding = windowed_layers(fields, n_layers, windowed)
    widths = fields.value("intermediate_size")
    if isinstance(widths, list):  # one for each layer
        if len(widths) != n_layers or any(one != widths[0] for one in widths):
            fields.refuse("intermediate_size", "it must be one number, or the same for each of the layers")
        fields.raw["intermediate_size"] = widths[0] if widths else None
    options, has_head = decoder(fields, names, windowed=windowed, turning=turning, activation="hidden_activation")
    fields.only("altup_active_idx", 0)
    fields.ignore("altup_coef_clip")  # in training
    streams = fields.size("altup_num_inputs")
    if not 2 <= streams <= 64:
        fields.refuse("altup_num_inputs", "it must be a whole number from 2 to 64")
        streams = 2
    rows = fields.size("vocab_size_per_layer_input")
    if rows > vocab_size:
        fields.refuse("vocab_size_per_layer_input", "it must be vocab_size at most")
        rows = vocab_size
    if rows < vocab_size:
        fields.assume(
            "vocab_size_per_layer_input: tokens from {n:,} on, which stand for pictures and sounds, read in every layer "
            "what token 0 reads, as `transformers` does where only a text is read",
            n=rows,
        )
    bias = fields.flag("attention_bias")
    return {
        **options,
        **shared_keys(fields, n_layers, set(sliding)),
        **SAME,
        "attention_bias": "all" if bias else "none",
        "layer_input_dim": fields.size("hidden_size_per_layer_input"),
        "layer_input_vocab": rows if rows < vocab_size else None,
        "n_streams": streams,
        "stream_scale": fields.flag("altup_correct_scale"),
        "laurel_rank": fields.size("laurel_rank"),
        "gate_sparsity": _sparsity(fields, n_layers),
        "logit_cap": fields.number("final_logit_softcapping"),
    }, has_head


def _sparsity(fields: Fields, n_layers: int) -> tuple[float, ...] | None:
    """Of each layer the share of gates that its cutoff is meant to shut; None where no layer has a cutoff."""
    said: Any = fields.value("activation_sparsity_pattern")
    if said is None and n_layers <= MOST_LAYERS:
        many, share = _SPARSE_AT_FIRST
        return (share,) * many + (0.0,) * (n_layers - many) if n_layers > many else None
    if (
        not isinstance(said, list)
        or len(said) != n_layers
        or not all(type(one) in (int, float) and 0 <= one < 1 for one in said)
    ):
        fields.refuse("activation_sparsity_pattern", "it must have a number from 0 to below 1 for each of the layers")
        return None
    return tuple(map(float, said)) if any(said) else None


def _weights(config: ModelConfig) -> list[Part]:
    parts = tensors(config, {**FOUR_NORMS, **ATTENTION, **QK_NORMS, **OUT, **FEEDFORWARD, **AGAIN, **_STREAMS})
    shared = tuple(f"layers.{layer}.self_attn.{one}" for layer in config.shared_kv_layers for one in "kv")
    parts = [part for part in parts if not part.source.startswith(shared)]
    parts += [Part(theirs, (ours,)) for theirs, ours in TABLES.items()]
    for stream in range((config.n_streams or 1) - 1):
        parts += [Part(f"{a}.{stream}.weight", (f"decoder.ends.{b}.{stream}.weight",)) for a, b in _ENDS.items()]
    if config.stream_scale:
        parts += [
            Part(f"layers.{layer}.altup.correct_output_scale", (f"decoder.layers.{layer}.streams.scale_weight",))
            for layer in range(config.n_decoder_layers)
        ]
    return parts


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "Gemma 3n",
        "gemma3n_text",
        _config,
        weights=_weights,
        unused={
            **UNUSED_KEYS,
            r"layers\.\d+\.altup\.correct_output_scale": N_("altup_correct_scale=false: nothing is multiplied by it"),
        },
    ),
)
