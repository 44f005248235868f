"""What generation costs: multiplications with and without a KV cache, and the bytes that the cache holds.

Counted are the multiplications of matrix products, which is where the time goes; norms, softmax, activations and the
turning of RoPE are not.  Cells that a mask blocks count too: they are computed before they are blocked.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from vizformer.config import ModelConfig
from vizformer.model import Trace, count_parameters

FLOAT_BYTES = 4


@dataclass(frozen=True)
class Multiplications:
    attention: int = 0  # q k^T and pattern v, which grow with the length of the text; beside a state, all that it takes
    # W_Q, W_K, W_V, W_O and gates
    projections: int = 0
    feedforward: int = 0  # W_in, W_out and, where it is gated, W_gate
    unembedding: int = 0  # the logits, with what the head does before them

    @property
    def parts(self) -> tuple[int, int, int, int]:
        """The fields in their order (`dataclasses.astuple` copies each of them, and a text has thousands of steps)."""
        return self.attention, self.projections, self.feedforward, self.unembedding

    @property
    def total(self) -> int:
        return sum(self.parts)

    def __add__(self, other: "Multiplications") -> "Multiplications":
        return Multiplications(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def encoder_pass(config: ModelConfig, n: int) -> Multiplications:
    """The encoder over n tokens: n_layers * (self-attention of n queries and n keys + feed-forward of n rows)."""
    attention = _times(attention_cost(config, n, n, projected=n), config.n_encoder_layers)
    return attention + _feedforwards(config, n, config.n_encoder_layers)


def decoder_pass(config: ModelConfig, new: int, length: int, memory: int = 0, projected: int = 0) -> Multiplications:
    """The decoder over the last `new` of `length` positions, and the logits of the last one.

    Self-attention has `new` queries and `length` keys.  Cross-attention, where there is an encoder, has `new` queries
    and `memory` keys.

    Args:
        new: positions that are computed; the others are in the cache.
        length: all positions so far.
        memory: tokens that the encoder has read.
        projected: how many of these are turned into keys and values of the cross-attention in this pass.
    """
    layer = attention_cost(config, new, length, projected=new)
    if config.n_encoder_layers:
        layer += attention_cost(config, new, memory, projected=projected)
    layers = _times(layer, config.n_decoder_layers) + _feedforwards(config, new, config.n_decoder_layers)
    return layers + _unembedding(config, 1)


def forward_pass(config: ModelConfig, n: int) -> Multiplications:
    """One forward over n tokens, as in training: the logits of every row; an encoder-decoder reads n and writes n."""
    memory = n if config.architecture == "encoder-decoder" else 0
    stacks = encoder_pass(config, n)  # nothing, where there is no encoder
    if config.n_decoder_layers:
        decoder = decoder_pass(config, n, n, memory, projected=memory)
        return stacks + replace(decoder, unembedding=0) + _unembedding(config, n)
    return stacks + _unembedding(config, n)


def generation_costs(
    config: ModelConfig, start: int, steps: int, memory: int = 0, *, cached: bool
) -> list[Multiplications]:
    """What each step of a generation costs; an encoder's one pass over the source belongs to step 0.

    Args:
        start: positions that the decoder's sequence begins with (the prompt, or the start mark).
        steps: new tokens.
        memory: tokens of the source, for an encoder-decoder.
        cached: whether keys and values are kept, so that a step computes only what is new; without, each step
            computes all positions again.
    """
    costs = []
    for step in range(steps):
        length, first = start + step, step == 0
        new = length if first or not cached else 1
        projected = memory if first or not cached else 0
        cost = decoder_pass(config, new, length, memory, projected)
        costs.append(cost + encoder_pass(config, memory) if first and config.n_encoder_layers else cost)
    return costs


def cache_bytes(config: ModelConfig, length: int, memory: int = 0, number_bytes: int = FLOAT_BYTES) -> int:
    """Bytes of keys and values for `length` positions of the decoder and, fixed, `memory` positions of the encoder.

    2 * n_layers * n_kv_heads * d_head * (length + memory) numbers; memory counts in cross-attention only.
    """
    positions = length + (memory if config.n_encoder_layers else 0)
    return config.n_decoder_layers * config.kv_numbers * positions * number_bytes


def rolling_cache_bytes(config: ModelConfig, length: int, memory: int = 0, number_bytes: int = FLOAT_BYTES) -> int:
    """The bytes of a cache whose sliding-window layers keep only the last min(length, window) positions.

    Nothing here computes so: `vizformer.model.Cache` keeps every position.
    Source: Jiang et al. 2023, "Mistral 7B", section 2, "Rolling Buffer Cache".
    """
    forgotten = max(0, length - (config.sliding_window or length))
    layers = len(config.windowed_layers) if config.n_decoder_layers else 0
    saved = layers * config.kv_numbers * forgotten * number_bytes
    return cache_bytes(config, length, memory, number_bytes) - saved


@dataclass(frozen=True)
class TextCosts:
    """The costs of a whole text, step by step."""

    # cached, uncached: multiplications with the KV cache and without it; columns are the fields of `Multiplications`
    cached: Int[ndarray, "steps 4"]
    uncached: Int[ndarray, "steps 4"]
    cache_bytes: Int[ndarray, " steps"]  # `cache_bytes` when each step's token was chosen
    rolling_bytes: Int[ndarray, " steps"]  # `rolling_cache_bytes` then
    memory_bytes: int  # what of the cache does not grow: it belongs to the source

    def up_to(self, step: int) -> tuple[int, int, float]:
        """(multiplications with the cache, without it, the share of attention in the first) of steps 0 to `step`."""
        cached, uncached = (int(side[: step + 1].sum()) for side in (self.cached, self.uncached))
        return cached, uncached, int(self.cached[: step + 1, 0].sum()) / cached


@lru_cache(maxsize=64)
def text_costs(config: ModelConfig, start: int, steps: int, memory: int = 0) -> TextCosts:
    """The costs of `steps` new tokens after `start` positions; see `generation_costs`.

    Of texts of the same lengths they are the same arrays, which nobody may change.
    """
    lengths = range(start, start + steps)
    cached, uncached = (
        np.array([cost.parts for cost in generation_costs(config, start, steps, memory, cached=kept)], np.int64)
        for kept in (True, False)
    )
    return TextCosts(
        cached,
        uncached,
        np.array([cache_bytes(config, length, memory) for length in lengths], np.int64),
        np.array([rolling_cache_bytes(config, length, memory) for length in lengths], np.int64),
        cache_bytes(config, 0, memory),
    )


def attention_cost(config: ModelConfig, queries: int, keys: int, projected: int) -> Multiplications:
    """2 * n_q * n_k * n_heads * d_head, and d_model * (2 * n_q * n_heads + 2 * n_projected * n_kv_heads) * d_head."""
    width, kv_width = config.n_heads * config.d_head, config.kv_heads * config.d_head
    return Multiplications(
        attention=2 * queries * keys * width,
        projections=config.d_model * (2 * queries * width + 2 * projected * kv_width),
    )


def _feedforwards(config: ModelConfig, rows: int, layers: int) -> Multiplications:
    """The multiplications of feed-forward networks: layers * rows * d_model * d_ff * matrices (2, or 3 if gated)."""
    return Multiplications(feedforward=rows * config.d_model * layers * config.d_ff * config.network_matrices)


def _unembedding(config: ModelConfig, rows: int) -> Multiplications:
    """rows * d_model * vocab_size; where the head has a matrix before it rows * d_model * (vocab_size + d_model)."""
    if config.head == "linear":
        return Multiplications(unembedding=rows * config.d_model * config.vocab_size)
    return Multiplications(unembedding=rows * config.d_model * (config.vocab_size + config.d_model))


def _times(cost: Multiplications, count: int) -> Multiplications:
    return Multiplications(*(count * part for part in cost.parts))


# What shared key/value heads save.
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
        count_parameters(shared),
    )


# The bytes that a KV cache of recorded code holds, by the keys and values that were seen.
@dataclass(frozen=True)
class RecordedCache:
    """Bytes of keys and values.

    Attributes:
        cache_bytes: when each step's token was chosen.
        memory_bytes: what of them does not grow: it belongs to the source.
    """

    cache_bytes: Int[ndarray, " steps"]
    memory_bytes: int


def recorded_cache(trace: Trace, start: int, steps: int) -> RecordedCache:
    """The KV cache of each of `steps` new tokens after `start` positions: the keys and values of all positions before it.

    A row of a decoder's self-attention has sum over layers of n_kv_heads (d_head + d_value) numbers; rows that heads share
    count once.  The source's rows of cross-attention stay the same.
    """
    row, memory = 0, 0
    for site in trace.sites:
        if site.startswith("decoder."):
            record = trace[site]
            held = record.k.nbytes + record.v.nbytes
            row, memory = (row, memory + held) if site.endswith(".cross") else (row + held // record.k.shape[1], memory)
    return RecordedCache(memory + row * np.arange(start, start + steps, dtype=np.int64), memory)
