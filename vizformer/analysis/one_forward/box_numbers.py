"""What a box of the picture does with one token's row: the vectors before and after, and how each number came about."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads.maps import Kind
from vizformer.analysis.one_forward.picture_numbers import CANDIDATES, CELLS, Stack
from vizformer.analysis.one_forward.predictions import most_probable
from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain.arrays import float64, stored
from vizformer.explain.block_rows import block_stream, find_block, network_input, sublayers
from vizformer.explain.feedforward_rows import feedforward_numbers
from vizformer.explain.norms import is_rms, normalise
from vizformer.explain.step import Proof
from vizformer.explain.sublayer import SublayerKind, bias_of, recorded
from vizformer.messages import N_
from vizformer.model.input_check import row_at
from vizformer.model.norms import Norm
from vizformer.model.trace import Trace
from vizformer.options import ACTIVATION_NAMES

Box = Literal["embedding", "positions", "norm", "last_norm", "feedforward", "output"]
BOXES: tuple[Box, ...] = get_args(Box)
"""The boxes of a layer; `norm` follows an attention, `last_norm` the feed-forward network."""
_TERMS = 2  # of a sum that are written out: the largest


@dataclass(frozen=True)
class Vector:
    """The vector of one token at one point inside a box."""

    name: str
    values: Float[ndarray, " n"]
    written: tuple[str, ...] = ()  # how its numbers from `first` on, `CELLS` at most, came about; none: they were there
    first: int = 0  # index of the first number that is shown
    terms: int = 0  # the number of terms of the sum that each number is; 0 where it is no sum
    names: tuple[str, ...] = ()  # names of the numbers, where each belongs to a token


@dataclass(frozen=True)
class BoxNumbers:
    vectors: tuple[Vector, ...]
    proof: Proof | None  # of what leaves the box; None where the model keeps nothing to compare it with
    look: int = 0  # which of the numbers that are shown is looked at first


@torch.inference_mode()
def numbers_of_box(checkpoint: AnyCheckpoint, trace: Trace, box: Box, kind: Kind, layer: int, row: int) -> BoxNumbers:
    """The arithmetic of a box for one row.

    Args:
        kind: of attention: it says which stack and, of `norm`, which sublayer is meant.
        layer: of the stack; of no matter for what stands before and behind the layers.

    Raises:
        TraceError: no such row or layer.
    """
    stack: Stack = "encoder" if kind == "encoder" else "decoder"
    row = row_at(row, len(trace.tokens[stack]))
    if box in ("embedding", "positions"):
        return _entering(checkpoint, trace, stack, row, box)
    if box == "output":
        return _output(checkpoint, trace, row)
    if box == "feedforward":
        return _network(checkpoint, trace, stack, layer, row)
    of: SublayerKind = "feedforward" if box == "last_norm" else "cross" if kind == "cross" else "self"
    return _add_and_norm(checkpoint, trace, stack, layer, of, row)


def _entering(checkpoint: AnyCheckpoint, trace: Trace, stack: Stack, row: int, box: Box) -> BoxNumbers:
    """E[id], times sqrt(d_model) where the model does that; the positional encoding; their sum."""
    model, config = checkpoint.model, checkpoint.model.config
    own = model.token_table(stack).weight[trace.tokens[stack][row].id]
    table, factor = float64(own), config.embedding_factor
    x = float64(own * factor)
    found = [Vector("table_row", table)]
    if factor != 1:
        found.append(Vector("scaled", x, _each(x, lambda i: f"{_n(table[i])} × {_n(factor)}")))
    positions = model.positions(row + 1, stack)
    added = None if positions is None else float64(positions[row])
    if added is not None:
        wave = config.positions == "sinusoidal"
        made = _waves(row, added, config.d_model, halves=config.sinusoids != "interleaved") if wave else ()
        place = Vector("position", added, made)
        found = [place, found[-1]] if box == "positions" else [*found, place]
    entering = trace.residual(f"{stack}.0.pre")[row]
    parts = [x] if added is None else [x, added]
    segments = checkpoint.segments(trace.tokens[stack])
    if model.segment_embedding is not None and segments is not None:
        parts.append(float64(model.segment_embedding.weight[segments[0, row]]))
        found.append(Vector("segment", parts[-1]))
    together: ndarray = np.sum(parts, axis=0)
    if len(parts) > 1:
        said = _each(together, lambda i: " + ".join([_n(parts[0][i]), *(_f(part[i]) for part in parts[1:])]))
        found.append(Vector("together", together, said))
    own_norm = model.decoder_embedding_norm if stack == "decoder" else None
    if (norm := own_norm or model.embedding_norm) is not None:
        found.append(_normed(together, norm, "normed_sum"))
    return BoxNumbers(
        tuple(found),
        Proof.compare(recorded(f"{stack}.0.pre"), stored(found[-1].values, entering.dtype), entering),
    )


def _waves(row: int, values: ndarray, d: int, *, halves: bool) -> tuple[str, ...]:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d)), PE(pos, 2i + 1) = cos of the same; or all sines first."""

    def one(j: int) -> str:
        i, sine = (j % (d // 2), j < d // 2) if halves else (j // 2, j % 2 == 0)
        return f"{'sin' if sine else 'cos'}({row} / 10000^({2 * i}/{d}))"

    return _each(values, one)


def _add_and_norm(
    checkpoint: AnyCheckpoint, trace: Trace, stack: Stack, layer: int, of: SublayerKind, row: int
) -> BoxNumbers:
    """x + f(x), then the norm of the sum: the sublayer's own (post-norm), or that through which the next one reads."""
    block = find_block(checkpoint, stack, layer)
    stream = block_stream(checkpoint, trace, stack, layer, row)
    points = {point.name: point for point in stream.points}
    total, added = points[f"{of}.sum"].row, points[f"{of}.sum"].added
    assert added is not None
    before = {kind: point for kind, __, point, ___ in sublayers(block)}[of]
    x = float64(trace.residual(f"{stack}.{layer}.{before}")[row])
    around = block.around(of)
    found = [
        Vector("enters", x),
        Vector("network" if of == "feedforward" else "attended", added),
        Vector("sum", total, _each(total, lambda i: f"{_n(x[i])} + {_f(added[i])}" if around.adds else _n(added[i]))),
    ]
    norm = around.after or _next_norm(checkpoint, stack, layer, of)
    if norm is not None:
        found.append(_normed(total, norm, "normed" if around.after is not None else "next_normed"))
    return BoxNumbers(tuple(found), stream.proofs[of])


def _next_norm(checkpoint: AnyCheckpoint, stack: Stack, layer: int, of: SublayerKind) -> Norm | None:
    """Pre-norm: the norm through which what comes next reads the sum."""
    block = find_block(checkpoint, stack, layer)
    names = [name for name, *__ in sublayers(block)]
    if of != names[-1]:
        return block.around(names[names.index(of) + 1]).before
    module = getattr(checkpoint.model, stack)
    if layer + 1 < len(module.layers):
        return find_block(checkpoint, stack, layer + 1).around("self").before
    final: Norm | None = module.final_norm
    return final


def _normed(x: Float[ndarray, " d"], norm: Norm, name: str) -> Vector:
    """(x - mean) / sqrt(var + eps) * gamma + beta, or x / sqrt(mean(x^2) + eps) * gamma."""
    mean = 0.0 if is_rms(norm) else float(x.mean())
    square, gamma = float(((x - mean) ** 2).mean()), float64(norm.weight)
    beta = None if isinstance(norm, torch.nn.RMSNorm) else float64(norm.bias)
    root = f"√({_n(square)} + {_eps(norm)})"

    def one(i: int) -> str:
        if beta is None:
            return f"{_n(x[i])} / {root} × {_f(gamma[i])}"
        return f"({_n(x[i])} − {_f(mean)}) / {root} × {_f(gamma[i])} + {_f(beta[i])}"

    result = normalise(x, norm)
    return Vector(name, result, _each(result, one))


def _network(checkpoint: AnyCheckpoint, trace: Trace, stack: Stack, layer: int, row: int) -> BoxNumbers:
    """x W_in + b_in, the activation, (times the other half, where it is a gate,) and W_out + b_out."""
    block, at = find_block(checkpoint, stack, layer), f"{stack}.{layer}"
    network, name = block.feedforward, ACTIVATION_NAMES[checkpoint.model.config.activation]
    x = network_input(block, trace, at, slice(row, row + 1))
    numbers = feedforward_numbers(x, network, trace.residual(f"{at}.pre").dtype)
    first = network.W_in if network.W_gate is None else network.W_gate
    active, inner, out = numbers.active[0], numbers.inner[0], numbers.out[0]
    neuron = int(np.abs(inner).argmax())
    start = neuron - neuron % CELLS  # of the neurons those are shown among which the strongest is

    def made(name: str, values: ndarray, one: Callable[[int], str], terms: int = 0) -> Vector:
        return Vector(name, values, _each(values, one, start), start, terms)

    def summed(name: str, linear: torch.nn.Linear, values: ndarray) -> Vector:
        return made(name, values, _sums(x[0], linear, start), len(x[0]))

    found = [
        Vector("reads", x[0]),
        summed("hidden", first, numbers.entering[0]),
        made("active", active, lambda i: f"{name}({_n(numbers.entering[0, i])})"),
    ]
    if network.W_gate is not None:
        hidden = numbers.hidden[0]
        found += [
            summed("up", network.W_in, hidden),
            made("gated", inner, lambda i: f"{_n(active[i])} × {_f(hidden[i])}"),
        ]
    found.append(Vector("narrow", out, _each(out, _sums(inner, network.W_out)), terms=len(inner)))
    proof = block_stream(checkpoint, trace, stack, layer, row).proofs["feedforward"]
    return BoxNumbers(tuple(found), proof, neuron - start)


def _output(checkpoint: AnyCheckpoint, trace: Trace, row: int) -> BoxNumbers:
    """The logits of the most probable tokens, row times unembedding; p = e^(logit - log sum e^logit)."""
    model = checkpoint.model
    stack = "decoder" if model.decoder is not None else "encoder"
    last = trace.residual(f"{stack}.final")[row : row + 1]
    x, kept = float64(model.compared(last)[0]), trace.logits[row]
    best = most_probable(checkpoint, kept, CANDIDATES)
    ids, names = [one.token.id for one in best], tuple(one.token.text for one in best)
    table = model.embedding.weight if model.unembedding is None else model.unembedding.weight
    bias = model.logit_bias if model.prediction is None else model.prediction.logit_bias
    weight, shift = float64(table[ids]), np.zeros(len(ids)) if bias is None else float64(bias[ids])
    logits = stored(weight @ x + shift, kept.dtype)
    total = float(kept.double().logsumexp(0))
    written = [_sum(x, weight[i], shift[i]) for i in range(len(ids))]
    probabilities: ndarray = np.exp(logits - total)
    return BoxNumbers(
        (
            Vector("last_row", float64(last[0])),
            *([] if len(x) == len(last[0]) and np.allclose(x, float64(last[0])) else [Vector("transformed", x)]),
            Vector("logits", logits, _each(logits, written.__getitem__), terms=len(x), names=names),
            Vector(
                "probabilities",
                probabilities,
                _each(probabilities, lambda i: f"e^({_n(logits[i])} − {_f(total)})"),
                names=names,
            ),
        ),
        Proof.compare(N_("the model's logits at position {position}", position=row), logits, kept[ids]),
    )


# --- numbers as text --------------------------------------------------------------------------------------------------


def _n(value: float) -> str:
    return f"{float(value):.4f}".replace("-", "−")


def _f(value: float) -> str:
    """Formats a number; a negative one stands in parentheses."""
    return f"({_n(value)})" if value < 0 else _n(value)


def _eps(norm: Norm) -> str:
    """Formats the epsilon of a norm: 1e-05 as 10⁻⁵."""
    digits, __, exponent = f"{norm.eps:.0e}".partition("e")
    power = "".join("⁻" if sign == "-" else "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(sign)] for sign in str(int(exponent)))
    return f"10{power}" if digits == "1" else f"{digits} · 10{power}"


def _each(values: ndarray, one: Callable[[int], str], first: int = 0) -> tuple[str, ...]:
    return tuple(f"{one(i)} = {_n(values[i])}" for i in range(first, min(first + CELLS, len(values))))


def _sum(left: ndarray, right: ndarray, add: float) -> str:
    """Writes out the largest products of a dot product."""
    largest = np.argsort(-np.abs(left * right), kind="stable")[:_TERMS]
    shown = " + ".join(f"{_f(left[i])} × {_f(right[i])}" for i in largest)
    more = " + …" if len(left) > _TERMS else ""
    return f"{shown}{more}{f' + {_f(add)}' if add else ''}"


def _sums(left: ndarray, linear: torch.nn.Linear, first: int = 0) -> Callable[[int], str]:
    weight, bias = float64(linear.weight[first : first + CELLS]), bias_of(linear)
    return lambda i: _sum(left, weight[i - first], bias[i])
