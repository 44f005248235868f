"""Qwen3-Next and the language models of Qwen3.5: the gated delta rule in three layers of four, gated attention in one.

Source: Qwen Team 2025, "Qwen3-Next", and Qwen Team 2026, "Qwen3.5"; the weights published with them, and `transformers`.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from vizformer.checkpoints.hugging_face.experts_like import as_stored, qwen_experts, weights
from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import LIKE, NORMS, UNUSED, attention_bias, decoder
from vizformer.checkpoints.hugging_face.rotary import of_texts
from vizformer.checkpoints.hugging_face.sliding_window import FULL, MOST_LAYERS
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers.vocabularies import qwen
from vizformer.config import ModelConfig
from vizformer.messages import N_

LINEAR = "linear_attention"


def _config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    delta = _state_layers(fields, fields.size("num_hidden_layers"))
    fields.raw.pop("layer_types", None)  # (it is read here: there are no windows)
    of_texts(fields)
    options, has_head = decoder(fields, names, part=True)
    fields.only("hidden_act", "silu")
    sizes: Options = {
        f"state_{ours}": fields.size(f"linear_{theirs}")
        for ours, theirs in (
            ("key_heads", "num_key_heads"),
            ("value_heads", "num_value_heads"),
            ("key_dim", "key_head_dim"),
            ("value_dim", "value_head_dim"),
            ("kernel", "conv_kernel_dim"),
        )
    }
    return {
        **options,
        **attention_bias("all")(fields, options),
        "qk_norm": True,
        "norm_offset": True,
        "attention_gate": True,
        **({"state_layers": tuple(delta), **sizes} if delta else {}),
    }, has_head


def _state_layers(fields: Fields, n_layers: int) -> list[int]:
    """Those that layer_types lists, or all but every full_attention_interval-th one."""
    kinds, every = fields.value("layer_types"), fields.size("full_attention_interval")
    if n_layers > MOST_LAYERS:
        fields.refuse("num_hidden_layers", "supported are at most {limit} layers", limit=MOST_LAYERS)
        return []
    if kinds is None:
        return [layer for layer in range(n_layers) if (layer + 1) % every]
    if not isinstance(kinds, list) or any(kind not in (FULL, LINEAR) for kind in kinds):
        fields.refuse("layer_types", "supported are full_attention and linear_attention")
    elif len(kinds) != n_layers:
        fields.refuse("layer_types", "it must have an entry for each of the {n} layers", n=n_layers)
    else:
        return [layer for layer, kind in enumerate(kinds) if kind == LINEAR]
    return []


def _experts(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = _config(fields, names)
    return {**options, **qwen_experts(fields, options, names, "num_experts", shared=True)}, has_head


def _packed(config: ModelConfig, theirs: str, ours: str) -> list[Part]:
    """Qwen3-Next's matrices, whose rows alternate head by head."""
    letters, heads = (
        [f"{ours}.W_{letter}.weight" for letter in ("Q", "K", "V", "gate", "b", "a")],
        config.state_heads[0],
    )
    return [
        Part(f"{theirs}.in_proj_qkvz.weight", tuple(letters[:4]), heads=heads),
        Part(f"{theirs}.in_proj_ba.weight", tuple(letters[4:]), heads=heads),
    ]


def _apart(config: ModelConfig, theirs: str, ours: str) -> list[Part]:
    """Qwen3.5's."""
    qkv = Part(f"{theirs}.in_proj_qkv.weight", tuple(f"{ours}.W_{letter}.weight" for letter in "QKV"))
    rest = {"z": "gate", "b": "b", "a": "a"}
    return [qkv, *(Part(f"{theirs}.in_proj_{name}.weight", (f"{ours}.W_{own}.weight",)) for name, own in rest.items())]


def _weights(config: ModelConfig, matrices: Callable[[ModelConfig, str, str], list[Part]]) -> list[Part]:
    without = tuple(f"layers.{layer}.self_attn." for layer in config.state_layers or ())
    parts = [part for part in weights(config, NORMS) if not part.source.startswith(without)]
    for layer in range(config.n_decoder_layers):
        theirs, ours = f"layers.{layer}", f"decoder.layers.{layer}.self_attention"
        if not config.has_state(layer):
            q, *others = (
                linear(f"{theirs}.self_attn.{x}_proj", f"{ours}.W_{x.upper()}", bias=config.qkv_bias) for x in "qkvo"
            )
            gated = [replace(part, targets=(*part.targets, part.targets[0].replace("W_Q", "W_gate"))) for part in q]
            parts += [replace(part, heads=config.n_heads) for part in gated]
            parts += [part for one in others for part in one]
            continue
        theirs = f"{theirs}.linear_attn"
        names = {
            "conv1d.weight": "filters",
            "A_log": "rate",
            "dt_bias": "bias",
            "norm.weight": "norm.weight",
            "out_proj.weight": "W_O.weight",
        }
        parts += matrices(config, theirs, ours)
        parts += [Part(f"{theirs}.{name}", (f"{ours}.{own}",)) for name, own in names.items()]
    return parts


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "Qwen3-Next",
        "qwen3_next",
        _experts,
        weights=partial(_weights, matrices=_packed),
        by_names=as_stored,
        tokenizer=qwen,
        unused={**UNUSED, r"mtp\..*": N_("layers that guess further tokens ahead, which no forward needs")},
    ),
    relative(
        LIKE,
        "Qwen3.5",
        "qwen3_5_text",
        _config,
        weights=partial(_weights, matrices=_apart),
        tokenizer=qwen,
        unused={**UNUSED, r"mtp\..*": N_("layers that guess further tokens ahead, which no forward needs")},
    ),
)
