"""How many parameters a Transformer has: from formulas, and counted on a model.

    attention     4 d^2 + 4 d            W_Q, W_K, W_V, W_O with biases
    feed-forward  2 d d_ff + d_ff + d    W_1, b_1, W_2, b_2      (gated, without biases: 3 d d_ff)
    norm          2 d                    gamma and beta
    encoder layer  attention + feed-forward + 2 norms
    decoder layer  2 attentions + feed-forward + 3 norms
    embedding     V d                    one table for both stacks and for the logits

Source: Vaswani et al. 2017, sections 3.1 to 3.4 and Table 3.
"""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from vizformer.analysis.costs.model_boxes import architecture
from vizformer.config import ModelConfig
from vizformer.model import Transformer, count_parameters

RATIOS = tuple(range(1, 9))  # d_ff over d_model, to be compared


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

    `tables`: the places in groups, one group for each table that there is, with its rows and their width.
    """

    tables: tuple[tuple[Use, ...], ...]
    rows: tuple[int, ...]
    widths: tuple[int, ...]
    others: int

    @property
    def stored(self) -> int:
        """The parameters of the tables, each table counted once."""
        return sum(rows * width for rows, width in zip(self.rows, self.widths, strict=True))

    @property
    def apart(self) -> int:
        """Parameters that there would be with a table for every place."""
        every = zip(self.tables, self.rows, self.widths, strict=True)
        return sum(rows * width * len(uses) for uses, rows, width in every)

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
        tuple(tables[key].shape[1] for key in groups),
        total - stored,
    )


def paper_sharing() -> Sharing:
    """The paper's base model: one table of 37,000 rows in three places."""
    found = count(BASE)
    return Sharing((("encoder", "decoder", "logits"),), (BASE.vocabulary,), (BASE.d,), found.total - found.embedding)
