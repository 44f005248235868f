"""What the sublayers of a layer have in common: where they stand, and add & norm around them, over all positions."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from vizformer.explain import latex, norms
from vizformer.explain.arrays import float64, set_cells, stored
from vizformer.explain.norms import normalise
from vizformer.explain.proof_anchors import recorded
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Axis, Operand, Proof, Step
from vizformer.messages import N_
from vizformer.model.norm import Norm
from vizformer.model.trace import Trace

ROWS: tuple[Axis, ...] = ("queries", "features")
MAPS: tuple[Axis, ...] = ("heads", "queries", "keys")


@dataclass(frozen=True)
class Sublayer:
    """Where a sublayer stands: the residual stream before and after it.

    `enters` is what goes into the sublayer, where that is not what its result is added to (parallel layers).
    """

    trace: Trace
    pre_norm: bool
    kind: str
    before: str
    after: str
    enters: str = ""

    @property
    def entering(self) -> str:
        """The name of the residual stream that goes into the sublayer."""
        return self.enters or self.before

    @property
    def entering_rows(self) -> Float[ndarray, "n d_model"]:
        return float64(self.trace.residual(self.entering))

    @property
    def x(self) -> Float[ndarray, "n d_model"]:
        return float64(self.trace.residual(self.before))

    @property
    def dtype(self) -> torch.dtype:
        """What the model computes in."""
        return self.trace.residual(self.before).dtype

    def proof(self, norm: Norm, out: ndarray) -> Proof:
        """The sublayer's output, added (and normalised), against the residual stream that was recorded after it."""
        terms = np.maximum(np.abs(self.x), np.abs(out)) if self.pre_norm else 0.0
        after = after_sublayer(self, norm, out)
        return Proof.compare(recorded(self.after), after, self.trace.residual(self.after), terms=terms)

    def key(self, name: str) -> str:
        return f"{self.kind}.{name}"


def add_and_norm(at: Sublayer, norm: Norm, out: ndarray) -> list[Step]:
    added = stored(at.x + out, at.dtype)
    proof = at.proof(norm, out)
    through = replace(proof, direct=False)
    steps = [
        Step(
            at.key("add"),
            N_("Add to the residual stream"),
            N_(
                "What the sublayer found is added to what was there, and stays added: the layers that follow read this sum."
            )
            if at.pre_norm
            else N_(
                "What the sublayer found is added to what was there. This model is post-norm: the norm that follows rewrites "
                "the sum, and the layers that follow read what it leaves."
            ),
            r"Y = X + O",
            rf"Y_{{0,0}} = {latex.number(at.x[0, 0])} + {latex.factor(out[0, 0])} = {latex.number(added[0, 0])}",
            (Operand("X", N_("the residual stream before"), at.x, ROWS),),
            "Y",
            added,
            "added = residual + out" + ("\nx = added" if at.pre_norm else ""),
            "added",
            proof if at.pre_norm else through,
            axes=ROWS,
            inputs={"residual": at.trace.residual(at.before)},
        )
    ]
    if not at.pre_norm:
        steps += _norm_steps(at, norm, added, proof, "added", {})
    return steps


def norm_before(at: Sublayer, norm: Norm, proof: Proof) -> Step:
    """Pre-norm: the row is normalised on its way in; `proof` is that of what is computed from it."""
    entering = {"residual": at.trace.residual(at.entering)}
    step = _norm_steps(at, norm, at.entering_rows, proof, "residual", entering)[-1]
    if not at.enters:
        return step
    return replace(
        step,
        text=N_(
            "{text} This is a parallel layer: like attention it reads {name}, not what attention has added.",
            text=step.text,
            name=in_words(at.enters),
        ),
    )


def _norm_steps(
    at: Sublayer, norm: Norm, rows: ndarray, proof: Proof, argument: str, inputs: dict[str, Tensor]
) -> list[Step]:
    """Mean and variance of each row (RMSNorm: the mean square), then the normalised rows.

    `argument` is what the rows are called in code; `inputs` holds them where no step has made them.
    """
    through = replace(proof, direct=False)
    result = normalise(rows, norm)
    if proof.direct:
        result = set_cells(at.trace, at.after, result)
    scaled = (
        N_("Each number over its row's root mean square, then scaled.")
        if norms.is_rms(norm)
        else N_("Each number minus its row's mean, over the row's standard deviation, then scaled and shifted.")
    )
    return [
        *(replace(step, inputs=inputs) for step in _moments(at, norm, rows, argument, through)),
        Step(
            at.key("norm"),
            N_("Normalise, 2: divide, scale") if norms.is_rms(norm) else N_("Normalise, 3: shift, divide, scale"),
            scaled,
            norms.formula(norm, "X'", "Y"),
            norms.live("X'_{0,0}", rows[0], norm, result[0, 0]),
            norms.operands(norm),
            "X'",
            result,
            norms.code(norm, "x", argument),
            "x",
            proof,
            axes=ROWS,
            inputs=inputs | norms.inputs(norm),
        ),
    ]


def _moments(at: Sublayer, norm: Norm, rows: ndarray, argument: str, through: Proof) -> list[Step]:
    if norms.is_rms(norm):
        square: ndarray = (rows**2).mean(-1)
        return [
            Step(
                at.key("square"),
                N_("Normalise, 1: the mean square of each row"),
                N_("RMSNorm looks at one row at a time and does not shift it: there is no mean to take away."),
                r"\rho_i = \frac{1}{d} \sum_m Y_{i,m}^2",
                rf"\rho_0 = \frac{{{latex.sum_of(rows[0] ** 2)}}}{{{rows.shape[1]}}} = {latex.number(square[0])}",
                (),
                r"\rho",
                square,
                f"square = ({argument} ** 2).mean(-1)",
                "square",
                through,
                axes=("queries",),
            )
        ]
    by_hand = norms.is_deviation(norm)
    mean, variance = rows.mean(-1), rows.var(-1, ddof=1 if by_hand else 0)
    divisor, n = ("d - 1", rows.shape[1] - 1) if by_hand else ("d", rows.shape[1])
    return [
        Step(
            at.key("mean"),
            N_("Normalise, 1: the mean of each row"),
            N_("LayerNorm looks at one row at a time."),
            r"\mu_i = \frac{1}{d} \sum_m Y_{i,m}",
            rf"\mu_0 = \frac{{{latex.sum_of(rows[0])}}}{{{rows.shape[1]}}} = {latex.number(mean[0])}",
            (),
            r"\mu",
            mean,
            f"mean = {argument}.mean(-1)",
            "mean",
            through,
            axes=("queries",),
        ),
        Step(
            at.key("variance"),
            N_("Normalise, 2: the variance of each row"),
            N_("The sum of the squared distances from the mean, divided by d - 1: this norm was written by hand.")
            if by_hand
            else N_("The mean of the squared distances from the mean, divided by d, not d - 1."),
            rf"\sigma_i^2 = \frac{{1}}{{{divisor}}} \sum_m (Y_{{i,m}} - \mu_i)^2",
            rf"\sigma_0^2 = \frac{{{latex.sum_of((rows[0] - mean[0]) ** 2)}}}{{{n}}} = {latex.number(variance[0])}",
            (),
            r"\sigma^2",
            variance,
            f"variance = {argument}.var(-1, correction={1 if by_hand else 0})",
            "variance",
            through,
            axes=("queries",),
        ),
    ]


def after_sublayer(at: Sublayer, norm: Norm, out: ndarray) -> Float[ndarray, "n d_model"]:
    added = stored(at.x + out, at.dtype)
    after = added if at.pre_norm else normalise(added, norm)
    return set_cells(at.trace, at.after, after)


def entry(letter: str, row: ndarray, column: ndarray, add: float, result: float) -> str:
    return rf"{letter}_{{0,0}} = {latex.sum_of_products(row, column, float(add))} = {latex.number(result)}"


def linear_inputs(linear: nn.Linear, letter: str) -> dict[str, Tensor]:
    """A matrix, as in x W + b, and its bias, as the code of a step names them."""
    found = {f"W_{letter}": linear.weight.detach().T}
    return found if linear.bias is None else found | {f"b_{letter}": linear.bias.detach()}


def linear_code(linear: nn.Linear, letter: str) -> str:
    """The product with it, as in f"{variable} = {rows}{linear_code(...)}"."""
    return f" @ W_{letter}" + ("" if linear.bias is None else f" + b_{letter}")


def bias_of(linear: nn.Linear) -> Float[ndarray, " d"]:
    return np.zeros(linear.out_features) if linear.bias is None else float64(linear.bias)
