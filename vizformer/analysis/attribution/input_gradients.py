"""Which tokens of the input a logit depends on, by gradients.

f(E) is a logit as a function of the rows that the tokens have in the table of embeddings, E [n, d_model]; positions stay.

    gradient x input        (df/dE_i) . E_i                        how f would change, were a row a little longer
    integrated gradients    (E_i - B_i) . int_0^1 df/dE_i (B + a (E - B)) da

B is the baseline, the mean row of the table for every token: a text that says nothing.  Completeness: the integrated
gradients sum to f(E) - f(B); the integral is a weighted sum over points of [0, 1] (Gauss-Legendre), whose number grows until
the sum comes close, and what is missing is said.

Source: Simonyan et al. 2013, "Deep Inside Convolutional Networks"; Sundararajan et al. 2017, "Axiomatic Attribution for Deep
Networks" (completeness: proposition 1).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.attribution.terms import Against
from vizformer.analysis.frames import frame
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model.input_check import row_at, token_id
from vizformer.model.trace import Trace
from vizformer.recorder.form import EXACT

POINTS = (16, 32, 64, 128)
"""Numbers of points of the integral; the next one is tried while the error exceeds the share CLOSE of f(E) - f(B)."""
CLOSE = 0.01
AT_ONCE = 4096  # tokens of one forward of ours with its gradients; somebody's own code runs for one text at a time


@dataclass(frozen=True)
class InputAttribution:
    """The attribution of a logit to every token of the input.

    Attributes:
        gradient_x_input: stack -> one number for each of its tokens.
        integrated: integrated gradients, by stack and token in the same way.
    """

    position: int
    token: int
    against: Against
    gradient_x_input: dict[str, Float[ndarray, " n"]]
    integrated: dict[str, Float[ndarray, " n"]]
    value: float
    baseline: float
    points: int

    def to_frame(self) -> Any:
        """A DataFrame: a row for each token of each stack."""
        return frame(
            {"stack": stack, "row": row, "gradient_x_input": gradient, "integrated": integrated}
            for stack, values in self.gradient_x_input.items()
            for row, (gradient, integrated) in enumerate(zip(values, self.integrated[stack], strict=True))
        )

    @property
    def missing(self) -> float:
        """f(E) - f(B) less the sum of the integrated gradients: the error of the integral."""
        return self.value - self.baseline - float(sum(each.sum() for each in self.integrated.values()))

    @property
    def share_missing(self) -> float:
        """|missing| / |f(E) - f(B)|."""
        return abs(self.missing) / max(abs(self.value - self.baseline), 1e-9)


def input_attribution(
    checkpoint: AnyCheckpoint, trace: Trace, position: int, token: int, *, against: Against = "mean"
) -> InputAttribution:
    """Both attributions of one token's logit at one position of the stack that predicts.

    Numbers set by hand in the trace are not part of it: it is the model as it is.
    """
    n, vocab = trace.logits.shape
    position, token = row_at(position, n), token_id(token, vocab)
    if against is not None and against != "mean":
        against = token_id(against, vocab)
    rows, origin = starts(checkpoint, trace)

    def logit(given: dict[str, Tensor]) -> Float[Tensor, " b"]:
        logits = checkpoint.logits_of(trace, given, position)  # [b, vocab]
        other = 0.0 if against is None else logits.mean(-1) if against == "mean" else logits[:, against]
        return logits[:, token] - other

    value, gradient = _gradient(logit, rows)
    own = trace.logits[position].double()
    if trace.edit is None and not checkpoint.is_own and not _same(value[0], own, token, against, trace.logits.dtype):
        raise TraceError(
            "With its own embeddings put in by hand the model gives another logit: its gradients are not known."
        )
    multiplied = {stack: (gradient[stack] * rows[stack])[0].sum(-1) for stack in rows}
    before = float(_gradient(logit, origin)[0][0])
    difference, points = float(value[0]) - before, POINTS[0]
    summed: dict[str, Tensor] = {}
    for points in POINTS:
        summed = _integral(logit, rows, origin, points, AT_ONCE if checkpoint.is_own else 1)
        if abs(difference - sum(float(each.sum()) for each in summed.values())) <= CLOSE * abs(difference):
            break
    return InputAttribution(
        position, token, against, _arrays(multiplied), _arrays(summed), float(value[0]), before, points
    )


def starts(checkpoint: AnyCheckpoint, trace: Trace) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The embedding rows of each stack's tokens, and the baseline rows, each [1, n, d_model]."""
    rows, origin = {}, {}
    for stack, (own, table) in checkpoint.embeddings(trace).items():
        mean = table.mean(0, dtype=torch.float64).to(table.dtype)
        rows[stack], origin[stack] = own, mean.to(own).expand(1, own.shape[1], -1).clone()
    return rows, origin


def _gradient(
    logit: Callable[[dict[str, Tensor]], Tensor], rows: dict[str, Tensor]
) -> tuple[Float[Tensor, " b"], dict[str, Tensor]]:
    """f of every batch item, and the gradient of each by its rows."""
    with torch.inference_mode(False), torch.enable_grad():
        given = {stack: each.detach().clone().requires_grad_() for stack, each in rows.items()}
        values = logit(given)
        if not values.requires_grad:
            raise TraceError("No gradient comes to the embeddings: the model's own code keeps none.")
        found = torch.autograd.grad(values.sum(), list(given.values()))
    return values.detach().double(), dict(zip(given, (one.double() for one in found), strict=True))


def _integral(
    logit: Callable[[dict[str, Tensor]], Tensor],
    rows: dict[str, Tensor],
    origin: dict[str, Tensor],
    points: int,
    tokens: int,
) -> dict[str, Float[Tensor, " n"]]:
    """The integrated gradients by Gauss-Legendre with so many points, at most `tokens` in a forward."""
    places, weights = np.polynomial.legendre.leggauss(points)  # on [-1, 1]
    at_once = max(1, tokens // sum(each.shape[1] for each in rows.values()))
    mean = {stack: torch.zeros_like(each[0], dtype=torch.float64) for stack, each in rows.items()}
    for first in range(0, points, at_once):
        part = slice(first, first + at_once)
        like = next(iter(rows.values()))
        a = torch.from_numpy((places[part] + 1) / 2).to(like)[:, None, None]
        __, gradient = _gradient(logit, {s: origin[s] + a * (rows[s] - origin[s]) for s in rows})
        w = torch.from_numpy(weights[part] / 2).to(like.device)[:, None, None]
        for stack in rows:
            mean[stack] += (w * gradient[stack]).sum(0)
    return {stack: (mean[stack] * (rows[stack] - origin[stack])[0].double()).sum(-1) for stack in rows}


def _same(value: Tensor, own: Tensor, token: int, against: Against, dtype: torch.dtype) -> bool:
    other = 0.0 if against is None else own.mean() if against == "mean" else own[against]
    bound = EXACT.get(dtype, 1e-4) * max(1.0, float(own.abs().max()))
    return abs(float(value) - float(own[token] - other)) <= bound


def _arrays(found: dict[str, Tensor]) -> dict[str, Float[ndarray, " n"]]:
    return {stack: each.cpu().numpy() for stack, each in found.items()}
