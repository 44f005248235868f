"""LLaMA's relatives that need more than a row in a table.

Source: what stands above each, and the weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face import gpt_like
from vizformer.checkpoints.hugging_face.family import Family, Options, only, reading, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import ONE_NORM, byte_level_texts
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FEEDFORWARD,
    LIKE,
    NORMS,
    OUT,
    QK_NORMS,
    attention_bias,
    cap,
    decoder,
    tensors,
)
from vizformer.checkpoints.hugging_face.missing_parameters import NO_NORM_BIASES, Made, no_norm_biases, norms_of
from vizformer.checkpoints.hugging_face.rotary import GAIN, rope_of_layer_types, table_of
from vizformer.checkpoints.hugging_face.sliding_window import every_nth, turning_in, windowed_layers
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig

# StableLM (3B, Zephyr 3B, 2 1.6B): LLaMA's layers with LayerNorm, and rotary positions for a part of each head.
# Source: Tow et al. 2023, "StableLM 3B 4E1T"; Bellagente et al. 2024, "Stable LM 2 1.6B Technical Report", section 2.

ONE = {"input_layernorm": ["self_norm", "feedforward_norm"]}  # one norm before both sublayers


def _stablelm(fields: Fields, found: Options) -> Options:
    fields.only("qk_layernorm", False)  # one norm per head
    fields.only("head_dim", None, found["d_model"] // found["n_heads"])
    parallel = fields.flag("use_parallel_residual")
    if parallel:
        fields.assume(ONE_NORM)
    return {
        "norm": "layer_norm",
        "residual": "parallel" if parallel else "sequential",
        "bias": False,
        "attention_bias": "qkv" if fields.flag("use_qkv_bias") else "none",
    }


def _stablelm_weights(config: ModelConfig) -> list[Part]:
    norms = ONE if config.residual == "parallel" else NORMS
    return tensors(config, {**norms, **ATTENTION, **OUT, **FEEDFORWARD})


# Phi (1, 1.5 and 2): parallel layers behind one norm, rotary positions for a part of each head, biases everywhere.
# Source: Gunasekar et al. 2023, "Textbooks Are All You Need", section 2.3, and the weights published with it.

PHI = {
    **ONE,
    **ATTENTION,
    "self_attn.dense": ["self_attention.W_O"],
    "mlp.fc1": ["feedforward.W_in"],
    "mlp.fc2": ["feedforward.W_out"],
}


def _phi(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, eps="layer_norm_eps", part=True)
    fields.only("qk_layernorm", False)
    fields.only("head_dim", None, options["d_model"] // options["n_heads"])
    fields.assume(ONE_NORM)
    own = {"norm": "layer_norm", "feedforward": "plain", "residual": "parallel", "logit_bias": "lm_head.bias" in names}
    return {**options, **own}, has_head


# Cohere (Command R, Aya 23): LLaMA's layers side by side behind one LayerNorm without bias, scaled logits.
# Cohere 2 (Command R7B, Command A) is the same with a sliding window in three of four layers; only those have positions.
# Source: Cohere 2024, "Command R"; Aryabumi et al. 2024, "Aya 23: Open Weight Releases to Further Multilingual Progress";
# Cohere 2025, "Command A: An Enterprise-Ready Large Language Model", section 2; and the weights published with them.

COHERE_LAYER = {**ONE, **ATTENTION, **OUT, **FEEDFORWARD}


def _cohere_2(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The layers that have a window are those that turn, also where no text is longer than it."""
    windowed = every_nth(fields)
    options, has_head = decoder(fields, names, eps="layer_norm_eps", windowed=windowed)
    fields.only("head_dim", None, options["d_model"] // options["n_heads"])
    layers = windowed_layers(fields, options["n_decoder_layers"], windowed)
    return {**options, **turning_in(layers, options)}, has_head


def _cohere(fields: Fields, options: Options) -> Options:
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
    config=reading(partial(decoder, eps="layer_norm_eps"), only(use_qk_norm=False), _cohere),
    weights=partial(tensors, template=COHERE_LAYER, neighbours=True),
    made=no_norm_biases,
)


# OLMo 2 and 3: LLaMA's layers, each sublayer's output normalised before it is added, queries and keys over all heads.
# EXAONE 4 normalises every head of queries and keys by itself; where some layers have a window only these know positions.
# In OLMo 3 three layers out of four have a sliding window; only the others are slowed down for longer texts.
# Source: OLMo Team 2024, "2 OLMo 2 Furious", section 2.1; OLMo Team 2025, "Olmo 3"; LG AI Research 2025, "EXAONE 4.0:
# Unified Large Language Models Integrating Non-reasoning and Reasoning Modes", section 2.1.

OLMO_2_LAYER = {
    **ATTENTION,
    **OUT,
    **QK_NORMS,
    **FEEDFORWARD,
    "post_attention_layernorm": ["self_norm"],
    "post_feedforward_layernorm": ["feedforward_norm"],
}
NORMED = {"norm_order": "output", "qk_norm": True, "qk_norm_over": "all"}


def _olmo_3(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.size("sliding_window")  # there is always one
    return decoder(fields, names, windowed=_three_of_four, turning=_olmo_3_turning)


def _three_of_four(layer: int) -> bool:
    return (layer + 1) % 4 != 0


def _olmo_3_turning(fields: Fields) -> Options:
    layers = windowed_layers(fields, fields.size("num_hidden_layers"), _three_of_four)
    return rope_of_layer_types(fields, layers, local=fields.defaults["rope_theta"])


def _exaone_4(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    n_layers, every = fields.size("num_hidden_layers"), 1
    if fields.value("sliding_window") is None:
        if fields.value("layer_types") is None:  # `transformers` would count the layers by 0
            fields.refuse("layer_types", "where sliding_window is null it must have an entry for each layer")
        fields.ignore("sliding_window_pattern")
        return decoder(fields, names)
    if fields.value("layer_types") is None:
        every = fields.size("sliding_window_pattern")

    def windowed(layer: int) -> bool:
        return (layer + 1) % every != 0

    fields.ignore("sliding_window_pattern")
    turned = windowed_layers(fields, n_layers, windowed)
    options, has_head = decoder(fields, names, windowed=windowed)
    return {**options, **turning_in(turned, options)}, has_head


OLMO_2 = relative(
    LIKE, "OLMo 2", "olmo2", decoder, attention_bias("all"), NORMED, weights=partial(tensors, template=OLMO_2_LAYER)
)


# nanochat: norms that learn nothing, also of queries and keys; a squared ReLU; a soft cap of the logits.
# Source: Karpathy 2025, "nanochat", and the weights published with it.

NANOCHAT = {**ATTENTION, **OUT, "mlp.fc1": ["feedforward.W_in"], "mlp.fc2": ["feedforward.W_out"]}


def _nanochat(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names)
    if options.pop(GAIN, 1.0) != 1:
        fields.refuse(
            table_of(fields)[0], "queries and keys are normalised after they are turned: yarn multiplies nothing there"
        )
    fields.assume("the norms of this family learn nothing: those of the model here multiply by 1")
    return {
        **options,
        **attention_bias("all")(fields, options),
        "feedforward": "plain",
        "embedding_norm": True,
        "qk_norm": True,
        "logit_cap": cap(fields, "final_logit_softcapping"),
    }, has_head


def _nanochat_weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor.

    Pairs turn backwards there, (x_m, x_(m+d/2)) to (x_m cos + x_(m+d/2) sin, x_(m+d/2) cos - x_m sin): ours, where the
    halves of each head change places in queries and keys alike.  Turning leaves the mean square as it is, so that the norm
    of a turned query is the turned norm of it.
    """
    heads = {"q_proj": config.n_heads, "k_proj": config.kv_heads}
    return [
        replace(part, order=partial(_halves_changed, heads[name], config.d_head))
        if (name := part.source.split(".")[-2]) in heads
        else part
        for part in tensors(config, NANOCHAT)
    ]


def _halves_changed(heads: int, d_head: int) -> Tensor:
    """The rows of W_Q or W_K, the second half of each head first."""
    one = torch.arange(d_head).roll(d_head // 2)  # [d_head]
    return (torch.arange(heads)[:, None] * d_head + one).flatten()  # [heads * d_head]


def _nanochat_made(config: ModelConfig) -> Made:
    """RMSNorm(x) = x / sqrt(mean(x^2) + eps) * 1."""
    at = [f"decoder.layers.{layer}.self_attention.{x}_norm" for layer in range(config.n_decoder_layers) for x in "qk"]
    of_heads: Made = dict.fromkeys((f"{name}.weight" for name in at), partial(torch.ones, config.d_head))
    others = [f"{name}.weight" for name in ("embedding_norm", *norms_of(config))]
    return {**of_heads, **dict.fromkeys(others, partial(torch.ones, config.d_model))}


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "StableLM",
        "stablelm",
        partial(decoder, eps="layer_norm_eps", part=True),
        _stablelm,
        weights=_stablelm_weights,
    ),
    relative(
        LIKE,
        "Phi",
        "phi",
        _phi,
        weights=partial(
            gpt_like.tensors, template=PHI, table="embed_tokens", layer="layers.{}", final="final_layernorm"
        ),
        tokenizer=byte_level_texts,
    ),
    COHERE,
    replace(COHERE, types=("cohere2",), config=reading(_cohere_2, _cohere)),
    OLMO_2,
    replace(OLMO_2, types=("olmo3",), config=reading(_olmo_3, attention_bias("all"), NORMED)),
    relative(OLMO_2, "EXAONE 4", "exaone4", _exaone_4, {"bias": False, "norm_order": "output", "qk_norm": True}),
    relative(LIKE, "nanochat", "nanochat", _nanochat, weights=_nanochat_weights, made=_nanochat_made),
)
