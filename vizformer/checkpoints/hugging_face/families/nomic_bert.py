"""Nomic BERT: BERT with rotary positions, a gated feed-forward layer, and biases in the norms and the head alone.

Source: Nussbaum et al. 2024, "Nomic Embed: Training a Reproducible Long Context Text Embedder", section 3, and the
weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.bert_like import LIKE, embeddings, head, options
from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.rotary import all_are_turned, rope
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.vocabularies import wordpiece_or_refuse
from vizformer.config import ModelConfig

# What files for the authors' own code call the options, and what `transformers` calls them.
OLDER = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "layer_norm_epsilon": "layer_norm_eps",
    "rotary_emb_base": "rope_theta",
}
# Options that only those files have, with what `transformers` computes anyway.
ONLY = {
    "rotary_emb_fraction": (1, 1.0),
    "rotary_emb_interleaved": (False,),
    "rotary_emb_scale_base": (),
    "rotary_scaling_factor": (),
    "activation_function": ("swiglu", "silu"),
    "prenorm": (False,),
    "parallel_block": (False,),
    "use_rms_norm": (False,),
    "causal": (False,),
    "qkv_proj_bias": (False,),
    "mlp_fc1_bias": (False,),
    "mlp_fc2_bias": (False,),
}
MODULES = {
    "attn.Wqkv": [f"self_attention.W_{letter}" for letter in "QKV"],
    "attn.out_proj": ["self_attention.W_O"],
    "norm1": ["self_norm"],
    "mlp.fc11": ["feedforward.W_in"],
    "mlp.fc12": ["feedforward.W_gate"],
    "mlp.fc2": ["feedforward.W_out"],
    "norm2": ["feedforward_norm"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.only("is_decoder", None, False)
    _older_names(fields)
    found, has_head = options(fields, names)
    all_are_turned(fields)
    width, heads = found["d_model"], found["n_heads"]
    head_dim = fields.size("head_dim", max(1, width // heads))
    return {
        **found,
        "n_encoder_layers": fields.size("num_hidden_layers"),
        "n_decoder_layers": 0,
        "head_dim": None if head_dim * heads == width else head_dim,
        "positions": "rope",
        **rope(fields),
        "feedforward": "gated",
        "bias": False,
    }, has_head


def _older_names(fields: Fields) -> None:
    """Refuses files for the authors' own code, where `transformers`, which reads none of it, would compute otherwise."""
    if "hidden_size" in fields.raw:
        return
    for older, newer in OLDER.items():
        if older in fields.raw and newer not in fields.raw and fields.value(older) != fields.defaults[newer]:
            fields.refuse(older, "`transformers` reads {field} instead: write it under that name", field=newer)
    for name, neutral in ONLY.items():
        if name in fields.raw:
            fields.only(name, None, *neutral)


def weights(config: ModelConfig) -> list[Part]:
    no_bias = [theirs for theirs in MODULES if not theirs.startswith("norm")]
    return [
        *(part for part in embeddings(config) if "LayerNorm" not in part.source),
        *linear("emb_ln", "embedding_norm"),
        *layers(MODULES, "encoder.layers.{}", "encoder.layers.{}", config.n_encoder_layers, no_bias=no_bias),
        *head(config, norm="transform.layer_norm"),
    ]


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE, "Nomic BERT", "nomic_bert", config, prefix="nomic_bert.", weights=weights, tokenizer=wordpiece_or_refuse
    ),
)
