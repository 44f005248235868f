"""The way back to the Hugging Face layout that LLaMA and its relatives share: what config.json says of their options."""

from collections.abc import Collection
from typing import Any

from vizformer.checkpoints.hugging_face.family import said
from vizformer.config import ModelConfig

FITS: dict[str, Collection[Any]] = dict(
    architecture=["decoder-only"],
    positions=["rope"],
    rope_scaling=["none", "linear", "llama3"],
    norm_order=["pre"],
    norm=["rms_norm"],
    final_norm=[True],
    feedforward=["gated"],
)
FIELDS = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "intermediate_size": "d_ff",
    "num_hidden_layers": "n_decoder_layers",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "d_head",
    "hidden_act": "activation",
    "max_position_embeddings": "max_positions",
    "rms_norm_eps": "norm_eps",
    "rope_theta": "rope_theta",
    "attention_bias": "qkv_bias",
    "mlp_bias": "bias",
    "tie_word_embeddings": "tied_unembedding",
    "bos_token_id": "bos_id",
    "eos_token_id": "eos_id",
    "pad_token_id": "pad_id",
}
_SCALING = ("rope_scaling", "rope_factor", "rope_low_turns", "rope_high_turns", "rope_trained_positions")
WRITTEN = (*FIELDS.values(), "n_kv_heads", "head_dim", *_SCALING)


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json, as both `transformers` 4 and 5 read it."""
    return {
        "architectures": ["LlamaForCausalLM" if has_head else "LlamaModel"],
        **said(FIELDS, config),
        "tie_word_embeddings": config.tied_unembedding and has_head,
        "rope_scaling": _scaling(config),
    }


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
