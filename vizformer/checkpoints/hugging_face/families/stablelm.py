"""StableLM (3B, Zephyr 3B, 2 1.6B): LLaMA's layers with LayerNorm, and rotary positions for a part of each head.

Source: Tow et al. 2023, "StableLM 3B 4E1T"; Bellagente et al. 2024, "Stable LM 2 1.6B Technical Report", section 2.
"""

from collections.abc import Collection
from dataclasses import replace

from vizformer.checkpoints.hugging_face.family import Family, Options, says_head
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import ONE_NORM
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, FEEDFORWARD, LIKE, NORMS, OUT
from vizformer.checkpoints.hugging_face.rotary import PART, rope, turned
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.config import ModelConfig

ONE = {"input_layernorm": ["self_norm", "feedforward_norm"]}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    vocab_size, width, heads = (fields.size(n) for n in ("vocab_size", "hidden_size", "num_attention_heads"))
    fields.only("qk_layernorm", False)  # one norm per head
    fields.only("head_dim", None, width // heads)
    kv_heads, parallel = fields.size("num_key_value_heads"), fields.flag("use_parallel_residual")
    tied = fields.flag("tie_word_embeddings")
    has_head = tied or "lm_head.weight" in names or says_head(fields.architecture)
    if parallel:
        fields.assume(ONE_NORM)
    return dict(
        vocab_size=vocab_size,
        d_model=width,
        n_heads=heads,
        n_kv_heads=None if kv_heads == heads else kv_heads,
        d_ff=fields.size("intermediate_size"),
        n_decoder_layers=fields.size("num_hidden_layers"),
        max_positions=fields.size("max_position_embeddings"),
        positions="rope",
        **rope(fields),
        rope_dims=turned(fields, width // heads, PART),
        norm_order="pre",
        final_norm=True,
        norm_eps=fields.number("layer_norm_eps"),
        feedforward="gated",
        activation=fields.choice("hidden_act", ACTIVATIONS),
        residual="parallel" if parallel else "sequential",
        bias=False,
        attention_bias="qkv" if fields.flag("use_qkv_bias") else "none",
        tied_unembedding=tied or not has_head,
        dropout=0.0,
        bos_id=fields.token("bos_token_id", vocab_size),
        eos_id=fields.token("eos_token_id", vocab_size),
        pad_id=fields.token("pad_token_id", vocab_size),
    ), has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    one = config.residual == "parallel"
    template = {**(ONE if one else NORMS), **ATTENTION, **OUT, **FEEDFORWARD}
    without = [*OUT, *FEEDFORWARD, *([] if config.qkv_bias else ATTENTION)]
    of_layers = layers(template, "layers.{}", "decoder.layers.{}", config.n_decoder_layers, no_bias=without)
    parts = [
        Part("embed_tokens.weight", ("embedding.weight",)),
        *of_layers,
        *linear("norm", "decoder.final_norm"),
    ]
    return parts if config.tied_unembedding else [*parts, Part("lm_head.weight", ("unembedding.weight",))]


FAMILIES: tuple[Family, ...] = (
    replace(
        LIKE,
        name="StableLM",
        types=("stablelm",),
        config=config,
        weights=weights,
    ),
)
