"""The matrices of the heads of an attention call, with the rows that they read; of our own Transformer by their role."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.model.attention import Attention
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


def head_projection(
    attention: Attention, name: str, head: int
) -> tuple[Float[Tensor, "d_in d_head"], Float[Tensor, " d_head"] | None]:
    """W and b of x W + b, by which a query head makes its query ("q"), its keys ("k") or its values ("v").

    Heads that share keys and values have the same ones; b is None in a model without biases.
    """
    linear: nn.Linear = getattr(attention, f"W_{name.upper()}")
    first = (head if name == "q" else head * attention.n_kv_heads // attention.n_heads) * attention.d_head
    own = slice(first, first + attention.d_head)
    return linear.weight[own].detach().T, None if linear.bias is None else linear.bias[own].detach()


def head_output(attention: Attention, head: int) -> Float[Tensor, "d_head d_model"]:
    """The rows of W_O that belong to a head, by which its z becomes a part of the output."""
    return attention.W_O.weight[:, head * attention.d_head : (head + 1) * attention.d_head].detach().T


def own_head_weights(model: Transformer, trace: Trace, site: str) -> HeadWeights:
    """Those of our own Transformer, read off its parameters; queries and keys before a norm of theirs and before positions
    turn them.

    Raises:
        TraceError: no such site in the trace.
    """
    n_heads = trace[site].n_heads
    stack, layer, kind = site.split(".")
    block = getattr(model, stack).layers[int(layer)]
    attention = getattr(block, f"{kind}_attention")
    x = trace.residual(f"{stack}.{layer}.{'pre' if kind == 'self' else 'mid_self'}").to(attention.W_O.weight)
    x = block.around(kind).enter(x)
    source = x if kind == "self" else trace.residual("encoder.final").to(x)

    def projection(name: str, rows: Tensor) -> Projection:
        weights, biases = zip(*(head_projection(attention, name, head) for head in range(n_heads)), strict=True)
        zero = weights[0].new_zeros(attention.d_head)
        return Projection(torch.stack(weights), torch.stack([zero if one is None else one for one in biases]), rows)

    W_O = torch.stack([head_output(attention, head) for head in range(n_heads)])
    return HeadWeights(projection("q", x), projection("k", source), projection("v", source), W_O)
