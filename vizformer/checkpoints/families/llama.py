"""LLaMA and what is built like it (Mistral, as far as its window reaches): RoPE, RMSNorm, a gated feed-forward layer.

Source: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models"; Jiang et al. 2023, "Mistral 7B".
"""

from collections.abc import Collection
from typing import Any

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.family import ACTIVATIONS, THEIRS, Export, Family, Options, says_head
from vizformer.checkpoints.fields import Fields
from vizformer.checkpoints.parts import Part, layers, linear
from vizformer.checkpoints.reading import Folder, shown
from vizformer.checkpoints.vocabularies import no_tokenizer
from vizformer.config import ModelConfig
from vizformer.messages import N_

LLAMA = {
    "vocab_size": 32_000, "hidden_size": 4096, "intermediate_size": 11_008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "rope_theta": 10_000.0,
    "attention_bias": False, "mlp_bias": False,
}  # fmt: skip
MISTRAL = {**LLAMA, "intermediate_size": 14_336, "num_key_value_heads": 8, "max_position_embeddings": 131_072,
           "sliding_window": 4096}  # fmt: skip
LAYER = {
    "input_layernorm": ["self_norm"],
    "self_attn.q_proj": ["self_attention.W_Q"],
    "self_attn.k_proj": ["self_attention.W_K"],
    "self_attn.v_proj": ["self_attention.W_V"],
    "self_attn.o_proj": ["self_attention.W_O"],
    "post_attention_layernorm": ["feedforward_norm"],
    "mlp.gate_proj": ["feedforward.W_gate"],
    "mlp.up_proj": ["feedforward.W_in"],
    "mlp.down_proj": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    vocab_size, width, heads = (fields.size(n) for n in ("vocab_size", "hidden_size", "num_attention_heads"))
    bias = fields.flag("attention_bias")
    if fields.flag("mlp_bias") is not bias:
        fields.refuse("mlp_bias", N_("biases are supported in all linear layers or in none; "
                                     "attention_bias is {value}", value=shown(bias)))  # fmt: skip
    if fields.value("head_dim") not in (None, width // heads):
        fields.refuse("head_dim", N_("supported is hidden_size / num_attention_heads = {n}", n=width // heads))
    tied = fields.flag("tie_word_embeddings")
    has_head = tied or "lm_head.weight" in names or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size, d_model=width, n_heads=heads, n_kv_heads=_kv_heads(fields, heads),
        d_ff=fields.size("intermediate_size"), n_decoder_layers=fields.size("num_hidden_layers"),
        max_positions=_reach(fields), positions="rope", rope_theta=_rope_theta(fields), norm_order="pre",
        norm="rms_norm", final_norm=True, norm_eps=fields.number("rms_norm_eps"), feedforward="gated",
        activation=fields.choice("hidden_act", ACTIVATIONS), bias=bias, tied_unembedding=tied or not has_head,
        dropout=0.0, bos_id=fields.token("bos_token_id", vocab_size), eos_id=fields.token("eos_token_id", vocab_size),
        pad_id=fields.token("pad_token_id", vocab_size),
    ), has_head  # fmt: skip


def _kv_heads(fields: Fields, heads: int) -> int | None:
    number = fields.size("num_key_value_heads", otherwise=heads)
    return None if number == heads else number


def _rope_theta(fields: Fields) -> float:
    """The base of the wavelengths; `transformers` 5 writes it into rope_parameters, older ones beside rope_scaling."""
    nested = fields.value("rope_parameters")
    scaling = nested if nested is not None else fields.value("rope_scaling")
    name = "rope_scaling" if nested is None else "rope_parameters"
    fields.value("rope_scaling")
    fields.only("partial_rotary_factor", None, 1, 1.0)
    if scaling is None or scaling == {}:
        return fields.number("rope_theta")
    kind = scaling.get("rope_type", scaling.get("type", "default")) if isinstance(scaling, dict) else None
    extra = set(scaling) - {"rope_theta", "rope_type", "type", "partial_rotary_factor"} if kind == "default" else set()
    if kind != "default" or extra or scaling.get("partial_rotary_factor", 1) != 1:
        fields.refuse(name, N_("rotary positions are supported as they are, neither scaled nor partial"))
        return 10_000.0
    return fields.number("rope_theta", within=scaling)


def _reach(fields: Fields) -> int:
    """The longest text: as far as the positions go and a sliding window, where there is one, cuts nothing off."""
    longest = fields.size("max_position_embeddings")
    window = fields.value("sliding_window")
    types = fields.value("layer_types")
    listed = types if isinstance(types, list) else [] if types is None else [types]
    if any(kind not in ("full_attention", "sliding_attention") for kind in listed):
        fields.refuse("layer_types", N_("supported are full_attention and sliding_attention"))
    if window is None or fields.value("use_sliding_window") is False:
        return longest
    window = fields.size("sliding_window")
    if window < longest:
        fields.assume(N_("sliding_window={window}: texts up to {window} tokens are accepted, for which the window "
                         "changes nothing; config.json allows {longest}", window=window, longest=longest))  # fmt: skip
    return min(window, longest)


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    norms = ["input_layernorm", "post_attention_layernorm"]
    parts = [
        Part("embed_tokens.weight", ("embedding.weight",)),
        *layers(LAYER, "layers.{}", "decoder.layers.{}", config.n_decoder_layers, bias=config.bias, no_bias=norms),
        Part("norm.weight", ("decoder.final_norm.weight",)),
    ]
    return parts if config.tied_unembedding else [*parts, *linear("lm_head", "unembedding", bias=False)]


def tokenizer(folder: Folder) -> Backend:
    """Only tokenizer.json is read."""
    no_tokenizer(folder, "tokenizer.json")


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json, as both `transformers` 4 and 5 read it."""
    return dict(
        architectures=["LlamaForCausalLM" if has_head else "LlamaModel"], vocab_size=config.vocab_size,
        hidden_size=config.d_model, intermediate_size=config.d_ff, num_hidden_layers=config.n_decoder_layers,
        num_attention_heads=config.n_heads, num_key_value_heads=config.kv_heads, head_dim=config.d_head,
        hidden_act=THEIRS[config.activation], max_position_embeddings=config.max_positions,
        rms_norm_eps=config.norm_eps, rope_theta=config.rope_theta, attention_bias=config.bias, mlp_bias=config.bias,
        tie_word_embeddings=config.tied_unembedding, bos_token_id=config.bos_id, eos_token_id=config.eos_id,
        pad_token_id=config.pad_id,
    )  # fmt: skip


FAMILY = Family(
    name="LLaMA",
    defaults={"llama": LLAMA, "mistral": MISTRAL},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=lambda config: {"lm_head.weight": "embed_tokens.weight"} if config.tied_unembedding else {},
    unused={
        r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq": N_("the angles of the rotary positions: they follow from "
                                                                "rope_theta"),
        r"(score|classifier|qa_outputs)\..*": N_("the head of another task"),
    },
    export=Export(
        "llama",
        dict(architecture=["decoder-only"], positions=["rope"], norm_order=["pre"], norm=["rms_norm"],
             final_norm=[True], feedforward=["gated"], head=["linear"], scaled_embedding=[False],
             embedding_norm=[False], n_segments=[0]),
        export,
    ),
)  # fmt: skip
