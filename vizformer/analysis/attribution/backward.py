"""The backward pass from the last rows to the parts of the model that have written into them, nonlinear parts frozen.

What is frozen and why the terms sum to where the way begins is said in `vizformer.analysis.attribution.direct`.
"""

import weakref
from collections.abc import Collection
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from vizformer.analysis.attribution.lens import predicting_stack
from vizformer.analysis.attribution.terms import Against, Part, Row, Term
from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain.activations import activation_kind
from vizformer.explain.arrays import float64
from vizformer.explain.block_rows import find_block, network_input, sublayers
from vizformer.explain.feedforward_rows import inner_numbers
from vizformer.explain.norms import divisor, normalise, through
from vizformer.explain.sublayer import bias_of
from vizformer.model.attention import Attention
from vizformer.model.block import Block
from vizformer.model.feedforward import FeedForward
from vizformer.model.head_weights import head_output
from vizformer.model.norms import Norm
from vizformer.model.trace import Trace

Rows = Float[ndarray, "rows d_model"]
_MEAN_ROW: "dict[str, tuple[weakref.ref[Tensor], int, Row]]" = {}


class Backward:
    """A linear backward pass through one stack: it carries directions g [rows, d_model] and collects terms.

    A term is the sum over the rows of g . (what a part has written into the row); `directions` maps a place to g there.

    `squares` is the sum of the squares of all products in the terms; the rounding error is measured by it.
    """

    def __init__(self, checkpoint: AnyCheckpoint, trace: Trace, rows: slice, g: Rows) -> None:
        self.checkpoint, self.trace, self.rows, self.g = checkpoint, trace, rows, g
        self.terms: list[Term] = []
        self.directions: dict[str, Rows] = {}
        self.squares = 0.0

    def stack(self, name: Literal["encoder", "decoder"] | None = None) -> None:
        """Carries g from the last rows of a stack (by default the one that predicts) back to the embedding tables."""
        model = self.checkpoint.model
        stack = predicting_stack(self.checkpoint) if name is None else name
        module = model.encoder if stack == "encoder" else model.decoder
        assert module is not None
        layers, norm = len(module.layers), module.final_norm
        self.squares += float(((self.g * self.row(f"{stack}.final")) ** 2).sum())
        last = self.row(f"{stack}.{layers - 1}.post")
        self.set_by_hand(f"{stack}.final", last if norm is None else normalise(last, norm))
        if norm is not None:
            self.through(norm, last, f"{stack}.final")
        for layer in reversed(range(layers)):
            self.layer(find_block(self.checkpoint, stack, layer), f"{stack}.{layer}")
        self.embedding(stack)

    def layer(self, block: Block, at: str) -> None:
        """Carries g back through a layer, its last sublayer first."""
        self.sublayers(block, at, ("self", "cross", "feedforward"))
        previous = int(at.split(".")[1]) - 1
        if previous >= 0:  # what a layer begins with, the one before it has ended with, unless it was set by hand
            self.set_by_hand(f"{at}.pre", self.row(f"{at.split('.')[0]}.{previous}.post"))

    def sublayers(self, block: Block, at: str, kinds: Collection[str]) -> None:
        """Carries g back through some sublayers of a layer, the last one first."""
        for kind, __, before, after in reversed([one for one in sublayers(block) if one[0] in kinds]):
            x, around = self.row(f"{at}.{before}"), block.around(kind)
            parts, bias = self.written(block, at, kind)
            y = around.onto(x, parts.sum(0) + bias)
            self.set_by_hand(f"{at}.{after}", through(y, around.after))
            place = f"{at}.{kind}"
            if around.after is not None:
                self.through(around.after, y, place)
            stream = self.g if around.adds else np.zeros_like(self.g)
            self.directions[place] = self.g
            self.squares += self.squared(stream, x) + self.squared(self.g, parts)
            self.sublayer(block, place, kind, parts, bias)
            self.g = stream  # what was there before goes by the norm of what was added

    def sublayer(
        self, block: Block, place: str, kind: str, parts: Float[ndarray, "parts rows d_model"], bias: Row
    ) -> None:
        """Adds the terms of the output of one sublayer: of each head or of the network, and of the bias."""
        if kind == "feedforward":
            if isinstance(block.feedforward, FeedForward) and block.feedforward.W_out.bias is not None:
                self.add("feedforward_bias", place, self.g * bias)
            self.add("feedforward", place, self.g * parts.sum(0))
            return
        if bias.any():
            self.add("attention_bias", place, self.g * bias)
        for head in reversed(range(len(parts))):
            self.add("head", place, self.g * parts[head], head)

    def written(self, block: Block, at: str, kind: str) -> tuple[Float[ndarray, "parts rows d_model"], Row]:
        """The output of a sublayer, split into heads (or one part for a feed-forward network), and its output bias."""
        network = block.feedforward
        if kind == "feedforward":
            inner = inner_rows(block, network, self.trace, at, self.rows)
            return (inner @ float64(network.W_out.weight).T)[None], bias_of(network.W_out)
        attention, record = attention_at(self.checkpoint, f"{at}.{kind}"), self.trace[f"{at}.{kind}"]
        z = [float64(record.z(head)[self.rows]) for head in range(record.n_heads)]
        parts = np.stack([rows @ output_rows(attention, head) for head, rows in enumerate(z)])
        return parts, bias_of(attention.W_O)

    def embedding(self, stack: Literal["encoder", "decoder"]) -> None:
        """Carries g back from the first layer to the rows of the embedding tables."""
        model, config = self.checkpoint.model, self.checkpoint.model.config
        tokens = self.trace.tokens[stack]
        ids = torch.tensor([token.id for token in tokens[self.rows]])
        own = float64(model.token_table(stack).weight[ids])
        summed: dict[Part, Rows] = {"token": own * config.embedding_factor}
        added = model.positions(self.rows.stop, stack)
        if added is not None:
            summed["position"] = float64(added[self.rows])
        if model.segment_embedding is not None:
            segments = self.checkpoint.segments(tokens)
            numbers = torch.zeros_like(ids) if segments is None else segments[0, self.rows].cpu()
            summed["segment"] = float64(model.segment_embedding.weight[numbers])
        x: Rows = np.sum(list(summed.values()), axis=0)
        norm = model.embedding_norm
        if model.decoder_embedding_norm is not None and stack == "decoder":
            norm = model.decoder_embedding_norm
        self.set_by_hand(f"{stack}.0.pre", x if norm is None else normalise(x, norm))
        if norm is not None:
            self.through(norm, x, "embedding")
        self.directions["embedding"] = self.g
        for part, rows in reversed(summed.items()):
            self.squares += float(((self.g * rows) ** 2).sum())
            self.add(part, "embedding", self.g * rows)

    def through(self, norm: Norm, y: Rows, place: str) -> None:
        """Carries g back through a norm of the rows y, its divisor frozen: g . norm(y) = g . beta + g' . y."""
        centred = y - y.mean(-1, keepdims=True) if isinstance(norm, nn.LayerNorm) else y
        square = (centred**2).mean(-1, keepdims=True)
        if isinstance(norm, nn.LayerNorm):
            self.add("norm_bias", place, self.g * float64(norm.bias))
        g = self.g * float64(norm.weight) / divisor(square, norm)
        self.g = g - g.mean(-1, keepdims=True) if isinstance(norm, nn.LayerNorm) else g

    def set_by_hand(self, name: str, computed: Rows) -> None:
        """Adds a term for the change that was set by hand at a point of the residual stream."""
        edit = self.trace.edit
        if edit is not None and any(self.rows.start <= cell.index[0] < self.rows.stop for cell in edit.cells_of(name)):
            self.add("by_hand", name, self.g * (self.row(name) - computed))

    def squared(self, g: Float[ndarray, "_g d_model"], rows: Float[ndarray, "*_parts d_model"]) -> float:
        """The sum of the squares of the products of directions and rows."""
        return float(((rows * g) ** 2).sum())

    def row(self, name: str) -> Rows:
        return float64(self.trace.residual(name)[self.rows])

    def add(self, part: Part, place: str, products: Float[ndarray, "..."] | float, head: int | None = None) -> None:
        self.terms.append(Term(part, place, float(np.sum(products)), head))


class LogitBackward(Backward):
    """The backward pass from one logit (see `logit_attribution`)."""

    def __init__(self, checkpoint: AnyCheckpoint, trace: Trace, position: int) -> None:
        width = checkpoint.model.config.d_model
        super().__init__(checkpoint, trace, slice(position, position + 1), np.zeros((1, width)))

    def head(self, token: int, against: Against) -> None:
        """Sets g to the gradient of the logit, less what it is compared with, at the final row of the stack."""
        model, stack = self.checkpoint.model, predicting_stack(self.checkpoint)
        table = (model.embedding if model.unembedding is None else model.unembedding).weight
        bias = model.logit_bias if model.prediction is None else model.prediction.logit_bias
        self.g = float64(table[token])[None] * model.config.logit_scale
        if against == "mean":
            self.g = self.g - mean_row(table) * model.config.logit_scale
        elif against is not None:
            self.g = self.g - float64(table[against]) * model.config.logit_scale
        if bias is not None:
            each = float64(bias)
            self.add("logit_bias", "prediction", float(each[token]) - reference(each, against))
        x = self.row(f"{stack}.final")
        if (head := model.prediction) is not None:
            dense = x @ float64(head.dense.weight).T + bias_of(head.dense)
            active = activation_kind(head.activation).compute(dense)
            self.through(head.norm, active, "prediction")
            ratio = np.divide(active, dense, out=np.zeros_like(dense), where=dense != 0)
            self.g = self.g * ratio
            self.add("head_bias", "prediction", self.g * bias_of(head.dense))
            self.g = self.g @ float64(head.dense.weight)


class HeadsBackward(LogitBackward):
    """The backward pass from one logit for the heads alone: it skips a network unless a norm follows its residual sum."""

    def written(self, block: Block, at: str, kind: str) -> tuple[Float[ndarray, "parts rows d_model"], Row]:
        around = block.around(kind)
        if kind == "feedforward" and around.after is None:
            return np.zeros((1, *self.g.shape)), np.zeros(self.g.shape[1])
        return super().written(block, at, kind)


def mean_row(table: Tensor) -> Row:
    """The mean of a table's rows; that of the last table is kept, since a head report asks for it text after text."""
    changes = -1 if table.is_inference() else table._version  # (a tensor of inference does not count its changes)
    of, then, found = _MEAN_ROW.get("last", (None, -1, None))
    if found is None or of is None or of() is not table or then != changes or changes < 0:
        found = float64(table.mean(0, dtype=torch.float64))
        _MEAN_ROW["last"] = (weakref.ref(table), changes, found)
    return found


def reference(values: Float[ndarray, " vocab"], against: Against) -> float:
    """The number that is subtracted from each logit: 0, the mean over the vocabulary, or that of the token `against`."""
    if against is None:
        return 0.0
    return float(values.mean() if against == "mean" else values[against])


def inner_rows(block: Block, network: FeedForward, trace: Trace, at: str, rows: slice) -> Float[ndarray, "rows d_ff"]:
    """The activations of the neurons of a feed-forward network in some rows, as W_out reads them."""
    x = network_input(block, trace, at, rows)
    return inner_numbers(x, network, trace.residual(f"{at}.pre").dtype)[-1]


def attention_at(checkpoint: AnyCheckpoint, site: str) -> Attention:
    stack, layer, kind = site.split(".")
    block = find_block(checkpoint, stack, int(layer))
    attention = block.self_attention if kind == "self" else block.cross_attention
    assert attention is not None
    return attention


def output_rows(attention: Attention, head: int) -> Float[ndarray, "d_head d_model"]:
    """The rows of W_O that belong to a head."""
    return float64(head_output(attention, head))
