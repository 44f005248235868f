"""Bamba: state spaces of Mamba-2, attention in some of the layers, a gated network in all.

Source: Ganti et al. 2024, "Bamba: Inference-Efficient Hybrid Mamba2 Model", and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, LIKE, OUT, biases, decoder, tensors
from vizformer.checkpoints.hugging_face.rotary import PART
from vizformer.checkpoints.hugging_face.sliding_window import MOST_LAYERS
from vizformer.checkpoints.hugging_face.state_space import mixer, step_limits
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig

LAYER = {
    "input_layernorm": ["self_norm"],
    "pre_ff_layernorm": ["feedforward_norm"],
    **ATTENTION,
    **OUT,
    "feed_forward.gate_proj": ["feedforward.W_gate"],
    "feed_forward.up_proj": ["feedforward.W_in"],
    "feed_forward.down_proj": ["feedforward.W_out"],
}


def _config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.raw[PART] = 0.5  # whatever stands there; what the table says comes first
    options, has_head = decoder(fields, names, part=True)
    spaces = _state_layers(fields, options["n_decoder_layers"])
    fields.only("hidden_act", "silu")
    fields.only("mamba_conv_bias", True)
    fields.ignore("mamba_chunk_size", "num_logits_to_keep", "z_loss_coefficient", "layers_block_type")
    heads, inner = fields.size("mamba_n_heads"), fields.size("mamba_expand") * options["d_model"]
    auto = fields.value("mamba_d_head") == "auto"
    d_head = inner // heads if auto else fields.size("mamba_d_head")
    if d_head * heads != inner:
        fields.refuse("mamba_expand", "mamba_expand * hidden_size must be mamba_n_heads * mamba_d_head")
    sizes: Options = dict(
        state_layers=tuple(spaces),
        state_rule="space",
        state_key_heads=fields.size("mamba_n_groups"),
        state_value_heads=heads,
        state_key_dim=fields.size("mamba_d_state"),
        state_value_dim=d_head,
        state_kernel=fields.size("mamba_d_conv"),
        state_bias=fields.flag("mamba_proj_bias"),
        **step_limits(fields),
    )
    return {**options, **biases(fields, options), **(sizes if spaces else {})}, has_head


def _state_layers(fields: Fields, n_layers: int) -> list[int]:
    """All layers but those of attn_layer_indices."""
    attention = fields.value("attn_layer_indices")
    attention = [] if attention is None else attention
    if n_layers > MOST_LAYERS:
        fields.refuse("num_hidden_layers", "supported are at most {limit} layers", limit=MOST_LAYERS)
        return []
    if not isinstance(attention, list) or any(type(layer) is not int for layer in attention):
        fields.refuse("attn_layer_indices", "it must be a list of numbers of layers")
        return []
    return sorted(set(range(n_layers)).difference(attention))


def _weights(config: ModelConfig) -> list[Part]:
    spaces = config.state_layers or ()
    without = tuple(f"layers.{layer}.self_attn." for layer in spaces)
    parts = [part for part in tensors(config, LAYER) if not part.source.startswith(without)]
    for layer in spaces:
        parts += mixer(config, f"layers.{layer}.mamba", f"decoder.layers.{layer}.self_attention")
    return parts


FAMILIES: tuple[Family, ...] = (
    relative(LIKE, "Bamba", "bamba", _config, weights=_weights, renamed={r"^final_layernorm\.": "norm."}),
)
