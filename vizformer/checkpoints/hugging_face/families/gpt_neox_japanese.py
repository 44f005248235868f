"""GPT-NeoX Japanese: GPT-NeoX's attention in layers one after the other, with a bias in one place only.

Source: ABEJA 2022, "GPT-NeoX Japanese", and the weights published with it.
"""

from collections.abc import Collection
from functools import partial

import torch

from vizformer.checkpoints.hugging_face.family import Family, Options, relative, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import LIKE, NEOX_FUSED, NEOX_LAYER, decoder, tensors
from vizformer.checkpoints.hugging_face.missing_parameters import Made
from vizformer.checkpoints.hugging_face.rotary import rope, turned
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig

HEAD = "embed_out"


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
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


def made(config: ModelConfig) -> Made:
    """Biases of 0: all of attention's but one."""
    last = f"decoder.layers.{config.n_decoder_layers - 1}.self_attention.W_O.bias"
    names = (
        f"decoder.layers.{layer}.self_attention.W_{letter}.bias"
        for layer in range(config.n_decoder_layers)
        for letter in "QKVO"
    )
    return {name: partial(torch.zeros, config.d_model) for name in names if name != last}


def weights(config: ModelConfig) -> list[Part]:
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
        "GPT-NeoX Japanese",
        "gpt_neox_japanese",
        config,
        prefix="gpt_neox_japanese.",
        head=f"{HEAD}.",
        weights=weights,
        ties=tied_to("embed_in.weight", head=HEAD),
        made=made,
    ),
)
