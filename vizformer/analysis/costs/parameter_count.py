"""How many parameters a Transformer has: from formulas, and counted on a model.

    attention     4 d^2 + 4 d            W_Q, W_K, W_V, W_O with biases
    feed-forward  2 d d_ff + d_ff + d    W_1, b_1, W_2, b_2      (gated, without biases: 3 d d_ff)
    norm          2 d                    gamma and beta
    encoder layer  attention + feed-forward + 2 norms
    decoder layer  2 attentions + feed-forward + 3 norms
    embedding     V d                    one table for both stacks and for the logits

Source: Vaswani et al. 2017, sections 3.1 to 3.4 and Table 3.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from torch import Tensor

from vizformer.analysis.costs.generation_cost import (
    FLOAT_BYTES,
    Multiplications,
    cache_bytes,
    forward_pass,
)
from vizformer.analysis.costs.model_boxes import architecture
from vizformer.config import ModelConfig
from vizformer.model import Transformer, count_parameters, without_memory

RATIOS = tuple(range(1, 9))  # d_ff over d_model, to be compared

FLOPS_PER_MULTIPLICATION = 6  # in training: a multiplication and an addition, forward once and backward twice


@lru_cache(maxsize=256)
def parameters(config: ModelConfig) -> dict[str, int]:
    """Parameters by "<section>.<kind>" (`parameter_count.parts`); read only.

    Counted on models of one and of two layers without memory: all layers of a stack are alike, and a model of 96
    takes long to make.
    """
    one, two = (_parts(config, depth) for depth in (1, 2))
    found = {}
    for name, count in one.items():
        section = name.split(".")[0]
        depth = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers}.get(section, 1)
        found[name] = count + (two[name] - count) * (depth - 1)
    return found


def _parts(config: ModelConfig, depth: int) -> dict[str, int]:
    shallow = replace(
        config,
        n_encoder_layers=min(depth, config.n_encoder_layers),
        n_decoder_layers=min(depth, config.n_decoder_layers),
        sliding_layers=None,
    )
    with without_memory():
        return parts(Transformer(shallow))


@dataclass(frozen=True)
class ModelCost:
    """The costs of a model for texts of n tokens."""

    parameters: dict[str, int]  # by "<section>.<kind>"
    n: int
    forward: Multiplications  # multiplications of one forward over n tokens, with the logits of all of them
    kv_numbers: int  # keys and values of n tokens; 0 of a model that writes nothing
    kv_numbers_per_token: int  # what one more token adds

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(self.parameters.values())

    def training_flops(self, tokens: float) -> float:
        """The FLOPs of a training on D = `tokens` tokens: 6 M D / n."""
        return FLOPS_PER_MULTIPLICATION * self.forward.total * tokens / self.n


@dataclass(frozen=True)
class Mixture:
    """Parameters of a model whose layers would have experts: all, of one network (`expert`), of all routers, and `active`

    ones, that a token is multiplied with (embeddings counted whole).
    """

    total: int
    active: int
    expert: int
    router: int


@dataclass(frozen=True)
class Sizes:
    """What the formulas need: d_model, d_ff, layers of each stack (0: it has none), entries of the vocabulary."""

    d: int
    d_ff: int
    encoder_layers: int
    decoder_layers: int
    vocabulary: int

    def config(self) -> ModelConfig:
        """A model of these sizes, as in the paper (one head, which changes no number)."""
        return ModelConfig(
            vocab_size=self.vocabulary,
            d_model=self.d,
            n_heads=1,
            d_ff=self.d_ff,
            n_encoder_layers=self.encoder_layers,
            n_decoder_layers=self.decoder_layers,
        )


BASE = Sizes(512, 2048, 6, 6, 37_000)  # the base model of Vaswani et al. 2017


@dataclass(frozen=True)
class Counted:
    """Parameters by part; `model` is what a model of these sizes has, counted on the model itself."""

    attention: int
    feedforward: int
    norm: int
    encoder_layer: int
    decoder_layer: int
    encoder: int
    decoder: int
    embedding: int
    total: int
    model: int


def count(sizes: Sizes) -> Counted:
    """Evaluates the formulas of the module for some sizes."""
    d, f = sizes.d, sizes.d_ff
    attention, feedforward, norm = 4 * d * d + 4 * d, 2 * d * f + f + d, 2 * d
    cross = sizes.encoder_layers > 0
    encoder_layer = attention + feedforward + 2 * norm
    decoder_layer = (1 + cross) * attention + feedforward + (2 + cross) * norm
    encoder, decoder = sizes.encoder_layers * encoder_layer, sizes.decoder_layers * decoder_layer
    embedding = sizes.vocabulary * d
    return Counted(
        attention,
        feedforward,
        norm,
        encoder_layer,
        decoder_layer,
        encoder,
        decoder,
        embedding,
        encoder + decoder + embedding,
        count_parameters(sizes.config()),
    )


def parts(model: Transformer) -> dict[str, int]:
    """The parameters of a model by "<section>.<kind>" of its drawing's boxes; they sum to all there are."""
    found: dict[str, int] = {}
    for box in architecture(model, 1, 1):
        if box.parameters:
            kind = "norm" if box.kind in ("add_norm", "norm") else box.kind
            name = kind if kind in ("embedding", "unembedding") else f"{box.section}.{kind}"
            found[name] = found.get(name, 0) + box.parameters
    return found


Use = Literal["encoder", "decoder", "logits"]
"""The uses of an embedding table: the encoder's input, the decoder's input, and the unembedding (logits)."""


@dataclass(frozen=True)
class Sharing:
    """Which of the encoder, the decoder and the logits use which embedding table.

    `tables`: the places in groups, one group for each table that there is, with its `rows`; each row is `width` numbers.
    """

    tables: tuple[tuple[Use, ...], ...]
    rows: tuple[int, ...]
    width: int
    others: int

    @property
    def stored(self) -> int:
        """The parameters of the tables, each table counted once."""
        return sum(self.rows) * self.width

    @property
    def apart(self) -> int:
        """Parameters that there would be with a table for every place."""
        return sum(rows * len(uses) for uses, rows in zip(self.tables, self.rows, strict=True)) * self.width

    @property
    def saved(self) -> float:
        """The share of a model with a table for every place that sharing saves."""
        return (self.apart - self.stored) / (self.apart + self.others)


def sharing(model: Transformer) -> Sharing:
    """Who shares a table of one row per token: two places share where they hold the same parameter.

        encoder's input x_0 = E[id] sqrt(d),   decoder's input y_0 = E[id] sqrt(d),   logits z = y E^T

    Source: Press & Wolf 2017, "Using the Output Embedding to Improve Language Models" (three-way weight tying).
    """
    places: dict[Use, Tensor] = {}
    if model.encoder is not None:
        places["encoder"] = model.token_table("encoder").weight
    if model.decoder is not None:
        places["decoder"] = model.token_table("decoder").weight
    places["logits"] = model.embedding.weight if model.unembedding is None else model.unembedding.weight
    groups: dict[int, list[Use]] = {}
    for use, table in places.items():
        groups.setdefault(id(table), []).append(use)
    tables = {id(table): table for table in places.values()}
    stored = sum(table.numel() for table in tables.values())
    total = sum(parameter.numel() for parameter in model.parameters())
    return Sharing(
        tuple(tuple(uses) for uses in groups.values()),
        tuple(tables[key].shape[0] for key in groups),
        model.config.d_model,
        total - stored,
    )


def paper_sharing() -> Sharing:
    """The paper's base model: one table of 37,000 rows in three places."""
    found = count(BASE)
    return Sharing((("encoder", "decoder", "logits"),), (BASE.vocabulary,), BASE.d, found.total - found.embedding)


# What a model of any configuration costs: parameters, multiplications, cache, training.
#
#     training    6 M D / n      D tokens, M multiplications of one forward over n tokens, n logits included
#
# A multiplication comes with an addition (2 FLOPs), and the backward pass takes twice the forward one (3 in all).
#
# Source: Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1.
#
# Mixture of experts as arithmetic: every layer has E feed-forward networks, of which each token goes through k.
#
#     total    others + layers (E feedforward + E d_model)        E d_model: the router, one score for each expert
#     active   others + layers (k feedforward + E d_model)
#
# Source: Shazeer et al. 2017, "Outrageously Large Neural Networks", section 2; Jiang et al. 2024, "Mixtral of
# Experts", section 2.1.
def model_cost(config: ModelConfig, n: int) -> ModelCost:
    """The costs for n tokens; an encoder-decoder reads n and writes n."""
    memory = n if config.architecture == "encoder-decoder" else 0
    writes = config.n_decoder_layers > 0
    held, more = (cache_bytes(config, length, memory) // FLOAT_BYTES if writes else 0 for length in (n, n + 1))
    return ModelCost(
        parameters(config),
        n,
        forward_pass(config, n),
        held,
        more - held,
    )


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
