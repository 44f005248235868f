"""An attention call as the recorder keeps it: queries, keys, values, and the calls that computed the map."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from vizformer.recorder.chain import Node, Part, replay


class Layout:
    """The roles of the dimensions in map @ v, batch and heads, queries, keys and features, which follow from its
    labels.
    """

    def __init__(self, p: str, v: str, z: str) -> None:
        self.p, self.v, self.z = p, v, z
        keys = [c for c in p if c in v and c not in z]
        queries = [c for c in p if c in z and c not in v][-1:]  # if there are several, the first are groups of heads
        features = [c for c in v if c in z and c not in p]
        self.whole = len(keys) == 1 == len(queries) == len(features)
        if self.whole:
            self.lead = [c for c in p if c not in keys + queries]
            self.key, self.query, self.feature = keys[0], queries[0], features[0]
            self.whole = all(c in z for c in self.lead)

    def of_p(self, x: Tensor) -> Tensor:
        return x.permute([self.p.index(c) for c in (*self.lead, self.query, self.key)])

    def of_z(self, x: Tensor) -> Tensor:
        return x.permute([self.z.index(c) for c in (*self.lead, self.query, self.feature)])

    def back_p(self, x: Tensor) -> Tensor:
        order = [*self.lead, self.query, self.key]
        return x.permute([order.index(c) for c in self.p])

    def back_z(self, x: Tensor) -> Tensor:
        order = [*self.lead, self.query, self.feature]
        return x.permute([order.index(c) for c in self.z])


@dataclass(eq=False)
class Operand:
    """Queries, keys or values of an attention call, and the place of each head in the tensor.

    Attributes:
        part: the numbers, in the order of dimensions that the code uses.
        labels: one letter for each of its dimensions.
        lead: the letters of the map's batch and heads; the tensor may lack some of them.
        row, column: the letters of its rows and of its features.
    """

    part: Part
    labels: str
    lead: list[str]
    row: str
    column: str
    repeat: int = 1  # how many consecutive heads share an index of the last leading dimension

    @cached_property
    def own(self) -> list[str]:
        return [c for c in self.labels if c not in (self.row, self.column)]

    def flat(self) -> Tensor:
        """The tensor as [own batch and heads, rows, features]."""
        x = self.part.tensor
        x = x.permute([self.labels.index(c) for c in (*self.own, self.row, self.column)])
        return x.reshape(-1, *x.shape[-2:])

    def where(self, shape: tuple[int, ...]) -> Tensor | None:
        """The index into `flat` for each of the map's batch and heads, as a tensor of this shape; None if it is not
        known.
        """
        sizes = [self.part.tensor.shape[self.labels.index(c)] for c in self.own]
        at = torch.arange(max(1, torch.Size(sizes).numel())).reshape(sizes)
        if self.repeat > 1:
            at = at.repeat_interleave(self.repeat, -1)
        extra = [c for c in self.own if c not in self.lead]
        if extra:
            return None
        at = at.permute([self.own.index(c) for c in self.lead if c in self.own])
        for i, c in enumerate(self.lead):
            if c not in self.own:
                at = at.unsqueeze(i)
        try:
            if at.dim() == len(shape):
                return at.expand(shape)
            return at.reshape(shape)
        except RuntimeError:
            return at.reshape(shape) if at.numel() == torch.Size(shape).numel() else None

    def rows(self, shape: tuple[int, ...], at: Any = slice(None)) -> Tensor | None:
        """The rows of the map's batch and heads (of all, or of those that `at` selects); None if they are not known."""
        where = self.where(shape)
        return None if where is None else self.flat()[where.reshape(-1)[at]]


@dataclass(eq=False)
class Call:
    """One attention call of one run.

    Attributes:
        site: the name of the module whose code attends.
        forward: the number of the forward, counted from 0.
        call: how many times the site had attended in this forward before.
        stack, block: the list of repeated blocks that it is in, and the index of its block; "" and -1 if it is in none.
        keys_of: the stack whose tokens are the keys.
        batch: the number of texts.
        kind: "sdpa", "softmax", "exp", "relu" or "sigmoid".
        lead: the shape of the map's batch and heads.
    """

    site: str
    forward: int
    call: int
    stack: str
    block: int
    keys_of: str
    batch: int
    kind: str
    lead: tuple[int, ...]
    q: Operand | None
    k: Operand | None
    v: Operand
    node: Node | None = None
    best: Node | None = None  # the product of these queries and keys
    layout: Layout | None = None
    options: dict[str, Any] = field(default_factory=dict)
    z: Tensor | None = None  # [batch and heads, n_q, d_value]
    group: "list[Call] | None" = None  # calls whose z are concatenated as the heads of one attention
    pieces: "list[Call] | None" = None  # calls whose z are concatenated as the queries of one attention
    n_q: int = 0
    set_by_hand: bool = False  # an edit has set z, so it is no product of the map and the values

    def maps(self, dtype: torch.dtype | None = None, at: int | None = None) -> Tensor:
        """The attention maps [batch and heads, n_q, n_k], recomputed by the recorded calls; `at` selects one of batch
        and heads.
        """
        if self.node is not None:
            assert self.layout is not None
            p = self.layout.of_p(replay(self.node, dtype))
            p = p.reshape(-1, *p.shape[-2:])
            return p if at is None else p[at : at + 1]
        scores, added = self.scaled(dtype or torch.float32, at)
        return torch.softmax(scores if added is None else scores.add_(added), -1)

    def scaled(self, dtype: torch.dtype, at: int | None = None) -> tuple[Tensor, Tensor | None]:
        """q k^T * scale of scaled_dot_product_attention [batch and heads, n_q, n_k], and the bias that is added to it
        ([1, n_q, n_k] if it is the same for all).
        """
        assert self.q is not None
        assert self.k is not None
        which = slice(None) if at is None else slice(at, at + 1)
        q, k = self.q.rows(self.lead, which), self.k.rows(self.lead, which)
        assert q is not None
        assert k is not None
        scale = self.options.get("scale")
        scores = (q.to(dtype) @ k.to(dtype).mT).mul_(q.shape[-1] ** -0.5 if scale is None else scale)
        return scores, self.added(scores.shape[-2:], dtype, which)

    def added(self, shape: torch.Size, dtype: torch.dtype, which: slice = slice(None)) -> Tensor | None:
        """The mask of scaled_dot_product_attention as a bias [batch and heads, n_q, n_k], or [1, n_q, n_k] if it is the
        same for all.
        """
        mask: Tensor | None = self.options.get("attn_mask")
        if self.options.get("is_causal"):
            mask = torch.ones(shape, dtype=torch.bool, device=self.v.part.tensor.device).tril()
        if mask is None:
            return None
        if mask.dim() < 3 or all(
            step == 0 or size == 1 for size, step in zip(mask.shape, mask.stride()[:-2], strict=False)
        ):
            mask = mask[(0,) * (mask.dim() - 2)].expand(shape)[None]
        else:
            mask = mask.expand(*self.lead, *shape).reshape(-1, *shape)[which]
        if mask.dtype == torch.bool:
            return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
        return mask.to(dtype)

    def heads(self) -> Tensor:
        """The index into the flattened batch and heads for each text and head, [batch, heads]."""
        at = torch.arange(max(1, torch.Size(self.lead).numel())).reshape(self.lead)
        if self.batch == 1 or not self.lead:
            return at.reshape(1, -1)
        if self.lead[0] % self.batch == 0 and (self.lead[0] == self.batch or self.batch not in self.lead):
            return at.reshape(self.batch, -1)
        if self.batch in self.lead:
            return at.movedim(self.lead.index(self.batch), 0).reshape(self.batch, -1)
        return at.reshape(1, -1)
