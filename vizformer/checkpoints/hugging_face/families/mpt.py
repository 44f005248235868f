"""MPT: the distance taken off every score (ALiBi), no biases at all, q, k and v in one.

Source: MosaicML 2023, "Introducing MPT-7B", and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import LIKE, composed_texts, decoder, tensors
from vizformer.checkpoints.hugging_face.missing_parameters import NO_NORM_BIASES, no_norm_biases
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig
from vizformer.messages import N_

ATTENTION = {"alibi": True, "alibi_bias_max": 8, "clip_qkv": None, "prefix_lm": False, "qk_ln": False}
LAYER = {
    "norm_1": ["self_norm"],
    "attn.Wqkv": [f"self_attention.W_{letter}" for letter in "QKV"],
    "attn.out_proj": ["self_attention.W_O"],
    "norm_2": ["feedforward_norm"],
    "ffn.up_proj": ["feedforward.W_in"],
    "ffn.down_proj": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, "d_model", "n_heads", "n_layers", "max_seq_len")
    fields.only("no_bias", True)
    fields.only("expansion_ratio", 4)
    fields.only("logit_scale", None)
    fields.only("norm_type", None, "low_precision_layernorm", "layernorm")
    # Of its training.
    fields.ignore("learned_pos_emb", "init_device", "embedding_fraction", "init_config", "verbose")
    fields.assume(NO_NORM_BIASES)
    return {
        **options,
        "d_ff": 4 * options["d_model"],
        "positions": "alibi",
        "attention_scale": _attention(fields),
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": "gelu",
        "bias": False,
    }, has_head


def _attention(fields: Fields) -> float | None:
    """The table of attention's own fields; what the scores are multiplied by."""
    said = fields.value("attn_config")
    if said is not None and not isinstance(said, dict):
        fields.refuse("attn_config", "it must be a table of fields")
        return None
    inner = Fields(said or {}, ATTENTION)
    for name, only in ATTENTION.items():
        inner.only(name, only)
    inner.only("attn_type", None, "multihead_attention")
    scale = None if inner.value("softmax_scale") is None else inner.number("softmax_scale")
    fields.problems += [N_("{field}: {problem}", field="attn_config", problem=problem) for problem in inner.problems]
    return scale


def weights(config: ModelConfig) -> list[Part]:
    no_bias = [name for name in LAYER if not name.startswith("norm")]
    return tensors(config, LAYER, layer="blocks.{}", final="norm_f", no_bias=no_bias)


FAMILIES: tuple[Family, ...] = (
    relative(LIKE, "MPT", "mpt", config, weights=weights, tokenizer=composed_texts, made=no_norm_biases),
)
