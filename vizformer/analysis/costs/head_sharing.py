"""What the number of heads costs, and what shared key/value heads save."""

from dataclasses import dataclass, replace
from functools import lru_cache

from vizformer.analysis.costs.generation_cost import FLOAT_BYTES, attention_cost, cache_bytes, rolling_cache_bytes
from vizformer.config import ModelConfig
from vizformer.errors import ConfigError
from vizformer.model.attention import Attention
from vizformer.model.initialisation import without_memory
from vizformer.model.transformer import count_parameters


@dataclass(frozen=True)
class LayerCost:
    """One self-attention sublayer of `n` tokens, cells that a mask blocks included."""

    # n_heads, n_kv_heads, d_head: how d_model is divided
    n_heads: int
    n_kv_heads: int
    d_head: int
    # multiplications of W_Q, W_K, W_V and W_O: 2 n d_model (n_heads + n_kv_heads) d_head, which is 4 n d_model^2 where
    # every head has its own keys and values and n_heads d_head = d_model
    projections: int
    products: int  # multiplications of q k^T and pattern v: 2 n^2 n_heads d_head, then 2 n^2 d_model
    exponentials: int  # entries of the maps, each an exp of the softmax: n_heads n^2
    map_bytes: int  # of all maps together, where they are kept (fused kernels do not), at 4 bytes a number
    parameters: int  # trainable numbers of the sublayer, counted on one
    model_parameters: int  # those of a whole model with these heads, counted on one


def layer_cost(config: ModelConfig, n: int) -> LayerCost:
    """Counts one sublayer of a model with these options.

    Source: Vaswani et al. 2017, section 3.2.2: "the total computational cost is similar to that of single-head
    attention with full dimensionality".
    """
    cost = attention_cost(config, n, n, projected=n)
    return LayerCost(
        config.n_heads,
        config.kv_heads,
        config.d_head,
        projections=cost.projections,
        products=cost.attention,
        exponentials=config.n_heads * n * n,
        map_bytes=config.n_heads * n * n * FLOAT_BYTES,
        parameters=_layer_parameters(config),
        model_parameters=_model_parameters(config),
    )


def with_heads(config: ModelConfig, n_heads: int) -> ModelConfig:
    """The same width n_heads * d_head cut into `n_heads` heads, each with keys and values of its own; states stay.

    Raises:
        ConfigError: it cannot be cut so.
    """
    if config.wide_layers is not None:  # counted as if all layers were like the others
        config = config.of_layer(next(layer for layer in range(config.depth) if not config.is_wide(layer)))
    width = config.n_heads * config.d_head
    head_dim = None if config.head_dim is None else max(1, width // n_heads)
    return replace(config, n_heads=n_heads, n_kv_heads=None, head_dim=head_dim, **config.state_sizes)


def possible_heads(config: ModelConfig, most: int = 64) -> tuple[int, ...]:
    """Numbers of heads into which the width can be cut: powers of two and the model's own."""
    width, found = config.n_heads * config.d_head, []
    for n_heads in sorted({2**e for e in range(most.bit_length())} | {config.n_heads}):
        if width % n_heads:
            continue
        try:
            with_heads(config, n_heads)
        except ConfigError:  # rotary positions turn pairs, so that a head cannot be as narrow as one likes
            continue
        found.append(n_heads)
    return tuple(found)


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
    with as many layers of the same shape.  What makes keys and queries of distances (DeBERTa) stays as it is.

    Source: Shazeer 2019, "Fast Transformer Decoding"; Ainslie et al. 2023, "GQA".
    """
    plain = config.without_distances()
    shared = replace(plain, n_kv_heads=n_kv_heads, wide_kv_heads=None if plain.wide_layers is None else n_kv_heads)
    decoder = shared
    if config.architecture == "encoder-only":
        decoder = replace(
            shared,
            n_encoder_layers=0,
            n_decoder_layers=config.n_encoder_layers,
            head="linear",
            embedding_dim=None,
            embedding_projection="normed_sum",
        )
    held = cache_bytes(decoder, length, memory)
    return SharingCost(
        n_kv_heads,
        cache_bytes(decoder, length + 1, memory) - held,
        held,
        rolling_cache_bytes(decoder, length, memory),
        _model_parameters(shared) + _model_parameters(config) - _model_parameters(plain),
    )


@lru_cache(maxsize=256)  # asked for again at every number of tokens
def _model_parameters(config: ModelConfig) -> int:
    return count_parameters(config)


@lru_cache(maxsize=256)
def _layer_parameters(config: ModelConfig) -> int:
    with without_memory():
        return sum(parameter.numel() for parameter in Attention(config).parameters())
