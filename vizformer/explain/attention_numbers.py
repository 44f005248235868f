"""The numbers of an attention in float64, in the order of the formula; those of one head and query are a slice of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor, nn

from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain.arrays import exponentials, float64, is_half, set_cells, softmax, stored
from vizformer.explain.norms import through
from vizformer.explain.position_terms import (
    Buckets,
    Rotation,
    Slopes,
    position_bias,
    relative_positions,
    rotation,
    turn,
)
from vizformer.explain.step import Axis, Proof, sizes
from vizformer.explain.sublayer import KEYS, Site, Sublayer, bias_of, find_site, in_words
from vizformer.messages import N_
from vizformer.model.attention import Attention
from vizformer.model.head_weights import head_projection
from vizformer.model.input_check import row_at
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace


@dataclass(frozen=True)
class AttentionNumbers(Sublayer):
    """An attention in all heads, for all queries or for one; each property is one line of the formula.

    In half precision the arithmetic goes on from the recorded q, k, v and z.

    Attributes:
        rotation: the rotary angles; None without rotary positions.
        distances: the position bias of ALiBi or T5; None if there is none.
    """

    site: Site
    record: AttentionRecord
    rotation: Rotation | None = None
    distances: Slopes | Buckets | None = None

    @property
    def attention(self) -> Attention:
        return self.site.attention

    @property
    def is_half(self) -> bool:
        return is_half(self.dtype)

    @property
    def widened(self) -> str:
        """The code that widens half precision to float32, as the fused kernel does before it multiplies and sums."""
        return ".float()" if self.is_half else ""

    @property
    def group(self) -> int:
        """How many query heads share a head of keys and values."""
        return self.attention.n_heads // self.attention.n_kv_heads

    @cached_property
    def source(self) -> Float[ndarray, "n_k d_model"]:
        """The rows that keys and values are computed from; the encoder's output is not normalised here."""
        rows = float64(self.trace.residual(self.site.source))
        return rows if self.site.is_cross else through(rows, self.around.before)

    def rows(self, name: str) -> Float[ndarray, "n d_model"]:
        """The rows that the queries ("q"), keys ("k") or values ("v") are computed from."""
        return self.read if name == "q" else self.source

    def linear(self, name: str) -> nn.Linear:
        layer: nn.Linear = getattr(self.attention, f"W_{name.upper()}")
        return layer

    def weight(self, name: str) -> Float[ndarray, "d_model width"]:
        return float64(self.linear(name).weight).T

    @property
    def last(self) -> str:
        """The suffix of the last step that changes queries and keys: "_turned", "_normed", or "" if there is none."""
        if self.rotation is not None:
            return "_turned"
        return "" if self.attention.q_norm is None else "_normed"

    def is_last(self, name: str, step: str) -> bool:
        """Whether a step ("", "_normed" or "_turned") gives the q, k or v that the model recorded."""
        return step == ("" if name == "v" else self.last)

    @cached_property
    def _projected(self) -> dict[str, Float[ndarray, "heads n d_head"]]:
        projected = {
            name: stored(self.rows(name) @ self.weight(name) + bias_of(self.linear(name)), self.dtype) for name in "qkv"
        }
        return {name: split_heads(rows, self.attention.d_head) for name, rows in projected.items()}

    @cached_property
    def _normed(self) -> dict[str, Float[ndarray, "heads n d_head"]]:
        norms = {"q": self.attention.q_norm, "k": self.attention.k_norm, "v": None}
        return {name: through(rows, norms[name]) for name, rows in self._projected.items()}

    @cached_property
    def recomputed(self) -> dict[str, Float[ndarray, "heads n d_head"]]:
        """q, k and v after norm and rotation, with the numbers set by hand: what the proofs compare with the model's own."""
        tensors = dict(self._normed)
        if self.rotation is not None:
            angles = self.rotation.angles
            tensors["q"] = turn(tensors["q"], angles[self.queries], self.dtype)
            tensors["k"] = turn(tensors["k"], angles, self.dtype)
        first = {"q": self.queries.start or 0}
        return {
            name: set_cells(self.trace, f"{self.site.name}.{name}", t, first.get(name, 0))
            for name, t in tensors.items()
        }

    def after_step(self, name: str, step: str = "") -> Float[ndarray, "heads n d_head"]:
        """q, k or v after the projection (""), the norm ("_normed") or the rotation ("_turned").

        The last of the steps has the numbers set by hand.
        """
        if self.is_last(name, step):
            return self.recomputed[name]
        return (self._normed if step == "_normed" else self._projected)[name]

    def recorded(self, name: str) -> Float[Tensor, "heads n d_head"]:
        tensor: Tensor = getattr(self.record, name)
        return tensor[:, self.queries] if name == "q" else tensor

    def terms(self, name: str) -> Float[ndarray, "heads n d_head"] | None:
        """The size of the terms behind q, k or v in half precision; None if a norm or a rotation follows."""
        if not self.is_half or not self.is_last(name, ""):
            return None
        terms = sizes(self.rows(name), self.weight(name), bias_of(self.linear(name)))
        return split_heads(terms, self.attention.d_head)

    def used(self, name: str) -> Float[ndarray, "heads n d_head"]:
        """q, k or v as the products read them, [heads or key/value heads, n, d_head]."""
        return float64(self.recorded(name)) if self.is_half else self.recomputed[name]

    @cached_property
    def q(self) -> Float[ndarray, "h n_q d_head"]:
        return self.used("q")

    @cached_property
    def k(self) -> Float[ndarray, "h n_k d_head"]:
        return self.used("k").repeat(self.group, axis=0)

    @cached_property
    def v(self) -> Float[ndarray, "h n_k d_head"]:
        return self.used("v").repeat(self.group, axis=0)

    @cached_property
    def dots(self) -> Float[ndarray, "h n_q n_k"]:
        return self.q @ self.k.mT

    @cached_property
    def scores(self) -> Float[ndarray, "h n_q n_k"]:
        return self.dots * self.record.scale

    @property
    def relative(self) -> Int[ndarray, "n_q n_k"]:
        """The relative positions j - i of the keys j to the queries i."""
        return relative_positions(self.source.shape[0])[self.queries]

    @cached_property
    def placed(self) -> Float[ndarray, "h n_q n_k"]:
        """The scores with the position bias, if there is one."""
        return self.scores if self.distances is None else self.scores + self.distances.bias(self.relative)

    @property
    def mask(self) -> Float[Tensor, "_h _q n_k"] | None:
        """The mask's rows, 0 or -inf; None without a mask."""
        bias = self.record.bias
        return bias if bias is None or bias.shape[1] == 1 else bias[:, self.queries]

    @cached_property
    def masked(self) -> Float[ndarray, "h n_q n_k"]:
        return self.placed if self.mask is None else self.placed + float64(self.mask)

    @cached_property
    def exponentials(self) -> tuple[Float[ndarray, "h n_q n_k"], Float[ndarray, "h n_q n_k"]]:
        """The masked scores minus the largest of their row, and e to their power."""
        return exponentials(self.masked)

    @cached_property
    def weights(self) -> Float[ndarray, "h n_q n_k"]:
        return softmax(self.masked)

    @cached_property
    def z_recomputed(self) -> Float[ndarray, "h n_q d_head"]:
        return stored(self.weights @ self.v, self.dtype)

    def fused(self, head: int) -> Float[Tensor, "n_q d_head"]:
        """z of the model's own fused call."""
        return self.record.z(head)[self.queries]

    @cached_property
    def fused_heads(self) -> Float[Tensor, "n_q width"]:
        """z of the model's own fused call in all heads, side by side."""
        return torch.cat([self.fused(head) for head in range(self.attention.n_heads)], dim=1)

    @property
    def z(self) -> Float[ndarray, "h n_q d_head"]:
        return split_heads(float64(self.fused_heads), self.attention.d_head) if self.is_half else self.z_recomputed

    @property
    def z_terms(self) -> Float[ndarray, "h n_q d_head"] | None:
        """The size of the terms behind z. Fused kernels also round the weights, each of which scales a whole value."""
        return self.weights @ np.abs(self.v) if self.is_half else None

    @property
    def joined(self) -> Float[ndarray, "n_q width"]:
        return joined_heads(self.z)

    @cached_property
    def out(self) -> Float[ndarray, "n_q d_model"]:
        return stored(self.joined @ self.weight("O") + bias_of(self.linear("O")), self.dtype)


def split_heads(rows: Float[ndarray, "n width"], d_head: int) -> Float[ndarray, "h n d_head"]:
    return rows.reshape(len(rows), -1, d_head).transpose(1, 0, 2)


def joined_heads(heads: Float[ndarray, "h n d_head"]) -> Float[ndarray, "n width"]:
    """The heads of each row concatenated: [h, n, d_head] -> [n, h d_head]."""
    return heads.transpose(1, 0, 2).reshape(heads.shape[1], -1)


def site_numbers(checkpoint: AnyCheckpoint, trace: Trace, site: str, query: int | None = None) -> AttentionNumbers:
    """The numbers of an attention, for one query or, without it, for all.

    Raises:
        TraceError: no such site or query.
    """
    at, record, model = find_site(checkpoint, trace, site), trace[site], checkpoint.model
    queries = slice(None)
    if query is not None:
        row = row_at(query, record.q.shape[1])
        queries = slice(row, row + 1)
    stack, _, kind = site.split(".")
    turned = rotation(model.config, record.q.shape[1]) if not at.is_cross else None
    distances = None if at.is_cross else position_bias(model, stack)
    return AttentionNumbers(trace, at.around, kind, at.before, at.after, at, record, turned, distances, queries=queries)


@dataclass(frozen=True)
class HeadNumbers:
    """One head and one query of `AttentionNumbers`."""

    all: AttentionNumbers
    head: int
    query: int

    q = property(lambda o: o.all.q[o.head, 0])  # [d_head]
    k = property(lambda o: o.all.k[o.head])  # [n_k, d_head]
    v = property(lambda o: o.all.v[o.head])  # [n_k, d_head]
    dots = property(lambda o: o.all.dots[o.head, 0])  # [n_k], as all that follow up to `pattern`
    scores = property(lambda o: o.all.scores[o.head, 0])
    placed = property(lambda o: o.all.placed[o.head, 0])
    masked = property(lambda o: o.all.masked[o.head, 0])
    shifted = property(lambda o: o.all.exponentials[0][o.head, 0])
    exps = property(lambda o: o.all.exponentials[1][o.head, 0])
    pattern = property(lambda o: o.all.weights[o.head, 0])
    z = property(lambda o: o.all.z[o.head, 0])  # [d_head]
    z_recomputed = property(lambda o: o.all.z_recomputed[o.head, 0])  # [d_head]
    blocked = property(lambda o: np.isneginf(o.masked))  # [n_k]
    total = property(lambda o: float(o.exps.sum()))
    focus = property(lambda o: int(o.pattern.argmax()))  # the key with the largest weight, which live formulas show
    reasons = property(lambda o: o.record.reason(o.head)[o.query].cpu().numpy())  # [n_k], uint8
    record = property(lambda o: o.all.record)
    site = property(lambda o: o.all.site)
    dtype = property(lambda o: o.all.dtype)
    d_head = property(lambda o: o.site.attention.d_head)
    n_k = property(lambda o: o.all.source.shape[0])

    @property
    def kv_head(self) -> int:
        """The key/value head that this query head reads; several query heads may share it."""
        return self.all.record.kv_head(self.head)

    @property
    def sharers(self) -> range:
        """The query heads that read the same key/value head as this one."""
        first = self.kv_head * self.all.group
        return range(first, first + self.all.group)

    def own(self, name: str) -> int:
        """This head's index in q ("q"), or in k or v."""
        return self.head if name == "q" else self.kv_head

    def part(self, name: str, of: ndarray | None) -> ndarray:
        """The rows of this head in tensors [heads, n, d_head] of q, k or v; the single row of q."""
        if of is None:
            return np.zeros(())
        own = of[self.own(name)]
        return own[0] if name == "q" else own

    def after_step(self, name: str, step: str = "") -> ndarray:
        return self.part(name, self.all.after_step(name, step))

    def columns(self, name: str) -> dict[str, Tensor]:
        """This head's columns of W_Q, W_K or W_V and its part of the bias, as in x W + b: W_Q (b_Q), ..."""
        weight, bias = head_projection(self.all.attention, name, self.head)
        columns = {f"W_{name.upper()}": weight}
        return columns if bias is None else columns | {f"b_{name.upper()}": bias}

    def axes(self, name: str) -> tuple[Axis, ...]:
        return ("features",) if name == "q" else KEYS

    def proof(self, name: str, step: str = "") -> Proof:
        """q, k or v against the recorded ones; direct for the last step that changes them."""
        anchor = N_(
            "{letter} of head {head} recorded in {place}",
            letter=name,
            head=self.own(name),
            place=in_words(self.site.name),
        )
        recomputed, recorded = self.part(name, self.all.recomputed[name]), self.all.recorded(name)[self.own(name)]
        recorded = recorded[0] if name == "q" else recorded
        terms = self.part(name, self.all.terms(name))
        return Proof.compare(anchor, recomputed, recorded, self.all.is_last(name, step), terms=terms)

    def proof_of_z(self, *, direct: bool) -> Proof:
        anchor = N_(
            "z from the model's own attention: {place}, head {head}", place=in_words(self.site.name), head=self.head
        )
        terms = self.all.z_terms
        size = 0.0 if terms is None else terms[self.head, 0]
        return Proof.compare(anchor, self.z_recomputed, self.all.fused(self.head)[0], direct, terms=size)

    @property
    def mask_row(self) -> Tensor | None:
        return self.all.record.mask_row(self.head, self.query)


def head_numbers(checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int, query: int) -> HeadNumbers:
    """The numbers of one head and one query.

    Raises:
        TraceError: no such site, head or query.
    """
    numbers = site_numbers(checkpoint, trace, site, query)
    numbers.record.check(head)
    return HeadNumbers(numbers, head, numbers.queries.start)
