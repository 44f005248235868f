"""Numbers set by hand while a forward runs: what would the model do if this one were different?

An `Edit` is an explicit argument of the forward, like the trace: nothing in the model changes, and other forwards do
not notice.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.model.masks import Mask, Reason

POSITION = {"z": 1, "pattern": 1, "q": 1, "k": 1, "v": 1}
"""The dimension of a tensor that counts positions, by the last part of its name; 0 in the others."""


@dataclass(frozen=True)
class Patch:
    """A part of one tensor of the forward, replaced or added to.

    x[index] <- value,   or x[index] <- x[index] + value

    Attributes:
        tensor: one of
            "decoder.2.cross.z"             what the heads have mixed, before W_O      [n_heads, n, d_head]
            "decoder.2.cross.pattern"       their weights: z becomes pattern v         [n_heads, n_q, n_k]
            "decoder.2.cross.q"             its queries, as the scores are computed from them [n_heads, n, d_head]
            "decoder.2.cross.k", "....v"    its keys and its values; consecutive query heads may share one
                                            [n_kv_heads, n_k, d_head]
            "decoder.2.cross"               what the attention adds to the stream      [n, d_model]
            "decoder.2.feedforward"         what the feed-forward network adds to it   [n, d_model]
            "decoder.2.feedforward.hidden"  its neurons, after the activation          [n, d_ff]
            "decoder.2.pre"                 a point of the residual stream             [n, d_model]
        index: where in it, None for all along a dimension; what is left out at the end is all as well: (3,) is head 3 of
            z, (None, 17) is neuron 17 at all positions.  Of a pattern only whole rows: (head, query) at most.
        value: a number, or a tensor that broadcasts to the part.  It may want a gradient.
        adds: whether `value` is added instead of replacing.
        item: which text of the batch; None: all.

    Raises:
        TraceError: a value that is not finite.
    """

    tensor: str
    index: tuple[int | None, ...] = ()
    value: Tensor | float = field(default=0.0, compare=False)
    adds: bool = False
    item: int | None = None

    def __post_init__(self) -> None:
        value = self.value
        finite = bool(value.isfinite().all()) if isinstance(value, Tensor) else math.isfinite(value)
        if not finite:
            raise TraceError("{name} cannot be set to a number that is not finite.", name=self.tensor)

    def apply(self, x: Tensor) -> Tensor:
        """`x` [b, ...] with the part changed; a position that is not there yet is left out.

        Raises:
            TraceError: an index outside the tensor, or a value that does not fit.
        """
        where = self._where(x.shape)
        if where is None:
            return x
        x = x.clone()
        part = x[where]
        value = self._fitting(part.shape, x)
        x[where] = part + value if self.adds else value
        return x

    def mix(self, z: Tensor, v: Tensor) -> Tensor:
        """`z` [b, n_heads, n_q, d_head] with rows of the pattern changed that mixed `v` [b, n_kv_heads, n_k, d_head].

        z = pattern v is linear in the pattern, so that the pattern of before is not needed to add to it.
        """
        if len(self.index) > 2:
            raise TraceError("Only whole rows of {name} can be set: give a head and a query.", name=self.tensor)
        where = self._where(z.shape)
        if where is None:
            return z
        v = v.repeat_interleave(z.shape[1] // v.shape[1], dim=1)[where[:2]]  # [b or none, heads or none, n_k, d_head]
        one_row = len(self.index) == 2 and self.index[1] is not None
        part = z[where]
        rows = self._fitting((*part.shape[:-1], v.shape[-2]), z)  # [..., n_q or none, n_k]
        mixed = (rows[..., None, :] @ v)[..., 0, :] if one_row else rows @ v
        z = z.clone()
        z[where] = part + mixed if self.adds else mixed
        return z

    def _where(self, shape: torch.Size) -> tuple[int | slice, ...] | None:
        """The index of the part in a tensor of `shape`, the batch first; None if the position does not exist yet."""
        position = POSITION.get(self.tensor.rpartition(".")[2], 0)
        if self.item is not None and not 0 <= self.item < shape[0]:
            raise _outside(self, shape[1:])
        if len(self.index) >= len(shape):
            raise _outside(self, shape[1:])
        for dimension, at in enumerate(self.index):
            if at is not None and not 0 <= at < shape[dimension + 1]:
                if at >= 0 and dimension == position:
                    return None
                raise _outside(self, shape[1:])
        parts = (slice(None) if at is None else at for at in (self.item, *self.index))
        return tuple(parts)

    def _fitting(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        value = torch.as_tensor(self.value, dtype=like.dtype, device=like.device)
        try:
            return value.expand(shape)
        except RuntimeError as error:
            raise TraceError(
                "The numbers given for {name} have the shape {given}, which does not fit {shape}.",
                name=self.tensor,
                given=str(list(value.shape)),
                shape=str(list(shape)),
            ) from error


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
        x = self.patched(name, x)
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
        return self.patched(f"{site}.z", z)

    def patched(self, name: str, x: Tensor) -> Tensor:
        """`x` [b, ...] with the patches of tensor `name`: the output of a sublayer, neurons, the heads' z."""
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
                raise _outside(cell, shapes[cell.tensor])
        for site in {*self.unscaled, *self.temperatures}:
            if f"{site}.q" not in shapes:
                raise TraceError("There is nothing called {name} to edit in this model.", name=site)
        for layer in self.skipped:
            if f"{layer}.pre" not in shapes:
                raise TraceError("There is nothing called {name} to edit in this model.", name=layer)
        for patch in self.patches:
            _check_patch(patch, shapes)


def _outside(edit: Patch | Cell, shape: Sequence[int]) -> TraceError:
    return TraceError(
        "{name} has the shape {shape}; there is no cell {index} in it (counted from 0).",
        name=edit.tensor,
        shape=str(list(shape)),
        index=str(list(edit.index)),
    )


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
