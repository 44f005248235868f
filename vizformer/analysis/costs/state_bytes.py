"""What a decoder keeps of the tokens before, in bytes: a cache that grows with them, and a state that does not.

    a layer with attention:      2 n_kv d_head min(n, window) numbers
    latent attention:            latent_dim + rope_dims numbers a token, for all heads together
    a layer that keeps a state:  n_heads d_key d_value numbers of 4 bytes, and the last kernel - 1 rows of its convolution

Source: the configurations that are published with the models; the state is kept in float32 by the code published with
Qwen3-Next.
"""

from dataclasses import dataclass, replace
from typing import Any

from vizformer.analysis.costs.generation_cost import rolling_cache_bytes, state_bytes
from vizformer.config import ModelConfig


@dataclass(frozen=True)
class Kept:
    """Bytes of the layers with attention, and of those that keep a state."""

    cache: int
    state: int

    @property
    def total(self) -> int:
        return self.cache + self.state


def kept_bytes(config: ModelConfig, n: int, number_bytes: int = 2) -> Kept:
    """What a decoder needs to keep of n tokens, at `number_bytes` for each number of a cache."""
    state = state_bytes(config, number_bytes) if config.n_decoder_layers else 0
    return Kept(rolling_cache_bytes(config, n, number_bytes=number_bytes) - state, state)


def qwen3_next(*, attention_only: bool = False) -> ModelConfig:
    """The shapes of Qwen3-Next 80B that its cache and state depend on: 36 of 48 layers have the delta rule.

    `attention_only`: the same with attention in all of them.
    """
    plain = ModelConfig(
        vocab_size=151_936,
        d_model=2048,
        n_heads=16,
        n_kv_heads=2,
        head_dim=256,
        d_ff=5120,
        n_encoder_layers=0,
        n_decoder_layers=48,
        feedforward="gated",
        positions="rope",
    )
    if attention_only:
        return plain
    return replace(
        plain,
        state_layers=tuple(layer for layer in range(48) if layer % 4 != 3),
        state_key_heads=16,
        state_value_heads=32,
        state_key_dim=128,
        state_value_dim=128,
    )


def deepseek_v3(*, keys_and_values: bool = False) -> ModelConfig:
    """The shapes of DeepSeek-V3 that its cache depends on: 61 layers, a latent of 512 numbers and 64 that turn, which make
    70,272 bytes a token (DeepSeek-AI 2025, "Insights into DeepSeek-V3", table 1).

    `keys_and_values`: the same where a cache keeps what 128 heads compare, 192 numbers of a key and 128 of a value.
    """
    latent = dict[str, Any](latent_dim=512, latent_query_dim=1536, latent_value_dim=128, rope_dims=64, head_dim=192)
    return ModelConfig(
        vocab_size=129_280,
        d_model=7168,
        n_heads=128,
        d_ff=18_432,
        n_encoder_layers=0,
        n_decoder_layers=61,
        feedforward="gated",
        positions="rope",
        **({"head_dim": (192 + 128) // 2} if keys_and_values else latent),
    )
