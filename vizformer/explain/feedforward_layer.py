"""The feed-forward network over all positions."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import nn

from vizformer.explain import latex
from vizformer.explain.operands import float64, layer_norm
from vizformer.explain.parts import recorded
from vizformer.explain.step import Contraction, Operand, Proof, Step
from vizformer.explain.sublayer import ROWS, Sublayer, add_and_norm, after_sublayer, bias_of, entry, norm_before
from vizformer.messages import N_
from vizformer.model.feedforward import FeedForward


def feedforward_sublayer(at: Sublayer, feedforward: FeedForward, norm: nn.LayerNorm) -> list[Step]:
    """The two-layer network, the same for every row."""
    x = layer_norm(at.x, norm) if at.pre_norm else at.x
    W_in, b_in = float64(feedforward.W_in.weight).T, bias_of(feedforward.W_in)
    W_out, b_out = float64(feedforward.W_out.weight).T, bias_of(feedforward.W_out)
    hidden = x @ W_in + b_in
    relu = isinstance(feedforward.activation, nn.ReLU)
    active = np.maximum(hidden, 0.0) if relu else _gelu_tanh(hidden)
    out = active @ W_out + b_out
    through = Proof.compare(recorded(at.after), after_sublayer(at, norm, out), at.recorded_after, direct=False)
    plus_in = "" if feedforward.W_in.bias is None else " + ff.W_in.bias"
    plus_out = "" if feedforward.W_out.bias is None else " + ff.W_out.bias"
    silent = int((active <= 0).sum())
    steps = [norm_before(at, norm, through)] if at.pre_norm else []
    steps += [
        Step(
            at.key("hidden"), N_("Feed-forward, 1: widen"),
            N_("Each row on its own: {d_model} numbers become {d_ff}.", d_model=x.shape[1], d_ff=hidden.shape[1]),
            r"H = X W_\mathrm{in} + b_\mathrm{in}", entry("H", x[0], W_in[:, 0], b_in[0], hidden[0, 0]),
            (Operand("X", N_("the input, one row per token"), x, ROWS),
             Operand(r"W_\mathrm{in}", N_("the widening matrix"), W_in, ("features", "features"))),
            "H", hidden, f"ff = {at.path}.feedforward\nhidden = x @ ff.W_in.weight.T{plus_in}", "hidden", through,
            contraction=Contraction(x, W_in, b_in), axes=ROWS,
        ),
        Step(
            at.key("activation"), N_("Feed-forward, 2: activation"),
            N_("ReLU keeps what is positive and silences the rest: {n} of {all} numbers are 0.", n=silent, all=active.size)
            if relu else N_("GELU lets large numbers pass, silences very negative ones, and bends in between."),
            r"A = \max(0, H)" if relu else r"A = \mathrm{GELU}(H)",
            (rf"A_{{0,0}} = \max(0, {latex.number(hidden[0, 0])}) = " if relu else
             rf"A_{{0,0}} = \mathrm{{GELU}}({latex.number(hidden[0, 0])}) = ") + latex.number(active[0, 0]),
            (), "A", active, "active = F.relu(hidden)" if relu else 'active = F.gelu(hidden, approximate="tanh")',
            "active", through, axes=ROWS,
        ),
        Step(
            at.key("narrow"), N_("Feed-forward, 3: narrow"), N_("Back to the width of the residual stream."),
            r"O = A W_\mathrm{out} + b_\mathrm{out}", entry("O", active[0], W_out[:, 0], b_out[0], out[0, 0]),
            (Operand(r"W_\mathrm{out}", N_("the narrowing matrix"), W_out, ("features", "features")),),
            "O", out, f"out = active @ ff.W_out.weight.T{plus_out}", "out", through,
            contraction=Contraction(active, W_out, b_out), axes=ROWS,
        ),
    ]  # fmt: skip
    return [*steps, *add_and_norm(at, norm, out)]


def _gelu_tanh(x: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016)."""
    result: ndarray = 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))
    return result
