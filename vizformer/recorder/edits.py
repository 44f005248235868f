"""Edits of a model while it runs: z or the map of a head, or the stream at the end of a block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from vizformer.recorder.calls import Call

Value = Tensor | float | Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class HeadEdit:
    """Sets z or the map of heads at a site, for every text of the batch.

    Attributes:
        site: the name of the module whose code attends, as `trace.sites` has it (of heads that are modules of their own
            the name of one of these); None: all sites.
        heads: counted from 0; None: all.
        z: [n_q, d_value], a number, or a function of each head's own z; None: as the model has it.
        pattern: [n_q, n_k], a number, or a function of each head's own map; None: as the model has it.
        change: a function of the call, of the index of a text in the batch and of the z of all its heads
            [n_heads, n_q, d_value], that returns the new z; None: as the model has it.
        call: which call of the site in a forward, counted from 0; None: all.
    """

    site: str | None
    heads: Sequence[int] | None = None
    z: Value | None = None
    pattern: Value | None = None
    change: "Callable[[Call, int, Tensor], Tensor] | None" = None
    call: int | None = None


@dataclass(frozen=True)
class StreamEdit:
    """Sets the output of a block.

    Attributes:
        block: the name of a repeated block ("transformer.h.3"), or of the list of them, for what enters the first.
        value: a number, a tensor that broadcasts to the stream, or a function of the stream
            [batch, n, d_model] (in the order of dimensions that the model has).
        call: which run of the block in a forward, counted from 0; None: all.
    """

    block: str
    value: Value
    call: int | None = None


def applied(value: Value, x: Tensor) -> Tensor:
    """The new value of x, expanded to its shape."""
    if callable(value) and not isinstance(value, Tensor):
        value = value(x)
    given = value.to(x) if isinstance(value, Tensor) else x.new_tensor(value)
    return given.expand(x.shape)
