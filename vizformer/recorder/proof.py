"""The proof of one row of a drawn map: its product with v must be the model's own z."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.recorder.form import row_of

if TYPE_CHECKING:
    from vizformer.recorder.recorded_trace import RecordedAttention

EXACT = {torch.float64: 1e-6, torch.float32: 1e-4, torch.bfloat16: 4e-2, torch.float16: 1e-2}
"""The tolerance of a recomputed z, as a share of its largest number, and of a weight."""


@dataclass(frozen=True)
class RowProof:
    """The proof of one query's row in one head.

    Attributes:
        weights: the largest difference between the row and softmax(scale q_i k^T + ...) in float64; None if the map is no
            softmax of scaled products, or if its form was not computed.
        z: the largest difference between row @ v in float64 and the z that the model had, as a part of the largest number
            of that z.
        bound: the tolerance of both in the model's precision.
    """

    site: str
    head: int
    query: int
    weights: float | None
    z: float
    bound: float

    @property
    def holds(self) -> bool:
        return self.z <= self.bound and (self.weights is None or self.weights <= self.bound)

    @property
    def said(self) -> Message:
        """The result in words."""
        if self.holds:
            return N_(
                "row {query} of head {head} at {site}, computed again, is the model's",
                query=self.query,
                head=self.head,
                site=self.site,
            )
        return N_(
            "row {query} of head {head} at {site}, computed again, is not the model's: the map is not what it computed",
            query=self.query,
            head=self.head,
            site=self.site,
        )


def prove_row(attention: "RecordedAttention", head: int, query: int = -1, row: Tensor | None = None) -> RowProof:
    """Compares a row [n_k] of a head's map with the model: its product with v must be the model's own z.

    If the form of the call is known (`RecordedAttention.forms`), the row is also compared with its softmax.

    Args:
        query: counted from 0; -1 is the last one.
        row: the drawn row; default: that of the recorded map.

    Raises:
        TraceError: no such head or query.
    """
    attention.check(head)
    n_q = attention.n_q
    if not -n_q <= query < n_q:
        raise TraceError("There is no query {query}: choose 0 to {last}.", query=query, last=n_q - 1)
    number, at = attention._where[head]
    query, step, own = query % n_q, 0, query % n_q
    while own >= attention.steps[step][0].n_q:
        own -= attention.steps[step][0].n_q
        step += 1
    call = attention.steps[step][number]
    form = attention.forms[step][number] if "forms" in vars(attention) else None
    z, where = call.z, call.v.where(call.lead)
    assert z is not None
    row = call.maps(at=at)[0, own] if row is None else row[: call.v.part.n]
    row, model = row.double().cpu(), z[at, own].double().cpu()
    again = None if form is None else row_of(form, call, at, own)
    weights = None if again is None else float((again.cpu() - row).abs().max())
    if where is None:
        return RowProof(attention.site, head, query, weights, float("inf"), EXACT.get(z.dtype, 1e-4))
    mixed = row @ call.v.flat()[int(where.reshape(-1)[at])].double().cpu()
    there = model.isfinite() & mixed.isfinite()
    error = float((mixed - model)[there].abs().max()) if bool(there.any()) else 0.0
    largest = max(1e-3, float(z[at].abs().nan_to_num(0.0, 0.0, 0.0).max()))
    return RowProof(attention.site, head, query, weights, error / largest, EXACT.get(z.dtype, 1e-4))


def unproved(attention: "RecordedAttention") -> Message | None:
    """The message about the first head whose last row is not the model's; None if the last rows of all heads are proved.

    Every drawn map is checked by this: the rows are those of the form if the app draws from it
    (`RecordedAttention.forms`), else those of the calls that ran.
    """
    query = attention.n_q - 1
    whole = [
        call.maps() if form is None else None
        for call, form in zip(attention.steps[-1], attention.forms[-1], strict=True)
    ]
    for head, (number, at) in enumerate(attention._where):
        call, form, maps = attention.steps[-1][number], attention.forms[-1][number], whole[number]
        row = maps[at, -1] if maps is not None else None if form is None else row_of(form, call, at, call.n_q - 1)
        proof = prove_row(attention, head, query, row)
        if not proof.holds:
            return proof.said
    return None
