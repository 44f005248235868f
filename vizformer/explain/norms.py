"""LayerNorm and RMSNorm of a row: recomputed, as a formula, with numbers and as code."""

from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from vizformer.explain import latex
from vizformer.explain.arrays import float64, stored
from vizformer.explain.step import Operand
from vizformer.messages import N_
from vizformer.model.norms import Around, Norm


def is_rms(norm: Norm) -> bool:
    return isinstance(norm, nn.RMSNorm)


def divisor(square: Float[ndarray, "*n 1"], norm: Norm) -> Float[ndarray, "*n 1"]:
    """The divisor of a row: sqrt(square + eps), where `square` is its variance (RMSNorm: its mean square)."""
    assert norm.eps is not None
    return np.sqrt(square + norm.eps)


def normalise(x: Float[ndarray, "*n d"], norm: Norm) -> Float[ndarray, "*n d"]:
    """(x - mean) / sqrt(var + eps) * weight + bias, where the variance divides by d, not d - 1.

    RMSNorm: x / sqrt(mean(x^2) + eps) * weight.  Rounded as a model in half precision does.
    """
    centred = x if is_rms(norm) else x - x.mean(-1, keepdims=True)
    square = (centred**2).mean(-1, keepdims=True)
    scaled: ndarray = centred / divisor(square, norm) * float64(norm.weight)
    return stored(scaled if isinstance(norm, nn.RMSNorm) else scaled + float64(norm.bias), norm.weight.dtype)


def through(x: Float[ndarray, "*n d"], norm: Norm | None) -> Float[ndarray, "*n d"]:
    """norm(x); x itself if there is no norm."""
    return x if norm is None else normalise(x, norm)


def added_sizes(around: Around, x: Float[ndarray, "*n d"], found: Float[ndarray, "*n d"]) -> ndarray | float:
    """The size of the terms of x + found, for its proof; 0 if a norm follows."""
    if around.after is not None:
        return 0.0
    return np.maximum(np.abs(x), np.abs(found)) if around.adds else np.abs(found)


def formula(norm: Norm, result: str, row: str) -> str:
    """The formula in symbols, e.g. result "x_i" of row "r_i"."""
    if is_rms(norm):
        return rf"{result} = \frac{{{row}}}{{\sqrt{{\mathrm{{mean}}({row}^2) + \epsilon}}}} \odot \gamma"
    return (
        rf"{result} = \frac{{{row} - \mathrm{{mean}}({row})}}{{\sqrt{{\mathrm{{var}}({row}) + \epsilon}}}}"
        r" \odot \gamma + \beta"
    )


def live(symbol: str, row: Float[ndarray, " d"], norm: Norm, result: float) -> str:
    """The formula with the numbers of component 0."""
    assert norm.eps is not None
    weight, eps = latex.factor(float64(norm.weight)[0]), latex.number(norm.eps)
    if isinstance(norm, nn.RMSNorm):
        root = rf"\sqrt{{{latex.number((row**2).mean())} + {eps}}}"
        return rf"{symbol} = \frac{{{latex.number(row[0])}}}{{{root}}} \cdot {weight} = {latex.number(result)}"
    root = rf"\sqrt{{{latex.number(row.var())} + {eps}}}"
    return (
        rf"{symbol} = \frac{{{latex.number(row[0])} - {latex.factor(row.mean())}}}{{{root}}}"
        rf" \cdot {weight} + {latex.factor(float64(norm.bias)[0])} = {latex.number(result)}"
    )


def operands(norm: Norm) -> tuple[Operand, ...]:
    """The learned parameters of a norm: gamma and, in LayerNorm, beta."""
    weight = Operand(r"\gamma", N_("the norm's weight"), float64(norm.weight))
    if isinstance(norm, nn.RMSNorm):
        return (weight,)
    return (weight, Operand(r"\beta", N_("the norm's bias"), float64(norm.bias)))


def code(norm: Norm, variable: str, argument: str, *, of: str = "") -> str:
    """The torch line of a norm; `of` is a suffix that distinguishes the parameters of several norms in one step."""
    gamma, beta = f"gamma{of}", f"beta{of}"
    if is_rms(norm):
        return f"{variable} = F.rms_norm({argument}, {tuple(norm.normalized_shape)}, {gamma}, {norm.eps!r})"
    return f"{variable} = F.layer_norm({argument}, {tuple(norm.normalized_shape)}, {gamma}, {beta}, {norm.eps!r})"


def inputs(norm: Norm, *, of: str = "") -> dict[str, Tensor]:
    """The inputs of `code`: gamma and, in LayerNorm, beta."""
    found = {f"gamma{of}": norm.weight.detach()}
    return found if isinstance(norm, nn.RMSNorm) else found | {f"beta{of}": norm.bias.detach()}


def written(
    norm: Norm,
    symbols: tuple[str, str],
    live_symbol: str,
    row: Float[ndarray, " d"],
    result: float,
    names: tuple[str, str],
    *,
    of: str = "",
) -> dict[str, Any]:
    """What a step that normalises says: formula, live formula, code, operands and inputs.

    `symbols` are those of the result and of what is normalised, `names` theirs in the code; `row` and `result` are the
    numbers of the live formula.
    """
    return {
        "formula": formula(norm, *symbols),
        "live": live(live_symbol, row, norm, result),
        "code": code(norm, *names, of=of),
        "operands": operands(norm),
        "inputs": inputs(norm, of=of),
    }
