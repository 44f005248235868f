"""Whole parts of what a forward computes, replaced or added to: heads, patterns, neurons, rows of the stream."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vizformer.errors import TraceError

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
            raise TraceError("{name} cannot be set to what is no finite number.", name=self.tensor)

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
            raise TraceError("Of {name} only whole rows can be set: give a head and a query.", name=self.tensor)
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
            raise self._outside(shape)
        if len(self.index) >= len(shape):
            raise self._outside(shape)
        for dimension, at in enumerate(self.index):
            if at is not None and not 0 <= at < shape[dimension + 1]:
                if at >= 0 and dimension == position:
                    return None
                raise self._outside(shape)
        parts = (slice(None) if at is None else at for at in (self.item, *self.index))
        return tuple(parts)

    def _fitting(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        value = torch.as_tensor(self.value, dtype=like.dtype, device=like.device)
        try:
            return value.expand(shape)
        except RuntimeError as error:
            raise TraceError(
                "What is to be set in {name} has the shape {given}, which does not fit {shape}.",
                name=self.tensor,
                given=str(list(value.shape)),
                shape=str(list(shape)),
            ) from error

    def _outside(self, shape: torch.Size) -> TraceError:
        return TraceError(
            "{name} has the shape {shape}; there is no cell {index} in it (counted from 0).",
            name=self.tensor,
            shape=str(list(shape[1:])),
            index=str(list(self.index)),
        )
