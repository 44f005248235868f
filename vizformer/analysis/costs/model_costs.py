"""What a model of any configuration costs: parameters, multiplications, activations, cache, training.

    training, by the rule of thumb    6 N D          N parameters, D tokens
    training, counted                 6 M D / n      M multiplications of one forward over n tokens, n logits included

A multiplication comes with an addition (2 FLOPs), and the backward pass takes twice the forward one (3 in all).

Source: Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1 (6 N D; there N leaves
the embeddings out, here it is all parameters, tables included); Korthikanti et al. 2022,
"Reducing Activation Recomputation in Large Transformer Models", section 4 (activations).

Mixture of experts as arithmetic: every layer has E feed-forward networks, of which each token goes through k.

    total    others + layers (E feedforward + E d_model)        E d_model: the router, one score for each expert
    active   others + layers (k feedforward + E d_model)

Source: Shazeer et al. 2017, "Outrageously Large Neural Networks", section 2; Jiang et al. 2024, "Mixtral of Experts",
section 2.1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from vizformer.analysis.costs import parameter_count
from vizformer.analysis.costs.generation_cost import (
    FLOAT_BYTES,
    Multiplications,
    attention_cost,
    cache_bytes,
    forward_pass,
)
from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.model.attention import Attention
from vizformer.model.initialisation import without_memory

FLOPS_PER_MULTIPLICATION = 6  # in training: a multiplication and an addition, forward once and backward twice


@lru_cache(maxsize=256)
def parameters(config: ModelConfig) -> dict[str, int]:
    """Parameters by "<section>.<kind>" (`parameter_count.parts`); read only.

    Counted on models of one and of two layers without memory: all layers of a stack are alike (but for those with
    a state, or whose attention has heads of another width, no keys of its own, or no norms, which are put
    right afterwards), and a model of 96 takes long to make.
    """
    one, two = (_parts(config, depth) for depth in (1, 2))
    found = {}
    for name, count in one.items():
        section = name.split(".")[0]
        depth = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers}.get(section, 1)
        found[name] = count + (two[name] - count) * (depth - 1)
    if config.shared_kv_d_ff is not None:
        more = config.network_parameters(config.shared_kv_d_ff) - config.network_parameters(config.d_ff)
        found["decoder.feedforward"] += len(config.shared_kv_layers) * more
    if config.state_layers is not None:
        other = _parts(config, 1, with_states=True)["decoder.attention"]
        found["decoder.attention"] += config.n_state_layers * (other - one["decoder.attention"])
    if any(given is not None for given in (config.kv_layers, config.wide_layers, config.qk_norm_layers)):
        name = "decoder.attention" if config.n_decoder_layers else "encoder.attention"
        for layer in range(config.depth):
            if not config.has_state(layer):
                found[name] += _attention_parameters(config, layer) - one[name]
    return found


def _attention_parameters(config: ModelConfig, layer: int) -> int:
    """Those of one layer's attention."""
    own = config.of_layer(layer)
    if not config.has_qk_norm(layer):
        own = replace(own, qk_norm=False, qk_norm_over="head", qk_norm_layers=None)
    return _of_attention(own, config.kv_layer(layer) == layer)


@lru_cache(maxsize=64)
def _of_attention(config: ModelConfig, own_keys: bool) -> int:
    with without_memory():
        return sum(parameter.numel() for parameter in Attention(config, own_keys=own_keys).parameters())


def _parts(config: ModelConfig, depth: int, with_states: bool = False) -> dict[str, int]:
    narrow = config.of_layer(next(layer for layer in range(config.depth) if not config.is_wide(layer)))
    shallow = replace(
        narrow if with_states else narrow.without_states(),
        n_encoder_layers=min(depth, config.n_encoder_layers),
        n_decoder_layers=min(depth, config.n_decoder_layers),
        sliding_layers=None,
        qk_norm_layers=None,
        kv_layers=None,
        shared_kv_d_ff=None,
        gate_sparsity=None,
        rope_layers=None,
        rope_local_layers=None,
        rope_local_theta=None,
        state_layers=(0,) if with_states else None,
    )
    with without_memory():
        return parameter_count.parts(Transformer(shallow))


@dataclass(frozen=True)
class Activations:
    """Numbers of a forward pass that the backward pass needs again, for one text of n tokens (in each stack)."""

    rows: int  # what grows with n: inputs of the matrices and norms, queries, keys, values, hidden layers
    maps: int  # the attention maps, which grow with n^2; fused kernels do not keep them


def activations(config: ModelConfig, n: int) -> Activations:
    """Without dropout, whose masks would be added, and without embeddings and logits.

    Per token of a layer: attention d (input) + (n_heads + 2 n_kv) d_head (q, k, v) + n_heads d_head (input of W_O);
    feed-forward d (input) + 2 d_ff (before and after the activation; gated: 4 d_ff); norms d each.  Cross-attention
    adds its own, and the memory whose keys and values it computes.  A layer that keeps a state: d (input), 2 channels
    (before and after the convolution), and 3 n_heads d_value (gate, what is read, input of W_O); a short convolution
    alone: 7 d (input, q, k, v, its own input and output, input of W_O).  A layer that reads its token again: 2 d (input,
    norm) + 4 d_p (the gate before and after the activation, what it opens, input of W_out).  With s streams: 3 s d (as
    they enter, predicted, corrected) + 2 (d + s) (norm and tanh, twice) + 2 d + rank (around attention).  Maps: n_heads n^2
    for every attention.  Layers that read the keys of an earlier one keep none of their own.
    """
    d, heads = config.d_model, (2 * config.n_heads + 2 * config.kv_heads) * config.d_head
    numbers = 4 if config.feedforward == "gated" else 2
    attention, feedforward, norm = d + heads, d + numbers * config.d_ff, 0 if config.norm_order == "none" else d
    cross = config.architecture == "encoder-decoder"
    encoder_layer = attention + feedforward + 2 * norm
    decoder_layer = encoder_layer + (attention + norm if cross else 0)
    layers, others = config.n_encoder_layers * encoder_layer, config.n_decoder_layers * decoder_layer
    calls = config.n_encoder_layers + (1 + cross) * config.n_decoder_layers - config.n_state_layers
    more = 0 if config.first_norm else -norm
    state = d + 2 * config.state_channels + 3 * config.state_heads[1] * config.state_dims[1]
    state = 7 * d if config.state_rule == "convolution" else state
    more += config.n_state_layers * (state - attention)
    more += config.depth * (2 * d + 4 * config.layer_input_dim if config.layer_input_dim else 0)
    if config.n_streams is not None:
        more += config.depth * (
            3 * config.n_streams * d + 2 * (d + config.n_streams) + 2 * d + (config.laurel_rank or 0)
        )
    if config.kv_layers is not None or config.wide_layers is not None:
        for layer in range(config.depth):
            own, makes_keys = config.of_layer(layer), config.kv_layer(layer) == layer
            more += 2 * (own.n_heads + (own.kv_heads if makes_keys else 0)) * own.d_head - heads
            more += numbers * (own.d_ff - config.d_ff)
    more -= 0 if config.last_norm else norm * ((config.n_encoder_layers > 0) + (config.n_decoder_layers > 0))
    return Activations(n * (layers + others + more), calls * config.n_heads * n * n)


@dataclass(frozen=True)
class Overtakes:
    """From how many tokens on attention takes more multiplications than the feed-forward network of its layer."""

    # only q k^T and pattern v are counted: matrices * d_model * d_ff / (2 n_heads d_head)
    products: float
    whole: float  # with W_Q, W_K, W_V and W_O; 0 or less: always


def overtakes(config: ModelConfig) -> Overtakes | None:
    """2 n n_heads d_head > matrices d_model d_ff (and, of the whole, - 2 d_model (n_heads + n_kv) d_head).

    None where all layers keep a state: no part of their work grows with n^2.
    """
    if config.only_states:
        return None
    matrices = config.network_matrices
    feedforward = matrices * config.d_model * config.d_ff
    attention = attention_cost(config, 2, 2, projected=2)
    projections, growing = attention.projections / 2, attention.attention / 4
    return Overtakes(feedforward / growing, (feedforward - projections) / growing)


@dataclass(frozen=True)
class ModelCost:
    """What a model costs for texts of n tokens."""

    parameters: dict[str, int]  # by "<section>.<kind>"
    n: int
    forward: Multiplications  # multiplications of one forward over n tokens, with the logits of all of them
    activations: Activations  # numbers that are kept for the backward pass
    kv_numbers: int  # keys and values of n tokens; 0 of a model that writes nothing
    kv_numbers_per_token: int  # what one more token adds
    overtakes: Overtakes | None  # see there; None where no layer has attention

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(self.parameters.values())

    def training_flops(self, tokens: float) -> float:
        """Counted: 6 M D / n."""
        return FLOPS_PER_MULTIPLICATION * self.forward.total * tokens / self.n

    def rule_of_thumb(self, tokens: float) -> float:
        """6 N D, N being all parameters, those of the tables included."""
        return 6.0 * self.total * tokens

    def components(self) -> Iterator[tuple[str, int]]:
        """Parameters by kind, whatever the stack, the largest first."""
        found: dict[str, int] = {}
        for name, count in self.parameters.items():
            kind = name.split(".")[-1]
            found[kind] = found.get(kind, 0) + count
        yield from sorted(found.items(), key=lambda item: -item[1])


def model_cost(config: ModelConfig, n: int) -> ModelCost:
    """The costs for n tokens; an encoder-decoder reads n and writes n."""
    memory = n if config.architecture == "encoder-decoder" else 0
    writes = config.n_decoder_layers > 0
    held, more = (cache_bytes(config, length, memory) // FLOAT_BYTES if writes else 0 for length in (n, n + 1))
    return ModelCost(
        parameters(config),
        n,
        forward_pass(config, n),
        activations(config, n),
        held,
        more - held,
        overtakes(config),
    )


@dataclass(frozen=True)
class Mixture:
    """Parameters of a model whose layers would have experts: all, of one network (`expert`), of all routers, and `active`

    ones, that a token is multiplied with (embeddings counted whole).
    """

    total: int
    active: int
    expert: int
    router: int


def mixture(config: ModelConfig, experts: int, top_k: int) -> Mixture:
    """The model with its feed-forward networks taken `experts` times, `top_k` of them used; 1 and 1: as it is.

    Raises:
        ValueError: fewer than one expert, or more used than there are.
    """
    if not 1 <= top_k <= experts:
        raise ValueError(f"{top_k} of {experts} experts cannot be used")
    layers = config.depth
    expert, whole = config.network_parameters(config.d_ff), sum(parameters(config).values())
    router = layers * experts * config.d_model if experts > 1 else 0
    others = whole - layers * expert + router
    return Mixture(others + layers * experts * expert, others + layers * top_k * expert, expert, router)
