"""An edit that sets nothing, and hears what sublayers and neurons put out: a trace does not keep these."""

from dataclasses import dataclass, field

from torch import Tensor

from vizformer.model import Edit


@dataclass(frozen=True)
class Listener(Edit):
    """Keeps some outputs of batch item 0.

    Attributes:
        names: "decoder.2.cross", "decoder.2.feedforward", or "decoder.2.feedforward.hidden" for the neurons.
        heard: name -> what was put out, [n, d_model], or [n, d_ff] of neurons.
    """

    names: frozenset[str] = frozenset()
    heard: dict[str, Tensor] = field(default_factory=dict)

    def sublayer(self, name: str, y: Tensor) -> Tensor:
        if name in self.names:
            self.heard[name] = y[0].detach()
        return y
