"""Falcon: attention and feed-forward side by side, one key and value for all heads (7B) or for a group (40B).

Source: Almazrouei et al. 2023, "The Falcon Series of Open Language Models", section 4, and the weights published with
it.
"""

from collections.abc import Collection
from dataclasses import replace

from vizformer.checkpoints.hugging_face.family import Family, Options, relative, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import LIKE, ONE_NORM, decoder, head
from vizformer.checkpoints.hugging_face.rotary import all_are_turned, rope
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.config import ModelConfig

FUSED = "self_attention.query_key_value"
ONE, FIRST, SECOND = "input_layernorm", "ln_attn", "ln_mlp"
LAYER = {
    FUSED: [f"self_attention.W_{letter}" for letter in "QKV"],
    "self_attention.dense": ["self_attention.W_O"],
    "mlp.dense_h_to_4h": ["feedforward.W_in"],
    "mlp.dense_4h_to_h": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names)
    width, heads = options["d_model"], options["n_heads"]
    all_are_turned(fields)
    fields.only("n_embed", None, width)
    if fields.flag("alibi"):
        fields.refuse("alibi", "what it takes off the scores is rounded to bfloat16, which is not followed here")
    new, parallel = fields.flag("new_decoder_architecture"), fields.flag("parallel_attn")
    kv_heads = fields.size("num_kv_heads", heads)
    if new:
        fields.only("parallel_attn", True)
        fields.only("num_ln_in_parallel_attn", None, 1, 2)
    else:
        fields.only("num_ln_in_parallel_attn", None, 1)
        kv_heads = 1 if fields.flag("multi_query") else heads  # whatever num_kv_heads says
    if parallel and not (new and fields.value("num_ln_in_parallel_attn") in (None, 2)):
        fields.assume(ONE_NORM)
    return {
        **options,
        "n_kv_heads": None if kv_heads == heads else kv_heads,
        "d_ff": fields.size("ffn_hidden_size", 4 * width),
        "positions": "rope",
        **rope(fields),
        "residual": "parallel" if parallel else "sequential",
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": fields.choice("activation", ACTIVATIONS),
        "bias": fields.flag("bias"),
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor; the queries that share a key and a value lie in front of these."""
    parallel = config.residual == "parallel"
    norms = {
        FIRST if parallel else ONE: ["self_norm"],
        SECOND if parallel else "post_attention_layernorm": ["feedforward_norm"],
    }
    heads = {FUSED: config.kv_heads}
    linears = layers(LAYER, "h.{}", "decoder.layers.{}", config.n_decoder_layers, bias=config.bias, heads=heads)
    return [
        Part("word_embeddings.weight", ("embedding.weight",)),
        *layers(norms, "h.{}", "decoder.layers.{}", config.n_decoder_layers),
        *linears,
        *linear("ln_f", "decoder.final_norm"),
        *head(config),
    ]


def by_names(parts: list[Part], names: Collection[str]) -> list[Part]:
    """One norm where the file has no two."""
    if any(f".{FIRST}." in name for name in names):
        return parts
    targets = {part.source: part.targets for part in parts}
    return [
        replace(
            part,
            source=part.source.replace(FIRST, ONE),
            targets=(*part.targets, *targets[part.source.replace(FIRST, SECOND)]),
            shared=True,
        )
        if FIRST in part.source
        else part
        for part in parts
        if SECOND not in part.source
    ]


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE, "Falcon", "falcon", config, weights=weights, ties=tied_to("word_embeddings.weight"), by_names=by_names
    ),
)
