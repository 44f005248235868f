"""The matrices of one head with the norms folded into them, and what that leaves out.

A norm before a sublayer is (x - mean) / deviation * weight + bias.  The mean and the weight are linear and go into the
matrix that reads the row, diag(weight) W after taking off the mean; the bias of the norm joins those of the projections,
which are left out.  The division is another number for every row, always positive: scores and logits of single rows are
right up to that factor.  Of recorded code the matrices are those that its calls were found and proved to apply
(`vizformer.recorder.head_weights`), up to a factor for a whole model.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.analysis.heads.maps import Kind
from vizformer.checkpoints import AnyCheckpoint
from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.model import Transformer
from vizformer.model.block import Block, Stack
from vizformer.model.head_weights import HeadWeights as SiteWeights
from vizformer.model.head_weights import head_output, head_projection
from vizformer.model.norms import Norm


@dataclass(frozen=True)
class HeadWeights:
    """One head of self-attention, in float64: score(i, j) ~ x_i W_Q W_K^T x_j^T, what j hands to i: x_j W_V W_O.

    Attributes:
        W_Q, W_K, W_V: with the norm before them folded in, where there is one; W_Q and W_K are 0 where recorded code
            makes queries and keys by no matrix alone.
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
    return checkpoint.shape.last_stack  # type: ignore[return-value]


def known_heads(checkpoint: AnyCheckpoint, kind: Kind) -> list[HeadWeights]:
    """The folded matrices of all heads of a stack.

    Raises:
        TraceError: what `head_weights` raises.
    """
    counts = checkpoint.shape.heads_of(kind)
    return [head_weights(checkpoint, kind, layer, head) for layer, n in enumerate(counts) for head in range(n)]


def head_weights(checkpoint: AnyCheckpoint, kind: Kind, layer: int, head: int) -> HeadWeights:
    """The matrices of one head, with the norm before them folded in.

    Raises:
        TraceError: no such head; recorded code of which no matrices were found that make its values, or its output of z.
    """
    if not (counts := checkpoint.shape.heads_of(kind)):
        raise TraceError("This model has no self-attention of this kind.")
    if not 0 <= layer < len(counts) or not 0 <= head < counts[layer]:
        raise TraceError("There is no head {head} in layer {layer} of this model.", layer=layer, head=head)
    if isinstance(checkpoint, RecordedCheckpoint):
        return _found(checkpoint.circuits.layers[layer], layer, head)
    blocks = [layer for layer in _stack(checkpoint.model, kind).layers if isinstance(layer, Block)]
    block = blocks[layer]
    attention, before = block.self_attention, block.around("self").before

    def folded_in(name: str) -> Tensor:
        own = head_projection(attention, name, head)[0].cpu().double()  # [d_model, d_head]
        return own if before is None else folded(before, own)

    return HeadWeights(
        layer,
        head,
        _normed(folded_in("q"), attention.q_norm),
        _normed(folded_in("k"), attention.k_norm),
        folded_in("v"),
        head_output(attention, head).cpu().double(),
        attention.scale,
    )


def _found(site: SiteWeights, layer: int, head: int) -> HeadWeights:
    if site.v is None or site.W_O is None:
        raise TraceError(
            "No matrices were found in layer {layer} that turn the stream into values and z into what is added to the "
            "stream: another calculation, such as a norm after the sum, stands between.",
            layer=layer,
        )
    W_V, W_O = (one[head].cpu().double() for one in (site.v.weight, site.W_O))
    both = site.q and site.k and (site.q, site.k)
    W_Q, W_K = (one.weight[head].cpu().double() for one in both) if both else [torch.zeros_like(W_V)] * 2
    return HeadWeights(layer, head, W_Q, W_K, W_V, W_O, 1.0)


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
    direct = N_("Only the direct way is meant: what the layers between add, feed-forward above all, is left out.")
    if isinstance(checkpoint, RecordedCheckpoint):
        yield N_(
            "The matrices were found by running the model's own code on rows that hold a single 1, and each was checked: "
            "the model's rows go through the matrix as through the code, up to the division of a norm. Biases are left out."
        )
        if any(one.q is None or one.k is None for one in checkpoint.circuits.layers):
            yield N_(
                "Queries or keys are made by no matrix alone, since positions turn them or a norm follows: composition "
                "is shown by way of the values (V)."
            )
        yield direct
        return
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
    yield direct


def _stack(model: Transformer, kind: Kind) -> Stack:
    stack = model.encoder if kind == "encoder" else model.decoder if kind == "decoder" else None
    assert stack is not None
    return stack
