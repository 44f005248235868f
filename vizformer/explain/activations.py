"""The activations: recomputed, as a formula, as code and in words."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import nn

from vizformer.messages import N_, Message
from vizformer.model.feedforward import FeedForward, QuickGELU, SquaredReLU


class ActivationKind(NamedTuple):
    """One activation: its name in formulas and code, and the sentence about it; {n} of {all} numbers are not positive."""

    name: str
    call: str
    sentence: Message | None
    limit: float | None = None  # of a gate: see `gate_limit` of the options

    def compute(self, x: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
        x = x if self.limit is None else np.minimum(x, self.limit)
        if self.name == "ReLU":
            return np.maximum(x, 0.0)
        if self.name == "ReLU²":
            return np.maximum(x, 0.0) ** 2
        if self.name == "SiLU":
            return x / (1.0 + np.exp(-x))
        if self.name == "QuickGELU":
            return x / (1.0 + np.exp(-1.702 * x))
        return _gelu_tanh(x) if "tanh" in self.call else _gelu(x)

    def partner(self, hidden: Float[ndarray, "*n"]) -> Float[ndarray, "*n"]:
        """What an opened gate multiplies."""
        return hidden if self.limit is None else np.clip(hidden, -self.limit, self.limit) + 1

    def partner_symbol(self, argument: str) -> str:
        limit = self.limit
        return argument if limit is None else rf"(1 + \min(\max({argument}, -{limit:g}), {limit:g}))"

    def partner_code(self, variable: str) -> str:
        limit = self.limit
        return variable if limit is None else f"({variable}.clamp({-limit!r}, {limit!r}) + 1)"

    def partner_text(self) -> Message:
        if self.limit is None:
            return N_("Number by number, the widened row is multiplied by its opened gate.")
        return N_(
            "Number by number, the widened row, cut off at ±{limit} and with 1 added, is multiplied by its opened gate.",
            limit=f"{self.limit:g}",
        )

    def symbol(self, argument: str) -> str:
        if self.limit is not None:
            return self._replace(limit=None).symbol(rf"\min({argument}, {self.limit:g})")
        if self.name == "ReLU":
            return rf"\max(0, {argument})"
        if self.name == "ReLU²":
            return rf"\max(0, {argument})^2"
        return rf"\mathrm{{{self.name}}}({argument})"

    def code(self, variable: str) -> str:
        return self.call.format(variable if self.limit is None else f"{variable}.clamp(max={self.limit!r})")

    def text(self, active: ndarray) -> Message:
        if self.limit is not None:
            return N_(
                "What is above {limit} counts as {limit}; then {name} bends it.",
                limit=f"{self.limit:g}",
                name=self.name,
            )
        if self.sentence is None:
            return N_(
                "ReLU keeps what is positive and silences the rest: {n} of {all} numbers are 0.",
                n=int((active <= 0).sum()),
                all=active.size,
            )
        return self.sentence


def network_activation(network: FeedForward) -> ActivationKind:
    """That of a feed-forward network, with the limit of its gates."""
    return activation_kind(network.activation)._replace(limit=network.limit)


def activation_kind(activation: nn.Module) -> ActivationKind:
    """How a model's activation is computed, written and described."""
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
