"""The way back to the Hugging Face layout that LLaMA and its relatives share: what config.json says of their options."""

from collections.abc import Collection
from typing import Any

from vizformer.checkpoints.tensors.activations import THEIRS
from vizformer.config import ModelConfig

FITS: dict[str, Collection[Any]] = dict(
    architecture=["decoder-only"],
    positions=["rope"],
    rope_scaling=["none", "linear", "llama3"],
    norm_order=["pre"],
    norm=["rms_norm"],
    final_norm=[True],
    feedforward=["gated"],
    head=["linear"],
    scaled_embedding=[False],
    embedding_norm=[False],
    n_segments=[0],
)
WRITTEN = (
    "vocab_size",
    "d_model",
    "n_heads",
    "n_kv_heads",
    "head_dim",
    "d_ff",
    "n_decoder_layers",
    "max_positions",
    "norm_eps",
    "activation",
    "bias",
    "tied_unembedding",
    "pad_id",
    "bos_id",
    "eos_id",
    "rope_theta",
    "rope_scaling",
    "rope_factor",
    "rope_low_turns",
    "rope_high_turns",
    "rope_trained_positions",
)


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json, as both `transformers` 4 and 5 read it."""
    return dict(
        architectures=["LlamaForCausalLM" if has_head else "LlamaModel"],
        vocab_size=config.vocab_size,
        hidden_size=config.d_model,
        intermediate_size=config.d_ff,
        num_hidden_layers=config.n_decoder_layers,
        num_attention_heads=config.n_heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.d_head,
        hidden_act=THEIRS[config.activation],
        max_position_embeddings=config.max_positions,
        rms_norm_eps=config.norm_eps,
        rope_theta=config.rope_theta,
        attention_bias=config.qkv_bias,
        mlp_bias=config.bias,
        tie_word_embeddings=config.tied_unembedding and has_head,
        bos_token_id=config.bos_id,
        eos_token_id=config.eos_id,
        pad_token_id=config.pad_id,
        rope_scaling=_scaling(config),
    )


def _scaling(config: ModelConfig) -> dict[str, Any] | None:
    if config.rope_scaling == "none":
        return None
    said: dict[str, Any] = {"rope_type": config.rope_scaling, "factor": config.rope_factor}
    if config.rope_scaling == "llama3":
        said |= {
            "low_freq_factor": config.rope_low_turns,
            "high_freq_factor": config.rope_high_turns,
            "original_max_position_embeddings": config.rope_trained_positions,
        }
    return said
