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

from vizformer.explain.activations import activation_kind
from vizformer.explain.arrays import float64, stored
from vizformer.explain.snippets import light_inputs
from vizformer.explain.step import Proof
from vizformer.explain.sublayer import bias_of, linear_code, linear_inputs
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


@dataclass(frozen=True)
class RowOfNumbers:
    """The network for one row, and its most active neuron with the weights that make it.

    Attributes:
        x: the row that goes in.
        hidden, entering, active, inner, out: as in `FeedForwardNumbers`.
        neuron: the one with the largest number after the activation.
        w_in, b_in: its column of W_in (of W_gate, where there is one) and its bias.
        w_out, b_out: the first column of W_out and its bias: they make the first number of the result.
        code: plain PyTorch that computes the row; `given` are its inputs.
    """

    x: Float[ndarray, " d_model"]
    hidden: Float[ndarray, " d_ff"]
    entering: Float[ndarray, " d_ff"]
    active: Float[ndarray, " d_ff"]
    inner: Float[ndarray, " d_ff"]
    out: Float[ndarray, " d_model"]
    neuron: int
    w_in: Float[ndarray, " d_model"]
    b_in: float
    w_out: Float[ndarray, " d_ff"]
    b_out: float
    code: str
    given: dict[str, Tensor]

    @property
    def terms_in(self) -> Float[ndarray, " terms"]:
        """The terms whose sum is the neuron's number before the activation: x_i w_i, and the bias if it is not 0."""
        return _terms(self.x, self.w_in, self.b_in)

    @property
    def terms_out(self) -> Float[ndarray, " terms"]:
        """The terms whose sum is the first number of the result: inner_j w_j, and the bias if it is not 0."""
        return _terms(self.inner, self.w_out, self.b_out)


def _terms(left: ndarray, right: ndarray, bias: float) -> Float[ndarray, " terms"]:
    return np.append(left * right, bias) if bias else left * right


def row_of_numbers(x: Float[ndarray, " d_model"], feedforward: FeedForward, dtype: torch.dtype) -> RowOfNumbers:
    """The numbers of the network for one row x."""
    numbers = feedforward_numbers(x[None], feedforward, dtype)
    neuron, gate = int(numbers.active[0].argmax()), feedforward.W_gate
    first = feedforward.W_in if gate is None else gate
    kind = activation_kind(feedforward.activation)
    lines = [f"hidden = x{linear_code(feedforward.W_in, 'in')}"]
    if gate is None:
        lines.append(f"active = {kind.code('hidden')}")
    else:
        lines += [
            f"gate = x{linear_code(gate, 'gate')}",
            f"active = {kind.code('gate')} * hidden",
        ]
    lines.append(f"out = active{linear_code(feedforward.W_out, 'out')}")
    given = linear_inputs(feedforward.W_in, "in") | linear_inputs(feedforward.W_out, "out")
    given |= {} if gate is None else linear_inputs(gate, "gate")
    return RowOfNumbers(
        x,
        numbers.hidden[0],
        numbers.entering[0],
        numbers.active[0],
        numbers.inner[0],
        numbers.out[0],
        neuron,
        float64(first.weight[neuron]),
        float(bias_of(first)[neuron]),
        float64(feedforward.W_out.weight[0]),
        float(bias_of(feedforward.W_out)[0]),
        "\n".join(lines),
        light_inputs(given),
    )


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
