"""Numbers set by hand while a forward runs: what would the model do if this one were different?

An `Edit` is an explicit argument of the forward, like the trace: nothing in the model changes, and other forwards do
not notice.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.model.masks import Mask, Reason
from vizformer.model.patch import POSITION, Patch


@dataclass(frozen=True)
class Cell:
    """One number replaced.

    Attributes:
        tensor: "decoder.2.cross.q" (or k, v, mask), or a point of the residual stream such as "encoder.0.pre".
        index: (head, position, component) in q, k and v; (query, key) in a mask; (position, component) in the stream.
        value: the new number; in a mask 0 opens the cell and -inf blocks it.
    """

    tensor: str
    index: tuple[int, ...]
    value: float


@dataclass(frozen=True)
class Edit:
    """The changes that are made by hand during a forward.

    Attributes:
        cells: the replaced numbers; the later one wins.
        unscaled: sites at which the scores are not divided by sqrt(d_head).
        temperatures: site -> T, softmax(scores / T) there.
        patches: parts of tensors, replaced or added to, one after the other.  The trace still records what a head
            computed; everything recorded after it was computed from the replacement.
        skipped: layers that add nothing, e.g. "decoder.2": their output is their input.

    Raises:
        TraceError: a temperature that is not a positive number; a value that is no number, or infinite (but for -inf in
            a mask).
    """

    cells: tuple[Cell, ...] = ()
    unscaled: frozenset[str] = frozenset()
    temperatures: Mapping[str, float] = field(default_factory=dict)
    patches: tuple[Patch, ...] = ()
    skipped: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for value in self.temperatures.values():
            if not (math.isfinite(value) and value > 0):
                raise TraceError("A softmax temperature must be a number above 0, not {value}.", value=value)
        for cell in self.cells:
            if not (math.isfinite(cell.value) or (cell.value == -math.inf and cell.tensor.endswith(".mask"))):
                raise TraceError(
                    "{name} cannot be set to {value}: choose a finite number.", name=cell.tensor, value=str(cell.value)
                )

    def cells_of(self, tensor: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.tensor == tensor]

    def apply(self, name: str, x: Tensor) -> Tensor:
        """`x` [b, ...] with the cells of tensor `name` set in batch item 0, and its patches; positions not there yet are
        left out."""
        x = self._patched(name, x)
        cells = [cell for cell in self.cells_of(name) if _inside(cell.index, x.shape[1:])]
        if not cells:
            return x
        x = x.clone()
        for cell in cells:
            require_room(cell, x.dtype)
            x[(0, *cell.index)] = cell.value
        return x

    def mask(self, site: str, mask: Mask | None, q: Tensor, k: Tensor) -> Mask | None:
        """The mask of `site`, in which q [b, n_heads, n_q, d_head] meets the keys k, with cells opened or blocked by
        hand.
        """
        b, n_q, n_k = q.shape[0], q.shape[2], k.shape[2]
        cells = [cell for cell in self.cells_of(f"{site}.mask") if _inside(cell.index, (n_q, n_k))]
        if not cells:
            return mask
        if mask is None:
            bias = torch.zeros(b, 1, n_q, n_k, device=q.device)
            reason = torch.zeros(b, 1, n_q, n_k, dtype=torch.uint8, device=q.device)
        else:
            shape = (b, mask.bias.shape[1], n_q, n_k)  # a mask that is the same for the whole batch is so no longer
            bias, reason = mask.bias.expand(shape).clone(), mask.reason.expand(shape).clone()
        for cell in cells:
            require_room(cell, bias.dtype)
            query, key = cell.index
            bias[0, :, query, key] = cell.value
            reason[0, :, query, key] = int(Reason.VISIBLE if cell.value == 0 else Reason.PAINTED)
        return Mask(bias, reason)

    def heads(self, site: str, z: Tensor, v: Tensor) -> Tensor:
        """The outputs of an attention's heads [b, n_heads, n, d_head] that mixed v, or what takes their place."""
        for patch in self.patches:
            z = patch.mix(z, v) if patch.tensor == f"{site}.pattern" else z
        return self._patched(f"{site}.z", z)

    def sublayer(self, name: str, y: Tensor) -> Tensor:
        """The output of a sublayer, [b, n, d_model], or the patches that replace it; likewise the neurons of a
        feed-forward.
        """
        return self._patched(name, y)

    def layer(self, name: str, entering: Tensor, x: Tensor) -> Tensor:
        """The output of a layer: x, or, if the layer is skipped, its input `entering`."""
        return entering if name in self.skipped else x

    def _patched(self, name: str, x: Tensor) -> Tensor:
        for patch in self.patches:
            x = patch.apply(x) if patch.tensor == name else x
        return x

    def scale(self, site: str, scale: float) -> float:
        """The factor of q.k at `site`: `scale`, or 1 if the edit leaves the division by sqrt(d_head) out, divided by
        the temperature.
        """
        return (1.0 if site in self.unscaled else scale) / self.temperatures.get(site, 1.0)

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Refuses edits of tensors that a forward did not have; `shapes` are those of the editable tensors.

        Raises:
            TraceError: an unknown tensor or site, or an index outside it.
        """
        for cell in self.cells:
            if cell.tensor not in shapes:
                raise TraceError("There is nothing called {name} to edit in this model.", name=cell.tensor)
            if not _inside(cell.index, shapes[cell.tensor]):
                raise TraceError(
                    "{name} has the shape {shape}; there is no cell {index} in it (counted from 0).",
                    name=cell.tensor,
                    shape=str(list(shapes[cell.tensor])),
                    index=str(list(cell.index)),
                )
        for site in {*self.unscaled, *self.temperatures}:
            if f"{site}.q" not in shapes:
                raise TraceError("There is nothing called {name} to edit in this model.", name=site)
        for layer in self.skipped:
            if f"{layer}.pre" not in shapes:
                raise TraceError("There is nothing called {name} to edit in this model.", name=layer)
        for patch in self.patches:
            _check_patch(patch, shapes)


def _check_patch(patch: Patch, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuses a patch of a tensor or position that does not exist; the forward itself has refused all other indices."""
    layer, _, part = patch.tensor.removesuffix(".hidden").rpartition(".")
    if part in ("z", "pattern", "q"):
        positions = shapes.get(f"{layer}.q", (0, 0))[1]
    elif part in ("k", "v"):
        positions = shapes.get(f"{layer}.k", (0, 0))[1]
    elif part == "feedforward" or f"{patch.tensor}.q" in shapes:
        positions = shapes.get(f"{layer}.pre", (0,))[0]
    else:  # a point of the residual stream, not a site's mask
        positions = shapes[patch.tensor][0] if len(shapes.get(patch.tensor, ())) == 2 and part != "mask" else 0
    if positions == 0:
        raise TraceError("There is nothing called {name} to edit in this model.", name=patch.tensor)
    dimension = POSITION.get(part, 0)
    at = patch.index[dimension] if len(patch.index) > dimension else None
    if at is not None and at >= positions:
        raise TraceError(
            "{name} has {n} positions; there is no position {at} (counted from 0).",
            name=patch.tensor,
            n=positions,
            at=at,
        )


def require_room(cell: Cell, dtype: torch.dtype) -> None:
    """Refuses a value that a tensor of `dtype` cannot hold.

    Raises:
        TraceError: it is larger than the largest number.
    """
    largest = torch.finfo(dtype).max
    if math.isfinite(cell.value) and abs(cell.value) > largest:
        raise TraceError(
            "{name} cannot be set to {value}: the largest number of {dtype} is {largest}.",
            name=cell.tensor,
            value=f"{cell.value:g}",
            dtype=str(dtype).removeprefix("torch."),
            largest=f"{largest:g}",
        )


def _inside(index: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(index) == len(shape) and all(0 <= i < n for i, n in zip(index, shape, strict=True))
