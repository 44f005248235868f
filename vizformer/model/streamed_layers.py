"""Layers whose weights stay in their file: one of them is in memory at a time, the one that computes.

They look like the layers of a stack: `layers[i]` is layer i with its numbers, made when it is asked for, and `len` and
`for` work as with all of them.  A forward makes each layer once and drops it before the next; the numbers are those of
a model in memory, since the same block computes with the same weights.
"""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from torch import nn

from vizformer.errors import TraceError


def refused() -> TraceError:
    """What is said where all weights together would be needed."""
    return TraceError(
        "The weights of this model are read from their file layer by layer, as they do not all fit into memory: "
        "what needs a copy of all of them cannot be done with it. Open it in a smaller precision, or choose a "
        "smaller model."
    )


class Resident:
    """The one layer that is in memory, of all stacks of a model."""

    def __init__(self) -> None:
        self._kept: tuple[str, int, nn.Module] | None = None

    def get(self, stack: str, index: int, make: Callable[[int], nn.Module]) -> nn.Module:
        """Layer `index` of a stack; the one before is dropped first.  Threads may each hold a layer for a while."""
        kept = self._kept
        if kept is not None and kept[:2] == (stack, index):
            return kept[2]
        del kept
        self._kept = None
        made = make(index)
        self._kept = (stack, index, made)
        return made


class StreamedLayers(nn.Module):
    """The layers of one stack.

    Args:
        empty: the layers without memory for their weights; their parameters have shapes and no numbers.
        stack: its name.
        make: the number of a layer -> the layer with its weights, which nobody else holds.
        resident: what keeps the layer in memory, for all stacks of the model.
    """

    def __init__(self, empty: nn.ModuleList, stack: str, make: Callable[[int], nn.Module], resident: Resident) -> None:
        super().__init__()
        self.empty = empty
        self._stack, self._make, self._resident = stack, make, resident

    def __len__(self) -> int:
        return len(self.empty)

    def __getitem__(self, index: int) -> nn.Module:
        """Layer `index`, counted from the end where it is negative, with its weights.

        Raises:
            IndexError: there is no such layer.
        """
        number = range(len(self))[index]
        return self._resident.get(self._stack, number, self._make)

    def __iter__(self) -> Iterator[nn.Module]:
        return (self[index] for index in range(len(self)))

    def state_dict(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: all weights together are what does not fit into memory.

        Raises:
            TraceError: always.
        """
        raise refused()

    def __deepcopy__(self, memo: object) -> NoReturn:
        """Refused as `state_dict` is.

        Raises:
            TraceError: always.
        """
        raise refused()
