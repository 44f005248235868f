"""Direct logit attribution: a logit as a sum of what each part of the model has written into the last row.

The last row is a sum, and the logit of token t a product with it, so that every part has a share of its own.  What is not
linear on this way is frozen at what it was in the forward:

    a norm divides a row by one number, its deviation; with that number frozen it is linear:
        g . norm(y) = g . beta + P(gamma * g) / deviation . y        P takes off the mean (in RMSNorm nothing)
    the head for hidden words has an activation; with the ratios act(d) / d frozen it is linear as well

From the logit the direction g is brought back through the final norm, and in post-norm models through the norm of every
sublayer, to each point of the residual stream: what a part writes there, times the g there, is its term.  The terms sum to
the logit, and the proof says how closely.  They are shares of a sum, not effects: without a part, the deviations, and what
the later layers do, would change too.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; Wang et al. 2022, "Interpretability in the
Wild" (3.1, direct effects, the norm's scale frozen).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from vizformer.analysis.logit_lens import final_stack, predicting_stack
from vizformer.checkpoints import Checkpoint
from vizformer.checkpoints.tensors.placement import name_of
from vizformer.errors import TraceError
from vizformer.explain.activations import activation_kind
from vizformer.explain.arrays import float64, is_half, soft_capped
from vizformer.explain.block_stream import find_block, network_input, one_network, sublayers
from vizformer.explain.experts_numbers import mixture_numbers
from vizformer.explain.feedforward_numbers import feedforward_numbers
from vizformer.explain.norms import divisor, is_deviation, is_offset, normalise, through
from vizformer.explain.step import ROUNDINGS, TOLERANCE, Proof
from vizformer.explain.sublayer import bias_of
from vizformer.messages import N_, Message
from vizformer.model.attention import Attention
from vizformer.model.block import Block
from vizformer.model.experts import MixtureOfExperts
from vizformer.model.feedforward import FeedForward
from vizformer.model.norm import Norm
from vizformer.model.trace import Trace

Part = Literal[
    "token", "position", "segment", "head", "attention_bias", "feedforward", "feedforward_bias", "norm_bias",
    "projection_bias", "head_bias",
    "logit_bias", "by_hand",
]  # fmt: skip
Against = int | Literal["mean"] | None
Row = Float[ndarray, " d_model"]


@dataclass(frozen=True)
class Term:
    """A share of the logit.

    Attributes:
        part: what has written it: the embedding of the token, of the position or the segment, a head, b_O of an attention,
            the neurons of a feed-forward network, its last bias, the bias of a norm, that of the head's dense layer, that of
            the token; or numbers of the residual stream that were set by hand.
        place: where: a site such as "decoder.2.cross", "decoder.2.feedforward", "decoder.final", "embedding", "prediction".
        head: which, of a head.
        value: the share.
    """

    part: Part
    place: str
    value: float
    head: int | None = None

    @property
    def layer(self) -> int | None:
        """The layer that it belongs to; None for what belongs to none."""
        number = self.place.split(".")[1] if "." in self.place else ""
        return int(number) if number.isdecimal() else None


@dataclass(frozen=True)
class LogitAttribution:
    """A logit taken apart.

    Attributes:
        position, token: whose logit.
        against: what was taken off it: nothing (None), the mean logit of all tokens, or the logit of this token.
        terms: in the order of the data.
        directions: place -> g, the direction along which what is written there becomes logit.
        logit: what the model recorded, less `against`.
        proof: the sum of the terms against it.
    """

    position: int
    token: int
    against: Against
    terms: tuple[Term, ...]
    directions: dict[str, Row]
    logit: float
    proof: Proof

    @property
    def total(self) -> float:
        return float(sum(term.value for term in self.terms))

    @property
    def sorted(self) -> tuple[Term, ...]:
        """The terms, the largest (above or below 0) first."""
        return tuple(sorted(self.terms, key=lambda term: -abs(term.value)))

    def heads(self, kind: Literal["self", "cross"] = "self") -> Float[ndarray, "n_layers n_heads"]:
        """The terms of all heads of one kind of attention."""
        found = [term for term in self.terms if term.part == "head" and term.place.endswith(f".{kind}")]
        shape = tuple(max(at) + 1 for at in zip(*((t.layer or 0, t.head or 0) for t in found), strict=True)) or (0, 0)
        values = np.zeros(shape)
        for term in found:
            values[term.layer, term.head] = term.value
        return values

    def of_layer(self, layer: int) -> float:
        """What a layer's parts add together."""
        return float(sum(term.value for term in self.terms if term.layer == layer))


def logit_attribution(
    checkpoint: Checkpoint, trace: Trace, position: int, token: int, *, against: Against = "mean"
) -> LogitAttribution:
    """The terms of one token's logit at one position of the stack that predicts.

    Args:
        token: its id.
        against: "mean" takes the mean logit of all tokens off it, a token's id that token's logit, None nothing.
            Probabilities do not change when the same number is added to every logit: only differences say something.

    Raises:
        TraceError: no such position or token.
    """
    model, stack = checkpoint.model, predicting_stack(checkpoint)
    n, vocab = trace.logits.shape
    if not 0 <= position < n:
        raise TraceError(N_("There is no position {position}: choose 0 to {last}.", position=position, last=n - 1))
    for id in [token] if against is None or against == "mean" else [token, against]:
        if not 0 <= id < vocab:
            raise TraceError(N_("There is no token {id}: choose 0 to {last}.", id=id, last=vocab - 1))
    way = _Way(checkpoint, trace, position)
    way.head(token, against)
    for layer in reversed(range(len(final_stack(model).layers))):
        way.layer(find_block(checkpoint, stack, layer), f"{stack}.{layer}")
    way.embedding(stack)
    logits = float64(trace.logits[position])
    recorded = float(logits[token] - _reference(logits, against))
    terms = tuple(reversed(way.terms))
    difference = abs(sum(term.value for term in terms) - recorded)
    size = max(1.0, abs(recorded), float(np.sqrt(way.squares)))
    half = is_half(trace.logits.dtype)
    allowed = size * (ROUNDINGS * torch.finfo(trace.logits.dtype).eps if half else TOLERANCE)
    name = name_of(trace.logits.dtype)
    proof = Proof(N_("the model's own logit"), difference, bool(difference <= allowed), direct=True, precision=name)
    return LogitAttribution(position, token, against, terms, way.directions, recorded, proof)


def by_key(
    checkpoint: Checkpoint, trace: Trace, found: LogitAttribution, site: str, head: int
) -> Float[ndarray, " n_k"]:
    """The term of a head, key by key: a_j v_j W_O . g; they sum to it.

    Raises:
        TraceError: no such site in the stack that predicts, or no such head.
    """
    record = trace[site]
    if site not in found.directions:
        raise TraceError(N_("{site} writes nothing into the row that becomes the logit.", site=site))
    weights = float64(record.pattern(head)[found.position])  # raises for a head that is not there
    own = _output_rows(_attention_at(checkpoint, site), head) @ found.directions[site]  # [d_head]
    kept: ndarray = weights * (float64(record.v[record.kv_head(head)]) @ own)
    return kept


def neurons(checkpoint: Checkpoint, trace: Trace, found: LogitAttribution, layer: int) -> Float[ndarray, " d_ff"]:
    """The term of a layer's feed-forward network, neuron by neuron: its number times its row of W_out . g.

    Raises:
        TraceError: no such layer, or one whose network is a mixture of experts.
    """
    stack = predicting_stack(checkpoint)
    block, at = find_block(checkpoint, stack, layer), f"{stack}.{layer}"
    network = one_network(block, at)
    inner = _inner(block, network, trace, at, found.position)
    each: ndarray = inner * (found.directions[f"{at}.feedforward"] @ float64(network.W_out.weight))
    return each


def what_is_frozen(checkpoint: Checkpoint) -> tuple[Message, ...]:
    """What was held at its value in the forward, so that the logit is a sum; one sentence each."""
    config, found = checkpoint.model.config, []
    if config.norm_order == "post":
        found.append(
            N_(
                "This model normalises after every sublayer. The number by which each of these norms divides is held as "
                "it was, all along the way from the part to the logit."
            )
        )
    elif config.norm_order in ("output", "sandwich"):
        found.append(
            N_(
                "This model normalises what every sublayer has found before it is added. The number by which each of "
                "these norms divides is held as it was, and so is that of the last norm, where there is one."
            )
        )
    elif config.final_norm:
        found.append(N_("The number by which the last norm divides the row is held as it was."))
    elif config.head == "linear":
        found.append(N_("Nothing had to be held: this model has no norm between the last layer and the logits."))
    if config.head == "transform":
        found.append(
            N_(
                "The ratios by which the activation of the head changes its numbers, and what its norm divides by, are held "
                "as they were."
            )
        )
    if config.logit_cap is not None:
        found.append(N_("The ratio by which the soft cap bends each logit is held as it was."))
    if config.architecture == "encoder-decoder":
        found.append(N_("What the encoder has made comes in through the heads of cross-attention."))
    if config.positions not in ("learned", "sinusoidal"):
        found.append(N_("Positions add nothing to the row here: they only decide where heads look."))
    return tuple(found)


def _reference(values: Float[ndarray, " vocab"], against: Against) -> float:
    if against is None:
        return 0.0
    return float(values.mean() if against == "mean" else values[against])


class _Way:
    """The direction on its way back from the logit, and the terms that it has met."""

    def __init__(self, checkpoint: Checkpoint, trace: Trace, position: int) -> None:
        self.checkpoint, self.trace, self.position = checkpoint, trace, position
        self.terms: list[Term] = []
        self.directions: dict[str, Row] = {}
        self.g: Row = np.zeros(checkpoint.model.config.d_model)
        self.squares = 0.0  # of all products that were summed: what rounding is measured by

    def head(self, token: int, against: Against) -> None:
        """From the logit to the row that the last layer has left."""
        model, stack = self.checkpoint.model, predicting_stack(self.checkpoint)
        table = (model.embedding if model.unembedding is None else model.unembedding).weight
        bias = model.logit_bias if model.prediction is None else model.prediction.logit_bias
        ratios = None if model.config.logit_cap is None else self.bent(model.config.logit_cap, float64(table), bias)
        self.g = float64(table[token]) * model.config.logit_scale * (1.0 if ratios is None else ratios[token])
        if against == "mean":
            mean = (
                float64(table.mean(0, dtype=torch.float64))
                if ratios is None
                else ratios @ float64(table) / table.shape[0]
            )
            self.g = self.g - mean * model.config.logit_scale
        elif against is not None:
            ratio = 1.0 if ratios is None else ratios[against]
            self.g = self.g - float64(table[against]) * model.config.logit_scale * ratio
        if bias is not None:
            each = float64(bias) * (1.0 if ratios is None else ratios)
            self.add("logit_bias", "prediction", each[token] - _reference(each, against))
        x = self.row(f"{stack}.final")
        if (head := model.prediction) is not None:
            dense = x @ float64(head.dense.weight).T + bias_of(head.dense)
            active = activation_kind(head.activation).compute(dense)
            self.through(head.norm, active, "prediction")
            ratio = np.divide(active, dense, out=np.zeros_like(dense), where=dense != 0)
            self.g = self.g * ratio
            self.add("head_bias", "prediction", self.g @ bias_of(head.dense))
            self.g = self.g @ float64(head.dense.weight)
        if (matrix := model.unembedding_projection) is not None:
            self.g = self.g @ float64(matrix.weight)
        self.squares += float(((self.g * x) ** 2).sum())
        norm = final_stack(model).final_norm
        last = self.row(f"{stack}.{len(final_stack(model).layers) - 1}.post")
        self.set_by_hand(f"{stack}.final", last if norm is None else normalise(last, norm))
        if norm is not None:
            self.through(norm, last, f"{stack}.final")

    def bent(self, cap: float, table: ndarray, bias: Tensor | None) -> Float[ndarray, " vocab"]:
        """By what the soft cap multiplies every logit, at the value that it has."""
        model = self.checkpoint.model
        x = self.trace.residual(f"{predicting_stack(self.checkpoint)}.final")[self.position]
        raw = table @ float64(model.compared(x)) + (0.0 if bias is None else float64(bias))
        found: ndarray = np.divide(soft_capped(raw, cap), raw, out=np.ones_like(raw), where=raw != 0)
        return found

    def layer(self, block: Block, at: str) -> None:
        """Through a layer, its last sublayer first."""
        for kind, __, before, after in reversed(sublayers(block)):
            x, around = self.row(f"{at}.{before}"), block.around(kind)
            parts, bias = self.written(block, at, kind)
            made = parts.sum(0) + bias
            y = x + around.scale * through(made, around.output)
            self.set_by_hand(f"{at}.{after}", through(y, around.after))
            place = f"{at}.{kind}"
            if around.after is not None:
                self.through(around.after, y, place)
            stream = self.g
            self.g = self.g * around.scale
            if around.output is not None:
                self.through(around.output, made, place)
            self.directions[place] = self.g
            self.squares += float(((stream * x) ** 2).sum() + ((parts * self.g) ** 2).sum())
            self.sublayer(block, place, kind, parts, bias)
            self.g = stream  # what was there before goes by the norm of what was added
        previous = int(at.split(".")[1]) - 1
        if previous >= 0:  # what a layer begins with, the one before it has ended with, unless it was set by hand
            self.set_by_hand(f"{at}.pre", self.row(f"{at.split('.')[0]}.{previous}.post"))

    def sublayer(self, block: Block, place: str, kind: str, parts: Float[ndarray, "parts d_model"], bias: Row) -> None:
        """The terms of what a sublayer has written."""
        if kind == "feedforward":
            if isinstance(block.feedforward, FeedForward) and block.feedforward.W_out.bias is not None:
                self.add("feedforward_bias", place, self.g @ bias)
            self.add("feedforward", place, self.g @ parts.sum(0))
            return
        if bias.any():
            self.add("attention_bias", place, self.g @ bias)
        for head in reversed(range(len(parts))):
            self.add("head", place, self.g @ parts[head], head)

    def written(self, block: Block, at: str, kind: str) -> tuple[Float[ndarray, "parts d_model"], Row]:
        """What a sublayer has written: of each head, or of all neurons; and its last bias.

        The biases of experts belong to what these have written: they are added by weight, not to every token.
        """
        network = block.feedforward
        if kind == "feedforward" and isinstance(network, MixtureOfExperts):
            rows = slice(self.position, self.position + 1)
            x = network_input(block, self.trace, at, rows)
            out = mixture_numbers(x, network, self.trace, f"{at}.feedforward", rows).out
            return out, np.zeros(out.shape[1])
        if kind == "feedforward" and isinstance(network, FeedForward):
            inner = _inner(block, network, self.trace, at, self.position)
            return (inner @ float64(network.W_out.weight).T)[None], bias_of(network.W_out)
        attention = block.self_attention if kind == "self" else block.cross_attention
        assert attention is not None
        record = self.trace[f"{at}.{kind}"]
        z = [float64(record.z(head)[self.position]) for head in range(record.n_heads)]
        parts = np.stack([row @ _output_rows(attention, head) for head, row in enumerate(z)])
        return parts, bias_of(attention.W_O)

    def embedding(self, stack: Literal["encoder", "decoder"]) -> None:
        """From the first layer to the rows of the tables."""
        model, config = self.checkpoint.model, self.checkpoint.model.config
        tokens = self.trace.tokens[stack]
        own = float64(model.token_rows(model.token_table(stack).weight[tokens[self.position].id]))
        summed: dict[Part, Row] = {"token": own * config.factor_of(stack)}
        added = model.positions(self.position + 1, stack)
        if added is not None:
            summed["position"] = float64(added[self.position])
        if model.segment_embedding is not None:
            segments = self.checkpoint.segments(tokens)
            number = 0 if segments is None else int(segments[0, self.position])
            summed["segment"] = float64(model.segment_embedding.weight[number])
        late: Row | None = None  # positions that are added after the norm
        if config.decoder_positions_after_norm and stack == "decoder":
            late = summed.pop("position")
        x: Row = np.sum(list(summed.values()), axis=0)
        projection, projected = model.embedding_projection, config.embedding_projection
        if projection is not None and projected == "sum":
            x = x @ float64(projection.weight).T + bias_of(projection)
        norm = model.embedding_norm
        if model.decoder_embedding_norm is not None and stack == "decoder":
            norm = model.decoder_embedding_norm
        entering: Row = x if norm is None else normalise(x, norm)
        entering = entering if late is None else entering + late
        if projection is not None and projected == "normed_sum":
            self.set_by_hand(f"{stack}.0.pre", entering @ float64(projection.weight).T + bias_of(projection))
            self.through_projection(projection)
        else:
            self.set_by_hand(f"{stack}.0.pre", entering)
        if late is not None:
            self.squares += float(((self.g * late) ** 2).sum())
            self.add("position", "embedding", self.g @ late)
        if norm is not None:
            self.through(norm, x, "embedding")
        if projection is not None and projected == "sum":
            self.through_projection(projection)
        self.directions["embedding"] = self.g
        for part, row in reversed(summed.items()):
            self.squares += float(((self.g * row) ** 2).sum())
            self.add(part, "embedding", self.g @ row)

    def through_projection(self, projection: nn.Linear) -> None:
        """Through the layer that makes narrow embeddings as wide as the stream: g . (W x + b) = g . b + (g W) . x."""
        self.add("projection_bias", "embedding", self.g @ bias_of(projection))
        self.g = self.g @ float64(projection.weight)

    def through(self, norm: Norm, y: Row, place: str) -> None:
        """Through a norm of the row y, with what it divides by held: g . norm(y) = g . beta + g' . y."""
        centred = y - y.mean() if isinstance(norm, nn.LayerNorm) else y
        square = (centred**2).sum(-1, keepdims=True) / (len(y) - (1 if is_deviation(norm) else 0))
        if isinstance(norm, nn.LayerNorm):
            self.add("norm_bias", place, self.g @ float64(norm.bias))
        g = self.g * (float64(norm.weight) + (1.0 if is_offset(norm) else 0.0)) / divisor(square, norm)
        self.g = g - g.mean() if isinstance(norm, nn.LayerNorm) else g

    def set_by_hand(self, name: str, computed: Row) -> None:
        """What was set by hand at a point of the residual stream, as a term of its own."""
        edit = self.trace.edit
        if edit is not None and any(cell.index[0] == self.position for cell in edit.cells_of(name)):
            self.add("by_hand", name, self.g @ (self.row(name) - computed))

    def row(self, name: str) -> Row:
        return float64(self.trace.residual(name)[self.position])

    def add(self, part: Part, place: str, value: float, head: int | None = None) -> None:
        self.terms.append(Term(part, place, float(value), head))


def _inner(block: Block, network: FeedForward, trace: Trace, at: str, position: int) -> Float[ndarray, " d_ff"]:
    """What the neurons hand on at a position."""
    x = network_input(block, trace, at, slice(position, position + 1))
    found: ndarray = feedforward_numbers(x, network, trace.residual(f"{at}.pre").dtype).inner[0]
    return found


def _attention_at(checkpoint: Checkpoint, site: str) -> Attention:
    stack, layer, kind = site.split(".")
    block = find_block(checkpoint, stack, int(layer))
    attention = block.self_attention if kind == "self" else block.cross_attention
    assert attention is not None
    return attention


def _output_rows(attention: Attention, head: int) -> Float[ndarray, "d_head d_model"]:
    """The rows of W_O that belong to a head."""
    own = slice(head * attention.d_head, (head + 1) * attention.d_head)
    return float64(attention.W_O.weight[:, own]).T
