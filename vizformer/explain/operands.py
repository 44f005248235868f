"""All numbers of one head and one query, recomputed in float64 in the order of the formula."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from torch import Tensor, nn

from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain.arrays import float64, is_half, set_cells, stored
from vizformer.explain.norms import added_sizes, through
from vizformer.explain.position_terms import Buckets, Slopes, position_bias
from vizformer.explain.rope import angles, slowing, turn
from vizformer.explain.site import Site, find_site
from vizformer.explain.step import sizes
from vizformer.model.input_check import row_at
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace


@dataclass(frozen=True)
class Operands:
    """The numbers that `attention_steps` explains; each property is one line of the formula."""

    trace: Trace
    site: Site
    record: AttentionRecord
    head: int
    query: int
    angles: Float[ndarray, "n pairs"] | None  # of rotary positions, one row per position; None where there are none
    slowed: Float[ndarray, " pairs"] | None = None  # what divides the angles for longer texts
    theta: float = 10_000.0  # the base of the angles
    distances: Slopes | Buckets | None = None  # what tells the scores how far keys are; None where nothing does

    @property
    def dtype(self) -> torch.dtype:
        """What the model computes in."""
        return self.record.q.dtype

    @property
    def is_half(self) -> bool:
        return is_half(self.dtype)

    @property
    def widened(self) -> str:
        """In code, what the fused kernel does with half precision before it multiplies and sums."""
        return ".float()" if self.is_half else ""

    @property
    def kv_head(self) -> int:
        """The key/value head that this head reads; shared with its neighbours where there are fewer of them."""
        return self.record.kv_head(self.head)

    @property
    def sharers(self) -> list[int]:
        """All query heads that read this head's key/value head."""
        return [head for head in range(self.record.n_heads) if self.record.kv_head(head) == self.kv_head]

    @property
    def d_head(self) -> int:
        return self.site.attention.d_head

    @property
    def d_model(self) -> int:
        return self.x_before.shape[0]

    @property
    def n_k(self) -> int:
        return int(self.record.k.shape[1])

    # input -----------------------------------------------------------------------------------------------------

    @cached_property
    def x_before(self) -> Float[ndarray, " d_model"]:
        return float64(self.trace.residual(self.site.before)[self.query])

    @cached_property
    def x(self) -> Float[ndarray, " d_model"]:
        return through(self.x_before, self.site.around.before)

    @cached_property
    def source(self) -> Float[ndarray, "n_k d_model"]:
        rows = float64(self.trace.residual(self.site.source))
        # The encoder's output comes as it is.
        return rows if self.site.is_cross else through(rows, self.site.around.before)

    # projections -----------------------------------------------------------------------------------------------

    def head_columns(self, letter: str) -> tuple[Float[ndarray, "d_model d_head"], ndarray | None]:
        """This head's columns of W_Q, W_K or W_V, as in x W + b (`nn.Linear` stores W transposed)."""
        linear: nn.Linear = getattr(self.site.attention, f"W_{letter}")
        own = self.own_numbers(letter)
        return float64(linear.weight[own]).T, None if linear.bias is None else float64(linear.bias[own])

    def projection(self, letter: str) -> dict[str, Tensor]:
        """The same in the model's own numbers, as the code of a step names them: W_Q (b_Q), ..."""
        linear: nn.Linear = getattr(self.site.attention, f"W_{letter}")
        own = self.own_numbers(letter)
        found = {f"W_{letter}": linear.weight[own].detach().T}
        return found if linear.bias is None else found | {f"b_{letter}": linear.bias[own].detach()}

    def head_rows(self, linear: nn.Linear) -> Float[ndarray, "d_head d_model"]:
        """This head's rows of W_O, as in z W."""
        return float64(linear.weight[:, self.head * self.d_head : (self.head + 1) * self.d_head]).T

    def own_numbers(self, letter: str) -> slice:
        """Which of all queries' (or keys') numbers side by side are this head's."""
        head = self.head if letter == "Q" else self.kv_head
        return slice(head * self.d_head, (head + 1) * self.d_head)

    def _project(self, rows: ndarray, letter: str) -> ndarray:
        weight, bias = self.head_columns(letter)
        return stored(rows @ weight if bias is None else rows @ weight + bias, self.dtype)

    def projection_sizes(self, letter: str) -> ndarray | float:
        """The size of the terms behind q, k or v; 0 where a norm or a rotation comes after them."""
        if not self.is_half or (letter != "V" and self.last):
            return 0.0
        return sizes(self.x if letter == "Q" else self.source, *self.head_columns(letter))

    @cached_property
    def q_projected(self) -> Float[ndarray, " d_head"]:
        return self._project(self.x, "Q")

    @cached_property
    def k_projected(self) -> Float[ndarray, "n_k d_head"]:
        return self._project(self.source, "K")

    @property
    def last(self) -> str:
        """What happens last to queries and keys after their matrices: "_turned", "_normed", or nothing ("")."""
        if self.angles is not None:
            return "_turned"
        return "" if self.site.attention.q_norm is None else "_normed"

    @cached_property
    def q_normed(self) -> Float[ndarray, " d_head"]:
        return through(self.q_projected, self.site.attention.q_norm)

    @cached_property
    def k_normed(self) -> Float[ndarray, "n_k d_head"]:
        return through(self.k_projected, self.site.attention.k_norm)

    # What the proofs compare with the model's own; in half precision the arithmetic then goes on from that.

    @cached_property
    def q_recomputed(self) -> Float[ndarray, " d_head"]:
        q = self.q_normed if self.angles is None else turn(self.q_normed, self.angles[self.query], self.dtype)
        return set_cells(self.trace, f"{self.site.name}.q", q, (self.head, self.query))

    @cached_property
    def k_recomputed(self) -> Float[ndarray, "n_k d_head"]:
        k = self.k_normed if self.angles is None else turn(self.k_normed, self.angles, self.dtype)
        return set_cells(self.trace, f"{self.site.name}.k", k, (self.kv_head,))

    @cached_property
    def v_recomputed(self) -> Float[ndarray, "n_k d_head"]:
        return set_cells(self.trace, f"{self.site.name}.v", self._project(self.source, "V"), (self.kv_head,))

    @property
    def q(self) -> Float[ndarray, " d_head"]:
        return float64(self.record.q[self.head, self.query]) if self.is_half else self.q_recomputed

    @property
    def k(self) -> Float[ndarray, "n_k d_head"]:
        return float64(self.record.k[self.kv_head]) if self.is_half else self.k_recomputed

    @property
    def v(self) -> Float[ndarray, "n_k d_head"]:
        return float64(self.record.v[self.kv_head]) if self.is_half else self.v_recomputed

    # weights ---------------------------------------------------------------------------------------------------

    @cached_property
    def dots(self) -> Float[ndarray, " n_k"]:
        return self.k @ self.q

    @cached_property
    def scores(self) -> Float[ndarray, " n_k"]:
        return self.dots * self.record.scale

    @cached_property
    def placed(self) -> Float[ndarray, " n_k"]:
        """The scores with the position bias, where there is one."""
        if self.distances is None:
            return self.scores
        bias: ndarray = self.distances.bias(np.arange(self.n_k) - self.query)[self.head]
        return self.scores + bias

    @cached_property
    def bias_row(self) -> Float[ndarray, " n_k"] | None:
        row = self.record.mask_row(self.head, self.query)
        return None if row is None else float64(row)

    @property
    def mask_row(self) -> dict[str, Tensor]:
        """The mask's row as the code of a step names it; nothing where there is no mask."""
        row = self.record.mask_row(self.head, self.query)
        return {} if row is None else {"mask": row}

    @cached_property
    def reasons(self) -> UInt8[ndarray, " n_k"]:
        return self.record.reason(self.head)[self.query].cpu().numpy()

    @cached_property
    def masked(self) -> Float[ndarray, " n_k"]:
        return self.placed if self.bias_row is None else self.placed + self.bias_row

    @property
    def blocked(self) -> Bool[ndarray, " n_k"]:
        return np.isneginf(self.masked)

    @property
    def top(self) -> float:
        return float(self.masked.max(initial=-np.inf))

    @cached_property
    def shifted(self) -> Float[ndarray, " n_k"]:
        return self.masked - (self.top if np.isfinite(self.top) else 0.0)

    @cached_property
    def exps(self) -> Float[ndarray, " n_k"]:
        return np.exp(self.shifted)

    @property
    def total(self) -> float:
        return float(self.exps.sum())

    @cached_property
    def pattern(self) -> Float[ndarray, " n_k"]:
        return self.exps / self.total if self.total > 0 else np.zeros_like(self.exps)

    @property
    def focus(self) -> int:
        """The key with the largest weight: the one that live formulas show."""
        return int(self.pattern.argmax())

    # output ----------------------------------------------------------------------------------------------------

    @cached_property
    def z_recomputed(self) -> Float[ndarray, " d_head"]:
        return stored(self.pattern @ self.v, self.dtype)

    @cached_property
    def z(self) -> Float[ndarray, " d_head"]:
        return float64(self.record.z(self.head)[self.query]) if self.is_half else self.z_recomputed

    @property
    def z_sizes(self) -> ndarray | float:
        """The size of the terms behind z: fused kernels round weights too, and each moves its whole value."""
        return self.pattern @ np.abs(self.v) if self.is_half else 0.0

    @cached_property
    def head_outs(self) -> Float[ndarray, "n_heads d_model"]:
        """What each head adds: z W_O restricted to the head's rows."""
        heads = [self if head == self.head else replace(self, head=head) for head in range(self.record.n_heads)]
        return np.stack([other.z @ other.head_rows(self.site.attention.W_O) for other in heads])

    @cached_property
    def attn_out(self) -> Float[ndarray, " d_model"]:
        bias = self.site.attention.W_O.bias
        total: ndarray = self.head_outs.sum(0)
        return stored(total if bias is None else total + float64(bias), self.dtype)

    @cached_property
    def added(self) -> Float[ndarray, " d_model"]:
        return stored(self.site.around.onto(self.x_before, self.attn_out), self.dtype)

    @property
    def added_sizes(self) -> ndarray | float:
        """The size of what was added up; after a norm it says nothing."""
        return added_sizes(self.site.around, self.x_before, self.attn_out)

    @cached_property
    def after(self) -> Float[ndarray, " d_model"]:
        return set_cells(self.trace, self.site.after, through(self.added, self.site.around.after), (self.query,))


def gather(checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int, query: int) -> Operands:
    """The operands of one head and query."""
    found = find_site(checkpoint, trace, site)
    record = trace[site]
    record.scores(head)  # raises where there is no such head
    n_q = int(record.q.shape[1])
    query = row_at(query, n_q)
    config = checkpoint.model.config
    turned = config.positions == "rope" and not found.is_cross
    turns = angles(config, n_q) if turned else None
    model, stack = checkpoint.model, site.partition(".")[0]
    distances = None if found.is_cross else position_bias(model, stack)
    slowed = slowing(config) if turned else None
    return Operands(trace, found, record, head, query, turns, slowed, config.rope_theta, distances)
