"""The shapes that published config.json files describe, counted: as many numbers as the models are known to have."""

from typing import Any

import pytest

from vizformer.checkpoints.hugging_face.families import BY_TYPE
from vizformer.checkpoints.hugging_face.fields import fields_of
from vizformer.config import ModelConfig
from vizformer.model import count_parameters

PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "Qwen2-0.5B": (
        dict(
            model_type="qwen2",
            vocab_size=151_936,
            hidden_size=896,
            intermediate_size=4864,
            num_hidden_layers=24,
            num_attention_heads=14,
            num_key_value_heads=2,
            tie_word_embeddings=True,
            rope_theta=1_000_000.0,
            max_position_embeddings=131_072,
            sliding_window=131_072,
            max_window_layers=24,
            use_sliding_window=False,
        ),
        494_032_768,
    ),
    "Qwen3-0.6B": (
        dict(
            model_type="qwen3",
            vocab_size=151_936,
            hidden_size=1024,
            intermediate_size=3072,
            num_hidden_layers=28,
            num_attention_heads=16,
            num_key_value_heads=8,
            head_dim=128,
            tie_word_embeddings=True,
            rope_theta=1_000_000,
            max_position_embeddings=40_960,
            rope_scaling=None,
        ),
        596_049_920,
    ),
    "OPT-125M": (
        dict(
            model_type="opt",
            vocab_size=50_272,
            hidden_size=768,
            ffn_dim=3072,
            num_hidden_layers=12,
            num_attention_heads=12,
            word_embed_proj_dim=768,
        ),
        125_239_296 - 2 * 768,  # rows of the position table that no position uses
    ),
    "Mistral-7B-v0.1": (
        dict(
            model_type="mistral",
            vocab_size=32_000,
            hidden_size=4096,
            intermediate_size=14_336,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            max_position_embeddings=32_768,
            sliding_window=4096,
            rms_norm_eps=1e-5,
            tie_word_embeddings=False,
            rope_theta=10_000.0,
            architectures=["MistralForCausalLM"],
        ),
        7_241_732_096,
    ),
    "Llama-3.2-1B": (
        dict(
            model_type="llama",
            vocab_size=128_256,
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=16,
            num_attention_heads=32,
            num_key_value_heads=8,
            head_dim=64,
            tie_word_embeddings=True,
            rope_theta=500_000.0,
            max_position_embeddings=131_072,
            bos_token_id=128_000,
            eos_token_id=128_001,
            rope_scaling=dict(
                rope_type="llama3",
                factor=32.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=8192,
            ),
        ),
        1_235_814_400,
    ),
    "mT5-small": (
        dict(
            model_type="mt5",
            vocab_size=250_112,
            d_model=512,
            d_kv=64,
            d_ff=1024,
            num_layers=8,
            num_heads=6,
            feed_forward_proj="gated-gelu",
            architectures=["MT5ForConditionalGeneration"],
            tie_word_embeddings=False,
        ),
        300_176_768,
    ),
}
HEADS = {"mT5-small": {"lm_head.weight"}}  # names in its files


@pytest.mark.parametrize("name", PUBLISHED)
def test_as_many_numbers_as_published(name: str) -> None:
    raw, expected = PUBLISHED[name]
    family = BY_TYPE[raw["model_type"]]
    fields = fields_of(raw)
    names = HEADS.get(name, set()) | {"decoder."}  # (without a decoder T5 would be an encoder alone)
    options, has_head = family.config(fields, names)
    fields.finish()
    assert not fields.problems
    assert has_head
    config = ModelConfig(**{**options, "max_positions": min(options["max_positions"], 4096)})
    assert count_parameters(config) == expected
