"""The transform of the last row before the unembedding: BERT's masked-language-model head, and a projection of narrow
tables.
"""

from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.explain import latex, norms
from vizformer.explain.activations import activation_kind
from vizformer.explain.arrays import float64, stored
from vizformer.explain.step import Contraction, Maker, Operand, Proof, Step
from vizformer.messages import N_
from vizformer.model.mlm_head import PredictionTransform


def mlm_head_steps(
    head: PredictionTransform | None, x: Float[ndarray, " d_model"], position: int, row: Tensor
) -> list[Step]:
    """The step t = norm(act(x W + b)); none if the logits are computed from x itself.

    `row` is x as the model has it.  The caller gives the steps their proof: they lead to the logits.
    """
    if head is None:
        return []
    weight, bias = float64(head.dense.weight).T, float64(head.dense.bias)
    dtype = head.dense.weight.dtype
    dense = stored(x @ weight + bias, dtype)
    kind = activation_kind(head.activation)
    active = stored(kind.compute(dense), dtype)
    normed = norms.normalise(active, head.norm)
    make = Maker("", Proof(N_("the model's logits at position {position}", position=position), 0.0, True, direct=False))
    first = f"{{{position},0}}"
    return [
        make(
            "dense",
            N_("The head's dense layer"),
            N_("One more matrix prepares the row for the comparison."),
            r"d_i = x_i W + b",
            rf"d_{first} = {latex.sum_of_products(x, weight[:, 0], float(bias[0]))} = "
            rf"{latex.number(dense[0])}",
            rf"d_{{{position}}}",
            dense,
            "dense = x @ W + b",
            operands=(
                Operand(rf"x_{{{position}}}", N_("the last row of the stack"), x),
                Operand("W", N_("the head's matrix"), weight, ("features", "features")),
                Operand("b", N_("its bias"), bias),
            ),
            contraction=Contraction(x[None], weight, bias),
            inputs={"x": row, "W": head.dense.weight.detach().T, "b": head.dense.bias.detach()},
        ),
        make(
            "activation",
            N_("The head's activation"),
            kind.text(active),
            rf"a_i = {kind.symbol('d_i')}",
            rf"a_{first} = {kind.symbol(latex.number(dense[0]))} = {latex.number(active[0])}",
            rf"a_{{{position}}}",
            active,
            f"active = {kind.code('dense')}",
        ),
        make(
            "norm",
            N_("The head's norm"),
            N_("The row is normalised once more, as after every sublayer."),
            norms.formula(head.norm, "t_i", "a_i"),
            norms.live(rf"t_{first}", active, head.norm, normed[0]),
            rf"t_{{{position}}}",
            normed,
            norms.code(head.norm, "x", "active"),
            operands=norms.operands(head.norm),
            inputs=norms.inputs(head.norm),
        ),
    ]
