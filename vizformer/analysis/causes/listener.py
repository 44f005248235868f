"""An edit that records tensors, for all items of a batch: a trace keeps one item, and no outputs of sublayers."""

from dataclasses import dataclass, field

from torch import Tensor

from vizformer.model import Edit


@dataclass(frozen=True)
class Listener(Edit):
    """Keeps some tensors, as they are once the patches are set.

    Attributes:
        names: "decoder.2.cross" and "decoder.2.feedforward" for what a sublayer puts out, "decoder.2.feedforward.hidden"
            for the neurons, "decoder.2.self.q", ".k" and ".v" for the operands of an attention.
        heard: name -> [b, n, d_model], [b, n, d_ff] of neurons, [b, heads, n, d_head] of operands.
    """

    names: frozenset[str] = frozenset()
    heard: dict[str, Tensor] = field(default_factory=dict)

    def sublayer(self, name: str, y: Tensor) -> Tensor:
        return self._hear(name, super().sublayer(name, y))

    def apply(self, name: str, x: Tensor) -> Tensor:
        return self._hear(name, super().apply(name, x))

    def _hear(self, name: str, x: Tensor) -> Tensor:
        if name in self.names:
            self.heard[name] = x.detach()
        return x
