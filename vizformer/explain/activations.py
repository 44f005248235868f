"""The activations: recomputed, as a formula, as code and in words."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import nn

from vizformer.messages import N_, Message
from vizformer.model.feedforward import QuickGELU, SquaredReLU


class ActivationKind(NamedTuple):
    """An activation: its name in formulas, its name in code, and the sentence about it ({n} of {all} numbers are not
    positive).
    """

    name: str
    call: str
    sentence: Message | None

    def compute(self, x: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
        if self.name == "ReLU":
            return np.maximum(x, 0.0)
        if self.name == "ReLU²":
            return np.maximum(x, 0.0) ** 2
        if self.name == "SiLU":
            return x / (1.0 + np.exp(-x))
        if self.name == "QuickGELU":
            return x / (1.0 + np.exp(-1.702 * x))
        return _gelu_tanh(x) if "tanh" in self.call else _gelu(x)

    def symbol(self, argument: str) -> str:
        if self.name == "ReLU":
            return rf"\max(0, {argument})"
        if self.name == "ReLU²":
            return rf"\max(0, {argument})^2"
        return rf"\mathrm{{{self.name}}}({argument})"

    def code(self, variable: str) -> str:
        return self.call.format(variable)

    def text(self, active: ndarray) -> Message:
        if self.sentence is None:
            return N_(
                "ReLU keeps what is positive and silences the rest: {n} of {all} numbers are 0.",
                n=int((active <= 0).sum()),
                all=active.size,
            )
        return self.sentence


def activation_kind(activation: nn.Module) -> ActivationKind:
    """The formula, code and description of a model's activation."""
    if isinstance(activation, nn.ReLU):
        return ActivationKind("ReLU", "F.relu({})", None)
    if isinstance(activation, SquaredReLU):
        return ActivationKind(
            "ReLU²", "F.relu({}).square()", N_("ReLU² squares what is positive and silences the rest.")
        )
    if isinstance(activation, nn.SiLU):
        return ActivationKind(
            "SiLU", "F.silu({})", N_("SiLU, x·σ(x): large numbers pass, very negative ones are silenced.")
        )
    if isinstance(activation, QuickGELU):
        return ActivationKind(
            "QuickGELU",
            "{0} * torch.sigmoid(1.702 * {0})",
            N_("QuickGELU, x·σ(1.702x), is close to GELU: large numbers pass, very negative ones are silenced."),
        )
    approximate = isinstance(activation, nn.GELU) and activation.approximate == "tanh"
    call = 'F.gelu({}, approximate="tanh")' if approximate else "F.gelu({})"
    sentence = N_("GELU lets large numbers pass, silences very negative ones, and bends in between.")
    return ActivationKind("GELU", call, sentence)


def _gelu(x: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
    """x Phi(x), Phi the normal distribution function (Hendrycks & Gimpel 2016)."""
    return 0.5 * x * (1.0 + torch.erf(torch.from_numpy(x / np.sqrt(2.0))).numpy())


def _gelu_tanh(x: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016)."""
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))


def activation_curves(x: Float[ndarray, " points"], other: float) -> dict[str, Float[ndarray, " points"]]:
    """ReLU, GELU, SiLU, and SwiGLU = SiLU(x) * other, where `other` is the number that the gate multiplies."""
    kinds = [activation_kind(module) for module in (nn.ReLU(), nn.GELU(), nn.SiLU())]
    found = {kind.name: kind.compute(x) for kind in kinds}
    return {**found, "SwiGLU": found["SiLU"] * other}
