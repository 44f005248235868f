"""The activations: recomputed, as a formula, as code and in words."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import nn

from vizformer.explain.step import filled
from vizformer.messages import N_, Message
from vizformer.model.feedforward import QuickGELU, SquaredReLU


class ActivationKind(NamedTuple):
    """An activation: what it computes, its formula and its code ({} is the argument), and the sentence about it ({n} of
    {all} numbers are not positive).
    """

    name: str
    compute: Callable[[Float[ndarray, "*n"]], Float[ndarray, "*n"]]
    formula: str
    call: str
    sentence: Message

    def symbol(self, argument: str) -> str:
        return self.formula.replace("{}", argument)

    def code(self, variable: str) -> str:
        return self.call.replace("{}", variable)

    def text(self, active: Float[ndarray, "*n"]) -> Message:
        return filled(self.sentence, n=int((active <= 0).sum()), all=active.size)


def _gelu(x: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
    """x Phi(x), Phi the normal distribution function (Hendrycks & Gimpel 2016)."""
    return 0.5 * x * (1.0 + torch.erf(torch.from_numpy(x / np.sqrt(2.0))).numpy())


def _gelu_tanh(x: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016)."""
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))


_GELU = N_("GELU lets large numbers pass, silences very negative ones, and bends in between.")
ACTIVATIONS = {
    "relu": ActivationKind(
        "ReLU",
        lambda x: np.maximum(x, 0.0),
        r"\max(0, {})",
        "F.relu({})",
        N_("ReLU keeps what is positive and silences the rest: {n} of {all} numbers are 0."),
    ),
    "relu_squared": ActivationKind(
        "ReLU²",
        lambda x: np.maximum(x, 0.0) ** 2,
        r"\max(0, {})^2",
        "F.relu({}).square()",
        N_("ReLU² squares what is positive and silences the rest."),
    ),
    "silu": ActivationKind(
        "SiLU",
        lambda x: x / (1.0 + np.exp(-x)),
        r"\mathrm{SiLU}({})",
        "F.silu({})",
        N_("SiLU, x·σ(x): large numbers pass, very negative ones are silenced."),
    ),
    "quick_gelu": ActivationKind(
        "QuickGELU",
        lambda x: x / (1.0 + np.exp(-1.702 * x)),
        r"\mathrm{QuickGELU}({})",
        "{} * torch.sigmoid(1.702 * {})",
        N_("QuickGELU, x·σ(1.702x), is close to GELU: large numbers pass, very negative ones are silenced."),
    ),
    "gelu": ActivationKind("GELU", _gelu, r"\mathrm{GELU}({})", "F.gelu({})", _GELU),
    "gelu_tanh": ActivationKind("GELU", _gelu_tanh, r"\mathrm{GELU}({})", 'F.gelu({}, approximate="tanh")', _GELU),
}
"""By the name that the model's options have for it."""
_NAMES = {nn.ReLU: "relu", SquaredReLU: "relu_squared", nn.SiLU: "silu", QuickGELU: "quick_gelu", nn.GELU: "gelu"}


def activation_kind(activation: nn.Module) -> ActivationKind:
    """The activation of a module of the model."""
    name = _NAMES[type(activation)]
    return ACTIVATIONS["gelu_tanh" if getattr(activation, "approximate", "") == "tanh" else name]


def activation_curves(x: Float[ndarray, " points"], other: float) -> dict[str, Float[ndarray, " points"]]:
    """ReLU, GELU, SiLU, and SwiGLU = SiLU(x) * other, where `other` is the number that the gate multiplies."""
    found = {ACTIVATIONS[name].name: ACTIVATIONS[name].compute(x) for name in ("relu", "gelu", "silu")}
    return {**found, "SwiGLU": found["SiLU"] * other}
