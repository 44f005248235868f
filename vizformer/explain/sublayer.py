"""The steps that all sublayers share: the residual stream before and after them, and add & norm, over all positions."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from vizformer.explain import latex, norms
from vizformer.explain.arrays import float64, set_cells, stored
from vizformer.explain.norms import added_sizes, normalise, through
from vizformer.explain.proof_anchors import recorded
from vizformer.explain.step import Axis, Contraction, Maker, Operand, Proof, Step
from vizformer.messages import N_
from vizformer.model.norms import Around, Norm
from vizformer.model.trace import Trace

ROWS: tuple[Axis, ...] = ("queries", "features")
ADD_TITLE = N_("Add to the residual stream")
REPLACE_TITLE = N_("Replace the residual stream")
REPLACE_TEXT = N_(
    "This model has no residual connections: the output of the sublayer replaces the row, and nothing of "
    "the row before goes on."
)
MAPS: tuple[Axis, ...] = ("heads", "queries", "keys")


@dataclass(frozen=True)
class Sublayer:
    """A sublayer's place: the points of the residual stream before and after it, and the norms around it."""

    trace: Trace
    around: Around
    kind: str
    before: str
    after: str

    @property
    def read(self) -> Float[ndarray, "n d_model"]:
        """The input of the sublayer's function: x, in a pre-norm model normalised."""
        return through(self.x, self.around.before)

    @property
    def x(self) -> Float[ndarray, "n d_model"]:
        return float64(self.trace.residual(self.before))

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the model computes."""
        return self.trace.residual(self.before).dtype

    def proof(self, out: ndarray) -> Proof:
        """The sublayer's output, added (and normalised), against the residual stream that was recorded after it."""
        terms = added_sizes(self.around, self.x, out)
        after = after_sublayer(self, out)
        return Proof.compare(recorded(self.after), after, self.trace.residual(self.after), terms=terms)

    def key(self, name: str) -> str:
        return f"{self.kind}.{name}"

    def maker(self, proof: Proof, axes: tuple[Axis, ...] = ROWS) -> Maker:
        """A `Maker` of this sublayer's steps."""
        return Maker(self.key(""), proof, axes)


def add_and_norm(at: Sublayer, out: ndarray) -> list[Step]:
    """The steps of add & norm: the sublayer's output added to the stream, then the norm of the sum."""
    after = at.around.after
    added = stored(at.around.onto(at.x, out), at.dtype)
    proof = at.proof(out)
    indirect = replace(proof, direct=False)
    steps: list[Step] = []
    adds = at.around.adds
    steps.append(
        Step(
            at.key("add"),
            ADD_TITLE if adds else REPLACE_TITLE,
            REPLACE_TEXT
            if not adds
            else N_(
                "The output of the sublayer is added to the residual stream and stays there: the layers "
                "that follow read this sum."
            )
            if after is None
            else N_(
                "The output of the sublayer is added to the residual stream. This model is post-norm: "
                "the norm that follows rewrites the sum, and the layers that follow read its output."
            ),
            "Y = X + O" if adds else "Y = O",
            r"Y_{0,0} = "
            + (f"{latex.number(at.x[0, 0])} + {latex.factor(out[0, 0])} = " if adds else "")
            + latex.number(added[0, 0]),
            "Y",
            added,
            ("added = residual + out" if adds else "added = out") + ("\nx = added" if after is None else ""),
            proof if after is None else indirect,
            operands=(Operand("X", N_("the residual stream before"), at.x, ROWS),) if adds else (),
            variable="added",
            axes=ROWS,
            inputs={"residual": torch.from_numpy(at.x).to(at.trace.residual(at.before))} if adds else {},
        )
    )
    if after is not None:
        steps += _norm_steps(at, after, added, proof, "added", {})
    return steps


def through_output(at: Sublayer, W_O: nn.Linear, joined: Float[ndarray, "n width"]) -> tuple[Proof, list[Step]]:
    """The step joined heads times W_O, with add & norm after it, and its proof through the sublayer's sum."""
    weight, bias = float64(W_O.weight).T, bias_of(W_O)
    out = stored(joined @ weight + bias, at.dtype)
    through = replace(at.proof(out), direct=False)
    step = at.maker(through)(
        "out",
        N_("Output projection: mix the heads with W_O"),
        N_("One more matrix, W_O, mixes the outputs of all heads."),
        r"O = \mathrm{concat}\,W_O + b_O",
        entry("O", joined[0], weight[:, 0], bias[0], out[0, 0]),
        "O",
        out,
        f"out = joined{linear_code(W_O, 'O')}",
        operands=(Operand("W_O", N_("the matrix W_{letter}", letter="O"), weight, ("features", "features")),),
        contraction=Contraction(joined, weight, bias),
        inputs=linear_inputs(W_O, "O"),
    )
    return through, [step, *add_and_norm(at, out)]


def norm_before(at: Sublayer, proof: Proof) -> list[Step]:
    """Pre-norm: the step that normalises the input, whose proof is that of the later steps; post-norm: no step."""
    norm = at.around.before
    if norm is None:
        return []
    entering = {"residual": at.trace.residual(at.before)}
    return _norm_steps(at, norm, at.x, proof, "residual", entering)[-1:]


def _norm_steps(
    at: Sublayer, norm: Norm, rows: ndarray, proof: Proof, argument: str, inputs: dict[str, Tensor]
) -> list[Step]:
    """Mean and variance of each row (RMSNorm: the mean square), then the normalised rows.

    `argument` is the name of the rows in the code; `inputs` holds them if no step has made them.
    """
    indirect = replace(proof, direct=False)
    result = normalise(rows, norm)
    if proof.direct:
        result = set_cells(at.trace, at.after, result)
    scaled = (
        N_("Each number over its row's root mean square, then scaled.")
        if norms.is_rms(norm)
        else N_("Each number minus its row's mean, over the row's standard deviation, then scaled and shifted.")
    )
    return [
        *(replace(step, inputs=inputs) for step in _moments(at, norm, rows, argument, indirect)),
        Step(
            at.key("norm"),
            N_("Normalise, 2: divide, scale") if norms.is_rms(norm) else N_("Normalise, 3: shift, divide, scale"),
            scaled,
            norms.formula(norm, "X'", "Y"),
            norms.live("X'_{0,0}", rows[0], norm, result[0, 0]),
            "X'",
            result,
            norms.code(norm, "x", argument),
            proof,
            operands=norms.operands(norm),
            axes=ROWS,
            inputs=inputs | norms.inputs(norm),
        ),
    ]


def _moments(at: Sublayer, norm: Norm, rows: ndarray, argument: str, indirect: Proof) -> list[Step]:
    make = at.maker(indirect, ("queries",))
    if norms.is_rms(norm):
        square: ndarray = (rows**2).mean(-1)
        return [
            make(
                "square",
                N_("Normalise, 1: the mean square of each row"),
                N_("RMSNorm looks at one row at a time and does not shift it: there is no mean to take away."),
                r"\rho_i = \frac{1}{d} \sum_m Y_{i,m}^2",
                rf"\rho_0 = \frac{{{latex.sum_of(rows[0] ** 2)}}}{{{rows.shape[1]}}} = {latex.number(square[0])}",
                r"\rho",
                square,
                f"square = ({argument} ** 2).mean(-1)",
            )
        ]
    mean, variance = rows.mean(-1), rows.var(-1)
    return [
        make(
            "mean",
            N_("Normalise, 1: the mean of each row"),
            N_("LayerNorm looks at one row at a time."),
            r"\mu_i = \frac{1}{d} \sum_m Y_{i,m}",
            rf"\mu_0 = \frac{{{latex.sum_of(rows[0])}}}{{{rows.shape[1]}}} = {latex.number(mean[0])}",
            r"\mu",
            mean,
            f"mean = {argument}.mean(-1)",
        ),
        make(
            "variance",
            N_("Normalise, 2: the variance of each row"),
            N_("The mean of the squared distances from the mean, divided by d, not d - 1."),
            r"\sigma_i^2 = \frac{1}{d} \sum_m (Y_{i,m} - \mu_i)^2",
            rf"\sigma_0^2 = \frac{{{latex.sum_of((rows[0] - mean[0]) ** 2)}}}{{{rows.shape[1]}}} = {latex.number(variance[0])}",
            r"\sigma^2",
            variance,
            f"variance = {argument}.var(-1, correction=0)",
        ),
    ]


def after_sublayer(at: Sublayer, out: ndarray) -> Float[ndarray, "n d_model"]:
    added = stored(at.around.onto(at.x, out), at.dtype)
    return set_cells(at.trace, at.after, through(added, at.around.after))


def entry(letter: str, row: ndarray, column: ndarray, add: float, result: float) -> str:
    return rf"{letter}_{{0,0}} = {latex.sum_of_products(row, column, float(add))} = {latex.number(result)}"


def linear_inputs(linear: nn.Linear, letter: str) -> dict[str, Tensor]:
    """W and b of x W + b, by the names that the code of a step uses."""
    found = {f"W_{letter}": linear.weight.detach().T}
    return found if linear.bias is None else found | {f"b_{letter}": linear.bias.detach()}


def linear_code(linear: nn.Linear, letter: str) -> str:
    """The code of x W + b without x, as in f"{variable} = {rows}{linear_code(...)}"."""
    return f" @ W_{letter}" + ("" if linear.bias is None else f" + b_{letter}")


def bias_of(linear: nn.Linear) -> Float[ndarray, " d"]:
    return np.zeros(linear.out_features) if linear.bias is None else float64(linear.bias)
