"""The steps of the feed-forward network over all positions."""

from dataclasses import replace

from jaxtyping import Float
from numpy import ndarray

from vizformer.explain import latex
from vizformer.explain.activations import activation_kind
from vizformer.explain.arrays import float64
from vizformer.explain.feedforward_rows import FeedForwardNumbers, feedforward_numbers
from vizformer.explain.step import Contraction, Operand, Proof, Step
from vizformer.explain.sublayer import (
    ROWS,
    Sublayer,
    add_and_norm,
    bias_of,
    entry,
    linear_code,
    linear_inputs,
    norm_before,
)
from vizformer.messages import N_
from vizformer.model.feedforward import FeedForward


def feedforward_sublayer(at: Sublayer, feedforward: FeedForward) -> list[Step]:
    """The steps of a feed-forward sublayer: the same two-layer network for every row, with a gate if the model has one."""
    x = at.read
    numbers = feedforward_numbers(x, feedforward, at.dtype)
    through = replace(at.proof(numbers.out), direct=False)
    steps = [*norm_before(at, through), *network_steps(at, x, feedforward, numbers, through)]
    return [*steps, *add_and_norm(at, numbers.out)]


def network_steps(
    at: Sublayer, x: Float[ndarray, "n d_model"], feedforward: FeedForward, numbers: FeedForwardNumbers, through: Proof
) -> list[Step]:
    """The steps of the network: from its input rows to its output; their proof is `through`, that of the sublayer's
    sum.
    """
    W_in, b_in = float64(feedforward.W_in.weight).T, bias_of(feedforward.W_in)
    W_out, b_out = float64(feedforward.W_out.weight).T, bias_of(feedforward.W_out)
    gate, kind = feedforward.W_gate, activation_kind(feedforward.activation)
    hidden, entering, active, inner, out = (
        numbers.hidden,
        numbers.entering,
        numbers.active,
        numbers.inner,
        numbers.out,
    )
    make = at.maker(through)
    steps = [
        make(
            "hidden",
            N_("Feed-forward, 1: widen"),
            N_("Each row on its own: {d_model} numbers become {d_ff}.", d_model=x.shape[1], d_ff=hidden.shape[1]),
            r"H = X W_\mathrm{in}" + ("" if feedforward.W_in.bias is None else r" + b_\mathrm{in}"),
            entry("H", x[0], W_in[:, 0], b_in[0], hidden[0, 0]),
            "H",
            hidden,
            f"hidden = x{linear_code(feedforward.W_in, 'in')}",
            operands=(
                Operand("X", N_("the input, one row per token"), x, ROWS),
                Operand(r"W_\mathrm{in}", N_("the widening matrix"), W_in, ("features", "features")),
            ),
            contraction=Contraction(x, W_in, b_in),
            inputs=linear_inputs(feedforward.W_in, "in"),
        )
    ]
    if gate is not None:
        W_gate, b_gate = float64(gate.weight).T, bias_of(gate)
        steps.append(
            make(
                "gate",
                N_("Feed-forward, 1b: the gate"),
                N_(
                    "A second matrix of the same size computes, for each of the {d_ff} numbers, how far its gate opens.",
                    d_ff=hidden.shape[1],
                ),
                r"G = X W_\mathrm{gate}" + ("" if gate.bias is None else r" + b_\mathrm{gate}"),
                entry("G", x[0], W_gate[:, 0], b_gate[0], entering[0, 0]),
                "G",
                entering,
                f"gate = x{linear_code(gate, 'gate')}",
                operands=(Operand(r"W_\mathrm{gate}", N_("the gate's matrix"), W_gate, ("features", "features")),),
                contraction=Contraction(x, W_gate, b_gate),
                inputs=linear_inputs(gate, "gate"),
            )
        )
    letter, variable = ("H", "hidden") if gate is None else ("G", "gate")
    steps.append(
        make(
            "activation",
            N_("Feed-forward, 2: activation"),
            kind.text(active),
            rf"A = {kind.symbol(letter)}",
            rf"A_{{0,0}} = {kind.symbol(latex.number(entering[0, 0]))} = {latex.number(active[0, 0])}",
            "A",
            active,
            f"active = {kind.code(variable)}",
        )
    )
    if gate is not None:
        steps.append(
            make(
                "gated",
                N_("Feed-forward, 2b: through the gate"),
                N_("Number by number, the widened row is multiplied by its opened gate."),
                r"B = A \odot H",
                rf"B_{{0,0}} = {latex.number(active[0, 0])} \cdot {latex.factor(hidden[0, 0])} = {latex.number(inner[0, 0])}",
                "B",
                inner,
                "active = active * hidden",
            )
        )
    last = "A" if gate is None else "B"
    steps.append(
        make(
            "narrow",
            N_("Feed-forward, 3: narrow"),
            N_("Back to the width of the residual stream."),
            rf"O = {last} W_\mathrm{{out}}" + ("" if feedforward.W_out.bias is None else r" + b_\mathrm{out}"),
            entry("O", inner[0], W_out[:, 0], b_out[0], out[0, 0]),
            "O",
            out,
            f"out = active{linear_code(feedforward.W_out, 'out')}",
            operands=(Operand(r"W_\mathrm{out}", N_("the narrowing matrix"), W_out, ("features", "features")),),
            contraction=Contraction(inner, W_out, b_out),
            inputs=linear_inputs(feedforward.W_out, "out"),
        )
    )
    return steps
