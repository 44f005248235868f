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
from vizformer.model.input_check import row_at, token_id
from vizformer.model.trace import Trace

POINTS = (16, 32, 64, 128)
"""Points of the integral: the next number is tried while the sum is off by more than CLOSE of the difference."""
CLOSE = 0.01
AT_ONCE = 4096  # tokens of one forward with its gradients


@dataclass(frozen=True)
class InputAttribution:
    """What every token of the input adds to a logit.

    Attributes:
        gradient_x_input: stack -> one number for each of its tokens.
        integrated: likewise.
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
        """What the integrated gradients lack to f(E) - f(B)."""
        return self.value - self.baseline - float(sum(each.sum() for each in self.integrated.values()))

    @property
    def share_missing(self) -> float:
        """The same as a share of f(E) - f(B)."""
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
    rows, origin = _rows(checkpoint, trace), _baselines(checkpoint, trace)

    def logit(given: dict[str, Tensor]) -> Float[Tensor, " b"]:
        logits = forward(checkpoint, trace, given, position)  # [b, vocab]
        other = 0.0 if against is None else logits.mean(-1) if against == "mean" else logits[:, against]
        return logits[:, token] - other

    value, gradient = _gradient(logit, rows)
    multiplied = {stack: (gradient[stack] * rows[stack])[0].sum(-1) for stack in rows}
    before = float(_gradient(logit, origin)[0][0])
    difference, points = float(value[0]) - before, POINTS[0]
    summed: dict[str, Tensor] = {}
    for points in POINTS:
        summed = _integral(logit, rows, origin, points)
        if abs(difference - sum(float(each.sum()) for each in summed.values())) <= CLOSE * abs(difference):
            break
    return InputAttribution(
        position, token, against, _arrays(multiplied), _arrays(summed), float(value[0]), before, points
    )


def forward(
    checkpoint: AnyCheckpoint, trace: Trace, rows: dict[str, Float[Tensor, "b n d_model"]], position: int
) -> Float[Tensor, "b vocab_size"]:
    """The logits of one position for rows of the tables of embeddings, or others in their place, of every stack."""
    model, memory = checkpoint.model, None
    first = next(iter(rows))
    ids = {stack: checkpoint.tensor(tokens).expand(len(rows[first]), -1) for stack, tokens in trace.tokens.items()}
    segments = checkpoint.segments(trace.tokens[first])
    segments = None if segments is None else segments.expand(len(rows[first]), -1)
    x = rows[first]
    if model.encoder is not None:
        run = model.forward_pass("encoder", ids["encoder"])
        x = memory = model.encoder(model.place(rows["encoder"], segments=segments, stack="encoder"), run)
    if model.decoder is not None:
        own = segments if memory is None else None
        run = model.forward_pass("decoder", ids["decoder"], memory=memory)
        x = model.decoder(model.place(rows["decoder"], segments=own, stack="decoder"), run)
    return model.logits(x[:, position])


def _rows(checkpoint: AnyCheckpoint, trace: Trace) -> dict[str, Float[Tensor, "1 n d_model"]]:
    return {
        stack: checkpoint.model.token_table(stack)(checkpoint.tensor(tokens)).detach().clone()  # type: ignore[arg-type]
        for stack, tokens in trace.tokens.items()
    }


def _baselines(checkpoint: AnyCheckpoint, trace: Trace) -> dict[str, Float[Tensor, "1 n d_model"]]:
    found = {}
    for stack, tokens in trace.tokens.items():
        table = checkpoint.model.token_table(stack).weight  # type: ignore[arg-type]
        mean = table.mean(0, dtype=torch.float64).to(table.dtype)
        found[stack] = mean.expand(1, len(tokens), -1).clone()
    return found


def _gradient(
    logit: Callable[[dict[str, Tensor]], Tensor], rows: dict[str, Tensor]
) -> tuple[Float[Tensor, " b"], dict[str, Tensor]]:
    """f of every batch item, and the gradient of each by its rows."""
    with torch.inference_mode(False), torch.enable_grad():
        given = {stack: each.detach().clone().requires_grad_() for stack, each in rows.items()}
        values = logit(given)
        found = torch.autograd.grad(values.sum(), list(given.values()))
    return values.detach().double(), dict(zip(given, (one.double() for one in found), strict=True))


def _integral(
    logit: Callable[[dict[str, Tensor]], Tensor], rows: dict[str, Tensor], origin: dict[str, Tensor], points: int
) -> dict[str, Float[Tensor, " n"]]:
    """The integrated gradients by Gauss-Legendre with so many points."""
    places, weights = np.polynomial.legendre.leggauss(points)  # on [-1, 1]
    at_once = max(1, AT_ONCE // sum(each.shape[1] for each in rows.values()))
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


def _arrays(found: dict[str, Tensor]) -> dict[str, Float[ndarray, " n"]]:
    return {stack: each.cpu().numpy() for stack, each in found.items()}
