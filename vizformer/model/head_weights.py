"""The matrices of the heads of an attention call, with the rows that they read; of our own Transformer by their role."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from vizformer.model.trace import Trace
from vizformer.model.transformer import Transformer


class Projection(NamedTuple):
    """How the heads of a site make one of their operands: y = x W + b.

    Attributes:
        weight: of each head; heads that share keys and values have the same ones each.
        bias: of each head; 0 where there is none.
        x: the rows that are read, in the order of the tokens.
    """

    weight: Float[Tensor, "n_heads d_in d_out"]
    bias: Float[Tensor, "n_heads d_out"]
    x: Float[Tensor, "n d_in"]


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """The matrices of the heads of a site; None of those that a recording did not find and prove.

    Attributes:
        q, k, v: by which x becomes queries, keys and values.
        W_O: by which z becomes a part of what the attention adds to the stream.
    """

    q: Projection | None
    k: Projection | None
    v: Projection | None
    W_O: Float[Tensor, "n_heads d_value d_model"] | None


def own_head_weights(model: Transformer, trace: Trace, site: str) -> HeadWeights:
    """Those of our own Transformer, read off its parameters; queries and keys before a norm of theirs and before positions
    turn them.

    Raises:
        TraceError: no such site in the trace.
    """
    n_heads = trace[site].n_heads
    stack, layer, kind = site.split(".")
    block = getattr(model, stack).layers[int(layer)]
    attention, before = getattr(block, f"{kind}_attention"), block.around(kind).before
    x = trace.residual(f"{stack}.{layer}.{'pre' if kind == 'self' else 'mid_self'}").to(attention.W_O.weight)
    x = x if before is None else before(x)
    source = x if kind == "self" else trace.residual("encoder.final").to(x)

    def projection(linear: nn.Linear, rows: Tensor) -> Projection:
        weight = linear.weight.detach().T.reshape(linear.in_features, -1, attention.d_head).transpose(0, 1)
        bias = weight.new_zeros(len(weight), attention.d_head)
        if linear.bias is not None:
            bias = linear.bias.detach().view_as(bias)
        shared = n_heads // len(weight)
        return Projection(weight.repeat_interleave(shared, 0), bias.repeat_interleave(shared, 0), rows)

    return HeadWeights(
        projection(attention.W_Q, x),
        projection(attention.W_K, source),
        projection(attention.W_V, source),
        attention.W_O.weight.detach().T.reshape(n_heads, attention.d_head, -1).clone(),
    )
