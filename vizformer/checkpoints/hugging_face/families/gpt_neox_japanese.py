"""GPT-NeoX Japanese: GPT-NeoX's attention in layers one after the other, with a bias in one place only.

Source: ABEJA 2022, "GPT-NeoX Japanese", and the weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import torch

from vizformer.checkpoints.hugging_face.family import Family, Options, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import LIKE, decoder, head
from vizformer.checkpoints.hugging_face.missing_parameters import Made
from vizformer.checkpoints.hugging_face.rotary import rope, turned
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.config import ModelConfig
from vizformer.messages import N_

FUSED = "attention.query_key_value"
LAYER = {
    "input_layernorm": ["self_norm"],
    FUSED: [f"self_attention.W_{letter}" for letter in "QKV"],
    "attention.dense": ["self_attention.W_O"],
    "post_attention_layernorm": ["feedforward_norm"],
    "mlp.dense_h_to_4h": ["feedforward.W_in"],
    "mlp.dense_4h_to_h": ["feedforward.W_out"],
}
HEAD = "embed_out"


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, head=HEAD)
    d_head = max(1, options["d_model"] // options["n_heads"])
    fields.ignore("is_decoder")  # no forward reads it
    fields.assume(
        N_("of all linear layers only the last one of attention in the last layer has a bias: those of attention are 0")
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
    """What becomes of every tensor."""
    linears = [name for name in LAYER if not name.endswith("layernorm")]
    of_layers = layers(
        LAYER, "layers.{}", "decoder.layers.{}", config.n_decoder_layers, no_bias=linears, heads={FUSED: config.n_heads}
    )
    last = config.n_decoder_layers - 1
    return [
        Part("embed_in.weight", ("embedding.weight",)),
        *of_layers,
        Part(f"layers.{last}.attention.dense_bias", (f"decoder.layers.{last}.self_attention.W_O.bias",)),
        *linear("final_layer_norm", "decoder.final_norm"),
        *head(config, HEAD),
    ]


FAMILIES: tuple[Family, ...] = (
    replace(
        LIKE,
        name="GPT-NeoX Japanese",
        types=("gpt_neox_japanese",),
        prefix="gpt_neox_japanese.",
        head=f"{HEAD}.",
        config=config,
        weights=weights,
        ties=tied_to("embed_in.weight", head=HEAD),
        made=made,
    ),
)
