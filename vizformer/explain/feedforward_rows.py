"""The numbers of the feed-forward network, and three statements about it, each checked against the model.

    hidden = x W_in + b_in,   active = act(hidden),   out = active W_out + b_out      (gated: act(x W_gate) * hidden)

Source: Vaswani et al. 2017, section 3.3; Shazeer 2020, "GLU Variants Improve Transformer".
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.explain import latex
from vizformer.explain.activations import activation_kind
from vizformer.explain.arrays import float64, stored
from vizformer.explain.snippets import light_inputs
from vizformer.explain.step import Contraction, Operand, Proof, Step, filled
from vizformer.explain.sublayer import ROWS, Sublayer, bias_of, linear_step
from vizformer.messages import N_
from vizformer.model.feedforward import FeedForward


@dataclass(frozen=True)
class FeedForwardNumbers:
    """The intermediate results of the network for some rows.

    Attributes:
        hidden: x W_in + b_in.
        entering: the input of the activation: hidden or, where there is a gate, x W_gate + b_gate.
        active: the output of the activation.
        inner: the input of W_out: active or, where there is a gate, active * hidden.
        out: the result.
    """

    hidden: Float[ndarray, "n d_ff"]
    entering: Float[ndarray, "n d_ff"]
    active: Float[ndarray, "n d_ff"]
    inner: Float[ndarray, "n d_ff"]
    out: Float[ndarray, "n d_model"]


def inner_numbers(
    x: Float[ndarray, "n d_model"], feedforward: FeedForward, dtype: torch.dtype
) -> tuple[Float[ndarray, "n d_ff"], ...]:
    """`hidden`, `entering`, `active` and `inner` of `FeedForwardNumbers`, rounded where a model in `dtype` rounds."""
    gate, kind = feedforward.W_gate, activation_kind(feedforward.activation)
    hidden = stored(x @ float64(feedforward.W_in.weight).T + bias_of(feedforward.W_in), dtype)
    entering = hidden if gate is None else stored(x @ float64(gate.weight).T + bias_of(gate), dtype)
    active = stored(kind.compute(entering), dtype)
    inner = active if gate is None else stored(active * hidden, dtype)
    return hidden, entering, active, inner


def feedforward_numbers(
    x: Float[ndarray, "n d_model"], feedforward: FeedForward, dtype: torch.dtype
) -> FeedForwardNumbers:
    """The numbers of the network in float64, rounded where a model that computes in `dtype` rounds."""
    hidden, entering, active, inner = inner_numbers(x, feedforward, dtype)
    out = stored(inner @ float64(feedforward.W_out.weight).T + bias_of(feedforward.W_out), dtype)
    return FeedForwardNumbers(hidden, entering, active, inner, out)


# The steps of the network over all positions.

# matrix -> key, title, text, symbol, what it is
_LINEAR = {
    "in": (
        "hidden",
        N_("Feed-forward, 1: widen"),
        N_("Each row on its own: {d_model} numbers become {d_ff}."),
        "H",
        N_("the widening matrix"),
    ),
    "gate": (
        "gate",
        N_("Feed-forward, 1b: the gate"),
        N_("A second matrix of the same size computes, for each of the {d_ff} numbers, how far its gate opens."),
        "G",
        N_("the gate's matrix"),
    ),
    "out": (
        "narrow",
        N_("Feed-forward, 3: narrow"),
        N_("Back to the width of the residual stream."),
        "O",
        N_("the narrowing matrix"),
    ),
}


def network_steps(at: Sublayer, feedforward: FeedForward, numbers: FeedForwardNumbers, through: Proof) -> list[Step]:
    """The steps of the network: from its input rows to its output; their proof is `through`, that of the sublayer's
    sum.
    """
    make, gate, kind = at.maker(through), feedforward.W_gate, activation_kind(feedforward.activation)
    x, hidden, entering, active, inner = at.read, numbers.hidden, numbers.entering, numbers.active, numbers.inner

    def linear(name: str, left: str, rows: ndarray, result: ndarray, argument: str) -> Step:
        key, title, text, symbol, what = _LINEAR[name]
        values = {"d_model": x.shape[1], "d_ff": hidden.shape[1]} if "{" in text.text else {}
        module, variable = getattr(feedforward, f"W_{name}"), "out" if key == "narrow" else key
        first = (Operand("X", N_("the input, one row per token"), x, ROWS),) * (name == "in")
        said = (title, filled(text, **values), (symbol, left))
        return linear_step(make, key, *said, rows, module, name, result, (variable, argument), what, *first)

    steps = [linear("in", "X", x, hidden, "x")]
    letter, variable, last = "H", "hidden", "A"
    if gate is not None:
        letter, variable, last = "G", "gate", "B"
        steps.append(linear("gate", "X", x, entering, "x"))
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
    return [*steps, linear("out", last, inner, numbers.out, "active")]


@dataclass(frozen=True)
class RowOfNumbers:
    """The network for one row, and its most active neuron with the terms that make it.

    Attributes:
        x: the row that goes in.
        numbers: all that is computed from it, of this one row.
        neuron: the one with the largest number after the activation.
        terms_in: the terms whose sum is the neuron's number before the activation: x_i w_i, and the bias if it is not 0.
        terms_out: the terms whose sum is the first number of the result: inner_j w_j, and the bias if it is not 0.
        code: plain PyTorch that computes the row; `given` are its inputs.
    """

    x: Float[ndarray, " d_model"]
    numbers: FeedForwardNumbers
    neuron: int
    terms_in: Float[ndarray, " terms_in"]
    terms_out: Float[ndarray, " terms_out"]
    code: str
    given: dict[str, Tensor]


def row_of_numbers(at: Sublayer, feedforward: FeedForward) -> RowOfNumbers:
    """The numbers of the network for the one row that `at` looks at, from the steps of the layer."""
    numbers = feedforward_numbers(at.read, feedforward, at.dtype)
    steps = network_steps(at, feedforward, numbers, at.proof(numbers.out, direct=False))
    products = [step.contraction for step in steps if step.contraction is not None]  # those of W_in, W_gate, W_out
    neuron = int(numbers.active[0].argmax())
    inputs = {name: tensor for step in steps for name, tensor in step.inputs.items()}
    code, terms = "\n".join(step.code for step in steps), (_terms(products[-2], neuron), _terms(products[-1], 0))
    return RowOfNumbers(at.read[0], numbers, neuron, *terms, code, light_inputs(inputs))


def _terms(product: Contraction, column: int) -> Float[ndarray, " terms"]:
    terms, bias = product.products(0, column), 0.0 if product.add is None else product.add[column]
    return np.append(terms, bias) if bias else terms


@dataclass(frozen=True)
class Alone:
    """The change of the outputs when the input at one position is replaced.

    Attributes:
        changed: the position whose input is replaced.
        moved: for each output row the largest change of a number; 0 for all but the changed one.
        proof: the other rows against those of the first run.
    """

    changed: int
    moved: Float[ndarray, " n"]
    proof: Proof


def each_alone(x: Float[ndarray, "n d_model"], feedforward: FeedForward, changed: int) -> Alone:
    """The model's own network on x, and on x with the row at `changed` negated: which outputs change."""
    weight = feedforward.W_in.weight
    before = torch.from_numpy(x).to(weight)
    after = before.clone()
    after[changed] *= -1
    with torch.inference_mode():
        first, second = float64(feedforward(before[None])[0]), float64(feedforward(after[None])[0])
    moved = np.abs(second - first).max(axis=1)
    others = np.arange(len(x)) != changed
    proof = Proof.compare(
        N_("the outputs of the other tokens, before the change"), second[others], first[others], dtype=weight.dtype
    )
    return Alone(changed, moved, proof)


@dataclass(frozen=True)
class OneMatrix:
    """The product of the two matrices, without an activation between them.

    Attributes:
        matrix: W_in W_out.
        bias: b_in W_out + b_out.
        proof: x matrix + bias against the two steps one after the other.
        apart: |without - with the activation| / |with it|, of each row.
    """

    matrix: Float[ndarray, "d_model d_model"]
    bias: Float[ndarray, " d_model"]
    proof: Proof
    apart: Float[ndarray, " n"]


def multiplied_out(feedforward: FeedForward) -> tuple[ndarray, ndarray] | None:
    """W_in W_out and b_in W_out + b_out; None for a gated network.

    A gate multiplies two numbers that both depend on x: that is no matrix even without an activation.
    """
    if feedforward.W_gate is not None:
        return None
    W_in, W_out = float64(feedforward.W_in.weight).T, float64(feedforward.W_out.weight).T
    return W_in @ W_out, bias_of(feedforward.W_in) @ W_out + bias_of(feedforward.W_out)


def one_matrix(
    x: Float[ndarray, "n d_model"], feedforward: FeedForward, product: tuple[ndarray, ndarray] | None
) -> OneMatrix | None:
    """(x W_in + b_in) W_out + b_out = x (W_in W_out) + (b_in W_out + b_out), with the `multiplied_out` product."""
    if product is None:
        return None
    matrix, bias = product
    W_in, W_out = float64(feedforward.W_in.weight).T, float64(feedforward.W_out.weight).T
    two = (x @ W_in + bias_of(feedforward.W_in)) @ W_out + bias_of(feedforward.W_out)
    real = feedforward_numbers(x, feedforward, torch.float64).out
    proof = Proof.compare(N_("the two matrices one after the other"), x @ matrix + bias, two, dtype=torch.float64)
    apart = np.linalg.norm(two - real, axis=1) / np.maximum(np.linalg.norm(real, axis=1), 1e-12)
    return OneMatrix(matrix, bias, proof, apart)
