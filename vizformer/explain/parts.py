"""What several steps share: the names of the proofs' anchors, and code and formula of a norm."""

from jaxtyping import Float
from numpy import ndarray
from torch import nn

from vizformer.explain import latex
from vizformer.explain.operands import Operands, float64
from vizformer.messages import N_, Message


def recorded(name: str) -> Message:
    return N_("the residual stream recorded at {name}", name=name)


def recorded_head(letter: str, o: Operands) -> Message:
    return N_("{letter} of head {head} recorded at {site}", letter=letter, head=o.head, site=o.site.name)


def fused(o: Operands) -> Message:
    return N_("z from the model's own fused attention at {site}, head {head}", site=o.site.name, head=o.head)


def norm_code(o: Operands, variable: str, argument: str) -> str:
    return (
        f"norm = {o.site.norm_module}\n"
        f"{variable} = F.layer_norm({argument}, ({o.d_model},), norm.weight, norm.bias, norm.eps)"
    )


def norm_live(symbol: str, row: Float[ndarray, " d_model"], norm: nn.LayerNorm, result: float) -> str:
    """The formula of LayerNorm with the numbers of the first component."""
    weight, bias = float64(norm.weight), float64(norm.bias)
    return (
        rf"{symbol} = \frac{{{latex.number(row[0])} - {latex.factor(row.mean())}}}"
        rf"{{\sqrt{{{latex.number(row.var())} + {latex.number(norm.eps)}}}}}"
        rf" \cdot {latex.factor(weight[0])} + {latex.factor(bias[0])} = {latex.number(result)}"
    )
