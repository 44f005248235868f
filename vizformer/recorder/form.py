"""The formula of an attention map, found by trying numbers and proved by the map that the model computes.

    weights = softmax(cap(scale * q k^T) + added, -inf where blocked [, sink])

The calls between the product and the softmax are run again with other numbers in the place of q k^T: 0 gives what is added,
a small number the scale, a huge one the cap.  A form counts only where it gives the map of the model's own calls, to 1e-5
(to 5e-5 in float32, where the map has more than 4 million weights).  What a fused call adds and multiplies by, its arguments
say.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.recorder.calls import Call
from vizformer.recorder.chain import Node, in_order, replay

if TYPE_CHECKING:
    from vizformer.recorder.recorded_trace import RecordedAttention

_BLOCKS = -1e4
"""An added number of at most this much blocks a score."""

_SMALL, _HUGE = 1e-3, 1e8
_SAME, _SAME_SINGLE = 1e-5, 5e-5  # the tolerance of weights in float64 and in float32
_FEW = 4_000_000  # the most weights of a call that are compared in float64
_ROWS = 48  # the number of queries from which scale and cap are found

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


@dataclass(frozen=True, eq=False)
class Form:
    """The formula of one attention call, in float64.

    Attributes:
        scale: the factor of q k^T, [batch and heads].
        cap: the soft cap of the scores; None: there is none.
        added: the bias of the scores, [batch and heads or 1, n_q, n_k], or None.
        blocked: bool, [batch and heads or 1, n_q, n_k], or None.
        sinks: the score of one more column, [batch and heads], or None.
    """

    scale: Tensor
    cap: float | None
    added: Tensor | None
    blocked: Tensor | None
    sinks: Tensor | None

    def scores(self, product: Tensor, at: slice = slice(None)) -> Tensor:
        """cap(scale * q k^T) + added, [batch and heads, n_q, n_k]: the scores before the mask."""
        scores = product * self.scale[at, None, None].to(product.device)
        if self.cap is not None:
            scores = self.cap * torch.tanh(scores / self.cap)
        return scores if self.added is None else scores + _of(self.added, at).to(product.device)

    def single(self) -> "Form":
        """This form in float32."""
        numbers = (None if x is None else x.float() for x in (self.scale, self.added, self.sinks))
        scale, added, sinks = numbers
        assert scale is not None
        return Form(scale, self.cap, added, self.blocked, sinks)

    def weights(self, product: Tensor, at: slice = slice(None)) -> Tensor:
        scores = self.scores(product, at)
        if self.blocked is not None:
            scores = scores.masked_fill(_of(self.blocked, at).to(product.device), -torch.inf)
        if self.sinks is None:
            return torch.softmax(scores, -1).nan_to_num(0.0)
        sink = self.sinks[at, None, None].to(product.device).expand(*scores.shape[:2], 1)
        return torch.softmax(torch.cat([scores, sink], -1), -1)[..., :-1]


def _of(x: Tensor, at: slice) -> Tensor:
    return x if len(x) == 1 else x[at]


def products_of(call: Call) -> Tensor | None:
    """q k^T of a call, [batch and heads, n_q, n_k]; None if it is not known which rows belong together."""
    q, k = (None if one is None else one.rows(call.lead) for one in (call.q, call.k))
    if q is None or k is None or q.shape[-1] != k.shape[-1]:
        return None
    return q.double() @ k.double().mT


def row_of(form: Form, call: Call, at: int, query: int) -> Tensor | None:
    """The weights [n_k] of one query of one of batch and heads; None if it is not known which rows belong together."""
    q, k = (None if one is None else one.rows(call.lead, at) for one in (call.q, call.k))
    if q is None or k is None or q.shape[-1] != k.shape[-1]:
        return None
    rows = slice(query, query + 1)
    added, blocked = (
        None if x is None else x[0 if len(x) == 1 else at][None, rows] for x in (form.added, form.blocked)
    )
    sinks = None if form.sinks is None else form.sinks[at : at + 1]
    return Form(form.scale[at : at + 1], form.cap, added, blocked, sinks).weights(
        (q[rows].double() @ k.double().mT)[None]
    )[0, 0]


def form_of(call: Call) -> Form | None:
    """The form of a call; None if it has none, or if the form is not proved."""
    if call.node is None:
        return None if call.q is None or call.k is None else _of_sdpa(call)
    product = products_of(call)
    found = None if product is None else _of_chain(call, product)
    if found is None or product is None:
        return None
    # in float32 where float64 takes seconds: its error in a softmax over scores up to 20 is about 1e-6
    few = product.numel() <= _FEW
    weights = call.maps(torch.float64 if few else torch.float32).nan_to_num_(0.0)
    if weights.shape != product.shape:
        return None
    off = found.weights(product) if few else found.single().weights(product.float())
    return found if bool(off.sub_(weights).abs_().max() <= (_SAME if few else _SAME_SINGLE)) else None


def _of_sdpa(call: Call) -> Form | None:
    """The form of a fused call, as its arguments say it. None if all keys of a row are blocked by a finite number: beside
    it the scores are lost in the model's precision, so that the weights are equal.
    """
    assert call.q is not None
    shape = torch.Size((call.n_q, call.v.part.n))
    scale = call.options.get("scale")
    d = call.q.part.tensor.shape[call.q.labels.index(call.q.column)]
    n = torch.Size(call.lead).numel()
    every = torch.full(
        (n,), d**-0.5 if scale is None else float(scale), dtype=torch.float64, device=call.q.part.tensor.device
    )
    added = call.added(shape, torch.float64)
    if added is not None and bool(((added <= _BLOCKS).all(-1) & added.isfinite().any(-1)).any()):
        return None
    return Form(every, None, *_split(added), None)


def _of_chain(call: Call, product: Tensor) -> Form | None:
    assert call.node is not None
    nodes = in_order(call.node)
    normal = [one for one in nodes if one.name in ("softmax", "exp") and all(b.normal is None for b in one.before)]
    best = call.best
    if len(normal) != 1 or best is None or len(normal[0].before) != 1:
        return None
    entry = normal[0].before[0]
    some = torch.linspace(0, product.shape[1] - 1, min(product.shape[1], _ROWS)).long()

    def tried(value: float) -> tuple[Tensor, Tensor | None] | None:
        given = _added(best, torch.full(best.shape, value, dtype=torch.float64, device=product.device))
        found = _placed(call, replay(entry, torch.float64, {best: given}), product.shape)
        return found if value == 0 or found is None else (found[0][:, some], found[1])

    parts = [tried(value) for value in (0.0, _SMALL, _HUGE)]
    if any(part is None for part in parts):
        return None
    (zero, sinks), (small, _), (huge, _) = parts  # type: ignore[misc]
    if sinks is not None:
        shift = sinks - sinks[:, :1]  # what was subtracted from each row, such as its largest score
        zero, small, huge, sinks = zero - shift, small - shift[:, some], huge - shift[:, some], sinks[:, 0, 0]
    rows = zero[:, some]
    open_ = rows > _BLOCKS
    slope = torch.where(open_, (small - rows) / _SMALL, torch.nan)
    scale = slope.flatten(1).nanmedian(1).values.nan_to_num(1.0)
    if not torch.allclose(slope[open_], scale[:, None, None].expand_as(slope)[open_], rtol=1e-4, atol=1e-9):
        return None
    reach = (huge - rows)[open_]
    cap = float(reach.median()) if reach.numel() and float(reach.median()) < 0.5 * _HUGE * float(scale.max()) else None
    return Form(scale, cap, *_split(zero), sinks)


def _added(best: Node, product: Tensor) -> Tensor:
    """The result of a product's call, given the product alone: baddbmm adds a tensor to it."""
    if best.name != "baddbmm":
        return product
    added = best.kwargs.get("input", best.args[0] if best.args else None)
    beta, alpha = best.kwargs.get("beta", 1), best.kwargs.get("alpha", 1)
    product = alpha * product
    return product if beta == 0 else product + beta * added.tensor.to(product)


def _placed(call: Call, scores: Tensor, shape: torch.Size) -> tuple[Tensor, Tensor | None] | None:
    """Scores as [batch and heads, n_q, n_k], and the column that follows them, if there is one."""
    assert call.layout is not None
    n_k = shape[-1]
    if scores.dim() == len(call.layout.p):
        scores = call.layout.of_p(scores)
    if scores.shape[-2] != shape[-2] or scores.shape[-1] not in (n_k, n_k + 1):
        return None
    scores = scores.reshape(-1, *scores.shape[-2:])
    if len(scores) != shape[0]:
        return None
    return scores[..., :n_k], scores[..., n_k:] if scores.shape[-1] > n_k else None


def _split(added: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The added numbers and the blocked cells, each with one entry if it is the same for all heads."""
    if added is None:
        return None, None
    blocked = added <= _BLOCKS
    added = added.masked_fill(blocked, 0.0)
    return _once(added) if bool(added.any()) else None, _once(blocked) if bool(blocked.any()) else None


def _once(x: Tensor) -> Tensor:
    return x[:1] if torch.equal(x, x[:1].expand_as(x)) else x


# The proof of one row of a drawn map: its product with v must be the model's own z.
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
    z, v = call.z, call.v.rows(call.lead, at)
    assert z is not None
    row = call.maps(at=at)[0, own] if row is None else row[: call.v.part.n]
    row, model = row.double().cpu(), z[at, own].double().cpu()
    again = None if form is None else row_of(form, call, at, own)
    weights = None if again is None else float((again.cpu() - row).abs().max())
    error, largest = float("inf"), max(1e-3, float(z[at].abs().nan_to_num(0.0, 0.0, 0.0).max()))
    if v is not None:
        mixed = row @ v.double().cpu()
        there = model.isfinite() & mixed.isfinite()
        error = float((mixed - model)[there].abs().max()) if bool(there.any()) else 0.0
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
