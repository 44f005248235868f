"""The numbers of one head and one query, recomputed in float64 in the order of the formula."""

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
    angles: Float[ndarray, "n pairs"] | None  # the rotary angles, one row per position; None without rotary positions
    slowed: Float[ndarray, " pairs"] | None = None  # the divisors of the angles for longer texts
    theta: float = 10_000.0  # the base of the angles
    distances: Slopes | Buckets | None = None  # the position bias; None if there is none

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the model computes."""
        return self.record.q.dtype

    @property
    def is_half(self) -> bool:
        return is_half(self.dtype)

    @property
    def widened(self) -> str:
        """The code that widens half precision to float32, as the fused kernel does before it multiplies and sums."""
        return ".float()" if self.is_half else ""

    @property
    def kv_head(self) -> int:
        """The key/value head that this query head reads; several query heads may share it."""
        return self.record.kv_head(self.head)

    @property
    def sharers(self) -> list[int]:
        """The query heads that read the same key/value head as this one."""
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
        # The encoder's output is not normalised here.
        return rows if self.site.is_cross else through(rows, self.site.around.before)

    # projections -----------------------------------------------------------------------------------------------

    def head_columns(self, letter: str) -> tuple[Float[ndarray, "d_model d_head"], ndarray | None]:
        """This head's columns of W_Q, W_K or W_V, as in x W + b (`nn.Linear` stores W transposed)."""
        linear: nn.Linear = getattr(self.site.attention, f"W_{letter}")
        own = self.own_numbers(letter)
        return float64(linear.weight[own]).T, None if linear.bias is None else float64(linear.bias[own])

    def projection(self, letter: str) -> dict[str, Tensor]:
        """This head's columns of W_Q, W_K or W_V as tensors, by the names that the code of a step uses: W_Q (b_Q), ..."""
        linear: nn.Linear = getattr(self.site.attention, f"W_{letter}")
        own = self.own_numbers(letter)
        found = {f"W_{letter}": linear.weight[own].detach().T}
        return found if linear.bias is None else found | {f"b_{letter}": linear.bias[own].detach()}

    def head_rows(self, linear: nn.Linear) -> Float[ndarray, "d_head d_model"]:
        """This head's rows of W_O, as in z W."""
        return float64(linear.weight[:, self.head * self.d_head : (self.head + 1) * self.d_head]).T

    def own_numbers(self, letter: str) -> slice:
        """The slice of this head's numbers in the concatenated queries (or keys or values) of all heads."""
        head = self.head if letter == "Q" else self.kv_head
        return slice(head * self.d_head, (head + 1) * self.d_head)

    def _project(self, rows: ndarray, letter: str) -> ndarray:
        weight, bias = self.head_columns(letter)
        return stored(rows @ weight if bias is None else rows @ weight + bias, self.dtype)

    def projection_sizes(self, letter: str) -> ndarray | float:
        """The size of the terms behind q, k or v; 0 if a norm or a rotation follows."""
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
        """The suffix of the last step that changes queries and keys: "_turned", "_normed", or "" if there is none."""
        if self.angles is not None:
            return "_turned"
        return "" if self.site.attention.q_norm is None else "_normed"

    @cached_property
    def q_normed(self) -> Float[ndarray, " d_head"]:
        return through(self.q_projected, self.site.attention.q_norm)

    @cached_property
    def k_normed(self) -> Float[ndarray, "n_k d_head"]:
        return through(self.k_projected, self.site.attention.k_norm)

    # The proofs compare these with the model's own q, k and v; in half precision the arithmetic goes on from the latter.

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
        """The scores with the position bias, if there is one."""
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
        """The mask's row as an input of a step's code; empty without a mask."""
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
        """The key with the largest weight, which the live formulas show."""
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
        """The size of the terms behind z. Fused kernels also round the weights, each of which scales a whole value."""
        return self.pattern @ np.abs(self.v) if self.is_half else 0.0

    @cached_property
    def head_outs(self) -> Float[ndarray, "n_heads d_model"]:
        """The contribution of each head: its z times its rows of W_O, [n_heads, d_model]."""
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
        """The size of the terms of the sum with the residual stream; 0 if a norm follows."""
        return added_sizes(self.site.around, self.x_before, self.attn_out)

    @cached_property
    def after(self) -> Float[ndarray, " d_model"]:
        return set_cells(self.trace, self.site.after, through(self.added, self.site.around.after), (self.query,))


def gather(checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int, query: int) -> Operands:
    """The operands of one head and one query."""
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
