"""GPT-NeoX and its relative in Japanese.

Source: what stands above each, and the weights published with it.
"""

from collections.abc import Collection
from functools import partial

import torch

from vizformer.checkpoints.hugging_face.family import Family, Options, relative, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import (
    LIKE,
    NEOX_FUSED,
    NEOX_LAYER,
    UNUSED,
    composed_texts,
    decoder,
    tensors,
)
from vizformer.checkpoints.hugging_face.missing_parameters import Made
from vizformer.checkpoints.hugging_face.rotary import rope, turned
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig
from vizformer.messages import N_

# GPT-NeoX and Pythia: parallel layers, rotary positions for a part of each head, q, k and v in one, head by head.
# Source: Black et al. 2022, "GPT-NeoX-20B: An Open-Source Autoregressive Language Model", section 2; Biderman et al.
# 2023, "Pythia", and the weights published with them.


def _gpt_neox(fields: Fields, found: Options) -> Options:
    d_head = max(1, found["d_model"] // found["n_heads"])
    fields.ignore("is_decoder")  # only a warning depends on it
    fields.only("head_dim", None, d_head)
    return {
        "d_ff": fields.size("intermediate_size"),
        "positions": "rope",
        **rope(fields, "rotary_emb_base"),
        "rope_dims": turned(fields, d_head, "rotary_pct"),
        "norm_eps": fields.number("layer_norm_eps"),
        "activation": fields.choice("hidden_act", ACTIVATIONS),
        "residual": "parallel" if fields.flag("use_parallel_residual") else "sequential",
        "attention_bias": "same" if fields.flag("attention_bias") else "none",
        "logit_bias": False,
    }


def _gpt_neox_weights(config: ModelConfig) -> list[Part]:
    no_bias = [] if config.qkv_bias else [NEOX_FUSED, "attention.dense"]
    names = ("embed_in", "", "layers.{}", "final_layer_norm")
    return tensors(config, NEOX_LAYER, *names, fused=NEOX_FUSED, no_bias=no_bias)


# GPT-NeoX Japanese: GPT-NeoX's attention in layers one after the other, with a bias in one place only.
# Source: ABEJA 2022, "GPT-NeoX Japanese", and the weights published with it.

HEAD = "embed_out"


def _japanese(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, head=HEAD)
    d_head = max(1, options["d_model"] // options["n_heads"])
    fields.ignore("is_decoder")  # no forward reads it
    fields.assume(
        "of all linear layers only the last one of attention in the last layer has a bias: those of attention are 0"
    )
    return {
        **options,
        "d_ff": fields.size("intermediate_multiple_size") * options["d_model"],
        "positions": "rope",
        **rope(fields, "rotary_emb_base"),
        "rope_dims": turned(fields, d_head, "rotary_pct"),
        "norm_eps": fields.number("layer_norm_eps"),
        "activation": fields.choice("hidden_act", ACTIVATIONS),
        "bias": False,
        "attention_bias": "all",
    }, has_head


def _japanese_made(config: ModelConfig) -> Made:
    """Biases of 0: all of attention's but one."""
    last = f"decoder.layers.{config.n_decoder_layers - 1}.self_attention.W_O.bias"
    names = (
        f"decoder.layers.{layer}.self_attention.W_{letter}.bias"
        for layer in range(config.n_decoder_layers)
        for letter in "QKVO"
    )
    return {name: partial(torch.zeros, config.d_model) for name in names if name != last}


def _japanese_weights(config: ModelConfig) -> list[Part]:
    no_bias = [name for name in NEOX_LAYER if not name.endswith("layernorm")]
    names = ("embed_in", "", "layers.{}", "final_layer_norm")
    last = f"layers.{config.n_decoder_layers - 1}"
    return [
        *tensors(config, NEOX_LAYER, *names, output=HEAD, fused=NEOX_FUSED, no_bias=no_bias),
        Part(f"{last}.attention.dense_bias", (f"decoder.{last}.self_attention.W_O.bias",)),
    ]


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "GPT-NeoX",
        "gpt_neox",
        decoder,
        _gpt_neox,
        prefix="gpt_neox.",
        weights=_gpt_neox_weights,
        tokenizer=composed_texts,
        ties=tied_to("embed_in.weight"),
        renamed={r"^embed_out\.": "lm_head."},
        unused={
            **UNUSED,
            r"(layers\.\d+\.attention\.)?rotary_emb\.inv_freq": N_(
                "the angles of the rotary positions: they follow from rope_theta"
            ),
        },
    ),
    relative(
        LIKE,
        "GPT-NeoX Japanese",
        "gpt_neox_japanese",
        _japanese,
        prefix="gpt_neox_japanese.",
        head=f"{HEAD}.",
        weights=_japanese_weights,
        ties=tied_to("embed_in.weight", head=HEAD),
        made=_japanese_made,
    ),
)
