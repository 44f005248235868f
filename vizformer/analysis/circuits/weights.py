"""The matrices of one head with the norms folded into them, and what that leaves out.

A norm before a sublayer is (x - mean) / deviation * weight + bias.  The mean and the weight are linear and go into the
matrix that reads the row, diag(weight) W after taking off the mean; the bias of the norm joins those of the projections,
which are left out.  The division is another number for every row, always positive: scores and logits of single rows are
right up to that factor.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.analysis.heads.maps import Kind
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.model import Transformer
from vizformer.model.block import Block, Stack
from vizformer.model.norms import Norm


@dataclass(frozen=True)
class HeadWeights:
    """One head of self-attention, in float64: score(i, j) ~ x_i W_Q W_K^T x_j^T, what j hands to i: x_j W_V W_O.

    Attributes:
        W_Q, W_K, W_V: with the norm before them folded in, where there is one.
        W_O: the head's own rows.
    """

    layer: int
    head: int
    W_Q: Float[Tensor, "d_model d_head"]
    W_K: Float[Tensor, "d_model d_head"]
    W_V: Float[Tensor, "d_model d_head"]
    W_O: Float[Tensor, "d_head d_model"]
    scale: float


def predicting_kind(checkpoint: AnyCheckpoint) -> Kind:
    """The self-attention of the stack whose rows become logits."""
    return "encoder" if checkpoint.model.decoder is None else "decoder"


def known_heads(checkpoint: AnyCheckpoint, kind: Kind) -> list[HeadWeights]:
    """The folded matrices of all heads of a stack."""
    config = checkpoint.model.config
    return [head_weights(checkpoint, kind, *place) for place in np.ndindex(config.layers_of(kind), config.n_heads)]


def head_weights(checkpoint: AnyCheckpoint, kind: Kind, layer: int, head: int) -> HeadWeights:
    """The matrices of one head, with the norm before them folded in."""
    blocks = [layer for layer in _stack(checkpoint.model, kind).layers if isinstance(layer, Block)]
    if not 0 <= layer < len(blocks) or not 0 <= head < checkpoint.model.config.n_heads:
        raise TraceError("There is no head {head} in layer {layer} of this model.", layer=layer, head=head)
    block = blocks[layer]
    attention = block.self_attention
    shared = attention.n_heads // attention.n_kv_heads
    around = block.around("self")
    d_head = attention.d_head

    def columns(linear: nn.Linear, number: int, before: Norm | None) -> Tensor:
        own = linear.weight[number * d_head : (number + 1) * d_head].detach().cpu().double().T  # [d_model, d_head]
        return own if before is None else folded(before, own)

    out = attention.W_O.weight[:, head * d_head : (head + 1) * d_head].detach().cpu().double().T
    return HeadWeights(
        layer,
        head,
        _normed(columns(attention.W_Q, head, around.before), attention.q_norm),
        _normed(columns(attention.W_K, head // shared, around.before), attention.k_norm),
        columns(attention.W_V, head // shared, around.before),
        out,
        attention.scale,
    )


def folded(norm: Norm, matrix: Float[Tensor, "d_model k"]) -> Float[Tensor, "d_model k"]:
    """norm(x) W without the division and the bias, as one matrix: (I - 11^T / d) diag(weight) W, or without the mean."""
    scaled = norm.weight.detach().cpu().double()[:, None] * matrix
    return scaled - scaled.mean(0, keepdim=True) if isinstance(norm, nn.LayerNorm) else scaled


def _normed(rows: Float[Tensor, "m k"], norm: Norm | None) -> Float[Tensor, "m k"]:
    """norm of every row, but for the division and the bias."""
    if norm is None:
        return rows
    centred = rows - rows.mean(1, keepdim=True) if isinstance(norm, nn.LayerNorm) else rows
    return centred * norm.weight.detach().cpu().double()


def embedding(checkpoint: AnyCheckpoint, tokens: slice = slice(None)) -> Float[Tensor, "vocab d_model"]:
    """The rows of tokens, or some of them, as they enter the stack that predicts, with the norm after them folded in."""
    model = checkpoint.model
    stack = predicting_kind(checkpoint)
    rows: Tensor = model.token_table("encoder" if stack == "encoder" else "decoder").weight[tokens]
    rows = rows.detach().cpu().double() * model.config.embedding_factor
    norm = model.embedding_norm if model.decoder_embedding_norm is None else model.decoder_embedding_norm
    return _normed(rows, norm)


def unembedding(checkpoint: AnyCheckpoint, tokens: slice = slice(None)) -> Float[Tensor, "d_model vocab"]:
    """The unembedding matrix W_U of all tokens, or of some, with the final norm folded in."""
    model = checkpoint.model
    weight = model.embedding.weight if model.unembedding is None else model.unembedding.weight
    matrix = weight[tokens].detach().cpu().double().T * model.config.logit_scale
    norm = _stack(model, predicting_kind(checkpoint)).final_norm
    return matrix if norm is None else folded(norm, matrix)


def what_is_left_out(checkpoint: AnyCheckpoint) -> Iterator[Message]:
    """Why the circuits of this model say less than its forward, one sentence each."""
    config = checkpoint.model.config
    if config.norm_order == "post":
        yield N_(
            "This model normalises after every sum: what a head writes is scaled anew before the next layer reads it. "
            "Only where layer 0 looks is exact."
        )
    elif config.has_norms:
        yield N_(
            "The weight of every norm is folded into the matrices; its division, a positive number of each row, is left out."
        )
    if config.residual == "none":
        yield N_(
            "This model has no residual connections: what a head writes reaches only the next sublayer, and goes "
            "through the whole of it. Only where layer 0 looks is exact."
        )
    if config.positions == "rope":
        yield N_("Positions turn queries and keys here: the pairs of tokens are exact for the distance that is chosen.")
    elif config.positions in ("learned", "sinusoidal"):
        yield N_("The vectors of positions are left out: these are pairs of tokens.")
    if config.positions == "alibi" or config.has_relative_bias:
        yield N_("What is added to the scores for the distance is left out: these are the scores of the content.")
    if config.qk_norm:
        yield N_("Queries and keys go through a norm of their own here: their scores are right up to a factor.")
    if config.qkv_bias:
        yield N_("The biases of queries, keys and values are left out.")
    if config.head == "transform":
        yield N_("Before the logits stands one more layer here, which is left out.")
    yield N_("Only the direct way is meant: what the layers between add, feed-forward above all, is left out.")


def _stack(model: Transformer, kind: Kind) -> Stack:
    stack = model.encoder if kind == "encoder" else model.decoder if kind == "decoder" else None
    if stack is None:
        raise TraceError("This model has no self-attention of this kind.")
    return stack
