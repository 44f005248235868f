"""What shared key/value heads save."""

from dataclasses import dataclass, replace
from functools import lru_cache

from vizformer.analysis.costs.generation_cost import cache_bytes, rolling_cache_bytes
from vizformer.config import ModelConfig
from vizformer.model import count_parameters


def possible_groups(config: ModelConfig) -> tuple[int, ...]:
    """Numbers of key/value heads that the query heads can share evenly: the divisors of n_heads."""
    return tuple(g for g in range(1, config.n_heads + 1) if config.n_heads % g == 0)


@dataclass(frozen=True)
class SharingCost:
    """A model whose query heads share `n_kv_heads` key/value heads: bytes of a token in the KV cache, of all, parameters."""

    n_kv_heads: int
    token_bytes: int
    cache_bytes: int
    rolling_bytes: int  # of one that forgets what sliding windows see no more; as many where there is no window
    model_parameters: int


def sharing_cost(config: ModelConfig, n_kv_heads: int, length: int, memory: int = 0) -> SharingCost:
    """The cache at `length` tokens (and, with an encoder, `memory` source tokens), and the model's size.

    An encoder-only model has no cache: it writes nothing, and computes every position once.  Counted is then a decoder
    with as many layers of the same shape.

    Source: Shazeer 2019, "Fast Transformer Decoding"; Ainslie et al. 2023, "GQA".
    """
    shared = replace(config, n_kv_heads=n_kv_heads)
    decoder = shared
    if config.architecture == "encoder-only":
        decoder = replace(
            shared,
            n_encoder_layers=0,
            n_decoder_layers=config.n_encoder_layers,
            head="linear",
        )
    held = cache_bytes(decoder, length, memory)
    return SharingCost(
        n_kv_heads,
        cache_bytes(decoder, length + 1, memory) - held,
        held,
        rolling_cache_bytes(decoder, length, memory),
        _model_parameters(shared),
    )


@lru_cache(maxsize=256)  # asked for again at every number of tokens
def _model_parameters(config: ModelConfig) -> int:
    return count_parameters(config)
