"""All numbers of one head and one query, recomputed in float64 in the order of the formula."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from torch import Tensor, nn

from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.explain.site import Site, find_site
from vizformer.messages import N_
from vizformer.model.trace import AttentionRecord, Trace


def float64(tensor: Tensor) -> Float[ndarray, "..."]:
    """A tensor of the model as a float64 array, whatever its dtype and device."""
    array: ndarray = tensor.detach().double().cpu().numpy()
    return array


def layer_norm(x: Float[ndarray, "*n d"], norm: nn.LayerNorm) -> Float[ndarray, "*n d"]:
    """(x - mean) / sqrt(var + eps) * weight + bias; the variance divides by d, not d - 1."""
    centred = x - x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    result: ndarray = centred / np.sqrt(variance + norm.eps) * float64(norm.weight) + float64(norm.bias)
    return result


def set_cells(
    trace: Trace, name: str, array: Float[ndarray, "..."], lead: tuple[int, ...] = ()
) -> Float[ndarray, "..."]:
    """`array` with the numbers that the trace's edit sets in tensor `name`.

    `lead` are the first indices of the tensor that `array` is the rest of: q of one head and query is
    `set_cells(trace, "encoder.0.self.q", q, (head, query))`.
    """
    cells = [] if trace.edit is None else trace.edit.cells_of(name)
    cells = [cell for cell in cells if cell.index[: len(lead)] == lead]
    if not cells:
        return array
    array = array.copy()
    for cell in cells:
        array[cell.index[len(lead) :]] = cell.value
    return array


def was_edited(trace: Trace, name: str, lead: tuple[int, ...] = ()) -> bool:
    """Whether a number of tensor `name` (with these first indices) was set by hand."""
    cells = [] if trace.edit is None else trace.edit.cells_of(name)
    return any(cell.index[: len(lead)] == lead for cell in cells)


def rescaled(trace: Trace, site: str) -> bool:
    """Whether the scores of `site` are divided by something else than sqrt(d_head)."""
    return trace.edit is not None and (site in trace.edit.unscaled or trace.edit.temperatures.get(site, 1.0) != 1.0)


@dataclass(frozen=True)
class Operands:
    """The numbers that `attention_steps` explains; each property is one line of the formula."""

    trace: Trace
    site: Site
    record: AttentionRecord
    head: int
    query: int

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
        return layer_norm(self.x_before, self.site.norm) if self.site.pre_norm else self.x_before

    @cached_property
    def source(self) -> Float[ndarray, "n_k d_model"]:
        rows = float64(self.trace.residual(self.site.source))
        normed = self.site.pre_norm and not self.site.is_cross  # the encoder's output comes as it is
        return layer_norm(rows, self.site.norm) if normed else rows

    # projections -----------------------------------------------------------------------------------------------

    def head_columns(self, linear: nn.Linear) -> tuple[Float[ndarray, "d_model d_head"], ndarray | None]:
        """This head's columns of a projection, as in x W + b (`nn.Linear` stores W transposed)."""
        own = slice(self.head * self.d_head, (self.head + 1) * self.d_head)
        return float64(linear.weight[own]).T, None if linear.bias is None else float64(linear.bias[own])

    def head_rows(self, linear: nn.Linear) -> Float[ndarray, "d_head d_model"]:
        """This head's rows of W_O, as in z W."""
        return float64(linear.weight[:, self.head * self.d_head : (self.head + 1) * self.d_head]).T

    def _project(self, rows: ndarray, linear: nn.Linear) -> ndarray:
        weight, bias = self.head_columns(linear)
        return rows @ weight if bias is None else rows @ weight + bias

    @cached_property
    def q(self) -> Float[ndarray, " d_head"]:
        q = self._project(self.x, self.site.attention.W_Q)
        return set_cells(self.trace, f"{self.site.name}.q", q, (self.head, self.query))

    @cached_property
    def k(self) -> Float[ndarray, "n_k d_head"]:
        k = self._project(self.source, self.site.attention.W_K)
        return set_cells(self.trace, f"{self.site.name}.k", k, (self.head,))

    @cached_property
    def v(self) -> Float[ndarray, "n_k d_head"]:
        v = self._project(self.source, self.site.attention.W_V)
        return set_cells(self.trace, f"{self.site.name}.v", v, (self.head,))

    # weights ---------------------------------------------------------------------------------------------------

    @cached_property
    def dots(self) -> Float[ndarray, " n_k"]:
        return self.k @ self.q

    @cached_property
    def scores(self) -> Float[ndarray, " n_k"]:
        return self.dots * self.record.scale

    @cached_property
    def bias_row(self) -> Float[ndarray, " n_k"] | None:
        if self.record.bias is None:
            return None
        of_head = self.record.bias[self.head % self.record.bias.shape[0]]
        return float64(of_head[self.query % of_head.shape[0]])

    @property
    def bias_code(self) -> str:
        """The mask's row, as code over the trace."""
        assert self.record.bias is not None
        h, n_q, _ = self.record.bias.shape
        return f'trace["{self.site.name}"].bias[{self.head % h}, {self.query % n_q}]'

    @cached_property
    def reasons(self) -> UInt8[ndarray, " n_k"]:
        row: ndarray = self.record.reason(self.head)[self.query].cpu().numpy()
        return row

    @cached_property
    def masked(self) -> Float[ndarray, " n_k"]:
        return self.scores if self.bias_row is None else self.scores + self.bias_row

    @property
    def blocked(self) -> Bool[ndarray, " n_k"]:
        return np.isneginf(self.masked)

    @property
    def top(self) -> float:
        return float(self.masked.max())

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
    def z(self) -> Float[ndarray, " d_head"]:
        return self.pattern @ self.v

    @cached_property
    def head_outs(self) -> Float[ndarray, "n_heads d_model"]:
        """What each head adds: z W_O restricted to the head's rows."""
        heads = [self if head == self.head else Operands(self.trace, self.site, self.record, head, self.query)
                 for head in range(self.record.n_heads)]  # fmt: skip
        return np.stack([other.z @ other.head_rows(self.site.attention.W_O) for other in heads])

    @cached_property
    def attn_out(self) -> Float[ndarray, " d_model"]:
        bias = self.site.attention.W_O.bias
        total: ndarray = self.head_outs.sum(0)
        return total if bias is None else total + float64(bias)

    @cached_property
    def added(self) -> Float[ndarray, " d_model"]:
        return self.x_before + self.attn_out

    @cached_property
    def after(self) -> Float[ndarray, " d_model"]:
        after = self.added if self.site.pre_norm else layer_norm(self.added, self.site.norm)
        return set_cells(self.trace, self.site.after, after, (self.query,))


def gather(checkpoint: Checkpoint, trace: Trace, site: str, head: int, query: int) -> Operands:
    """The operands of one head and query.

    Raises:
        TraceError: no such site, head or query.
    """
    place = find_site(checkpoint, trace, site)
    record = trace[site]
    record.scores(head)  # raises where there is no such head
    n_q = int(record.q.shape[1])
    if not 0 <= query < n_q:
        raise TraceError(N_("There is no query {query} at {site}: choose 0 to {last}.", query=query, site=site,
                            last=n_q - 1))  # fmt: skip
    return Operands(trace, place, record, head, query)
