"""What all sublayers share: their place in the model, the residual stream before and after them, and add & norm."""

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain import latex, norms
from vizformer.explain.arrays import float64, set_cells, stored
from vizformer.explain.norms import added_sizes, normalise, through
from vizformer.explain.step import Axis, Contraction, Maker, Operand, Proof, Step
from vizformer.messages import N_, Message
from vizformer.model.attention import Attention
from vizformer.model.block import Block
from vizformer.model.norms import Around, Norm
from vizformer.model.trace import Trace

SublayerKind = Literal["self", "cross", "feedforward"]
_SITE = re.compile(r"(encoder|decoder)\.(\d+)\.(self|cross)")

_STACKS = {
    "encoder": (N_("the end of the encoder"), N_("encoder layer {layer}")),
    "decoder": (N_("the end of the decoder"), N_("decoder layer {layer}")),
}
_PARTS = {
    "self": N_("the self-attention of {layer}"),
    "cross": N_("the cross-attention of {layer}"),
    "feedforward": N_("the feed-forward of {layer}"),
    "pre": N_("the input of {layer}"),
    "mid": N_("{layer}, after its self-attention"),
    "mid_self": N_("{layer}, after its self-attention"),
    "mid_cross": N_("{layer}, after its cross-attention"),
}
_OUTPUT = N_("the output of {layer}")


@dataclass(frozen=True)
class Site:
    name: str  # e.g. "decoder.2.cross"
    attention: Attention  # the module of the attention
    around: Around  # the norms around it, each at its place
    # before, after: names of the residual stream around the sublayer
    before: str
    after: str
    source: str  # name of the residual stream that keys and values are computed from

    @property
    def is_cross(self) -> bool:
        return self.before != self.source


def find_site(checkpoint: AnyCheckpoint, trace: Trace, name: str) -> Site:
    """The attention site called `name`.

    Raises:
        TraceError: the trace has no such site, or it is from another model.
    """
    record = trace[name]  # raises an error that lists the existing sites
    match = _SITE.fullmatch(name)
    stack = getattr(checkpoint.model, match[1]) if match else None
    config = checkpoint.model.config
    fits = (
        stack is not None
        and match is not None
        and int(match[2]) < len(stack.layers)
        and (match[3] == "self" or config.architecture == "encoder-decoder")
        and (*record.q.shape[::2], record.k.shape[0]) == (config.n_heads, config.d_head, config.kv_heads)
    )
    if match is None or stack is None or not fits:
        raise TraceError(
            "{site} is not a site of {model}: the trace is of another model.", site=name, model=checkpoint.name
        )
    block = stack.layers[int(match[2])]
    assert isinstance(block, Block)
    kind: SublayerKind = "cross" if match[3] == "cross" else "self"
    attention = block.cross_attention if kind == "cross" else block.self_attention
    assert attention is not None
    before, after = points(block, f"{match[1]}.{match[2]}")[kind]
    return Site(name, attention, block.around(kind), before, after, "encoder.final" if kind == "cross" else before)


def points(block: Block, layer: str = "") -> dict[SublayerKind, tuple[str, str]]:
    """The points of the residual stream before and after each sublayer, in order; `layer`, "decoder.2", begins their
    names.
    """
    between = ["mid"] if block.cross_attention is None else ["mid_self", "mid_cross"]
    names = [f"{layer}.{point}".lstrip(".") for point in ("pre", *between, "post")]
    kinds: tuple[SublayerKind, ...] = ("self", "feedforward") if len(between) == 1 else ("self", "cross", "feedforward")
    return dict(zip(kinds, pairwise(names), strict=True))


# The names of sites and points in words: what a trace calls "decoder.1.mid_self", for a sentence.
def in_words(name: str) -> Message:
    """A site or a point of the residual stream, as words that a sentence can go on with: "... recorded at {place}".

    >>> str(in_words("decoder.1.cross")), str(in_words("encoder.0.pre"))
    ('the cross-attention of decoder layer 1', 'the input of encoder layer 0')
    """
    stack, _, rest = name.partition(".")
    number, _, part = rest.partition(".")
    end, layer = _STACKS["encoder" if stack == "encoder" else "decoder"]
    if rest == "final":
        return end
    layer = Message(layer.text, {"layer": number})
    return Message(_PARTS.get(part, _OUTPUT).text, {"layer": layer}) if part else layer


def recorded(name: str) -> Message:
    """The rows at a point of the residual stream, which proofs compare with."""
    return N_("the rows recorded at {place}", place=in_words(name))


ROWS: tuple[Axis, ...] = ("queries", "features")
MAPS: tuple[Axis, ...] = ("heads", "queries", "keys")
MATRIX: tuple[Axis, ...] = ("features", "features")
KEYS: tuple[Axis, ...] = ("keys", "features")
QUERIES_OF_HEADS: tuple[Axis, ...] = ("heads", "queries", "features")
KEYS_OF_HEADS: tuple[Axis, ...] = ("heads", "keys", "features")
ADD_TITLE = {True: N_("Add to the residual stream"), False: N_("Replace the residual stream")}
REPLACE_TEXT = N_(
    "This model has no residual connections: the output of the sublayer replaces the row, and nothing of "
    "the row before goes on."
)
# Whether the model adds, and whether a norm follows.
_ADD_TEXT = {
    (True, False): N_(
        "The output of the sublayer is added to the residual stream and stays there: the layers "
        "that follow read this sum."
    ),
    (True, True): N_(
        "The output of the sublayer is added to the residual stream. This model is post-norm: "
        "the norm that follows rewrites the sum, and the layers that follow read its output."
    ),
}
# Whether it is an RMSNorm.
_NORM_TITLE = {True: N_("Normalise, 2: divide, scale"), False: N_("Normalise, 3: shift, divide, scale")}
_NORM_TEXT = {
    True: N_("Each number over its row's root mean square, then scaled."),
    False: N_("Each number minus its row's mean, over the row's standard deviation, then scaled and shifted."),
}


@dataclass(frozen=True)
class Sublayer:
    """A sublayer's place: the points of the residual stream before and after it, and the norms around it.

    `queries` are the rows that are looked at.
    """

    trace: Trace
    around: Around
    kind: str
    before: str
    after: str
    queries: slice = field(default_factory=lambda: slice(None), kw_only=True)

    @cached_property
    def read(self) -> Float[ndarray, "n d_model"]:
        """The input of the sublayer's function: x, in a pre-norm model normalised."""
        return through(self.x, self.around.before)

    @property
    def residual(self) -> Float[Tensor, "n d_model"]:
        return self.trace.residual(self.before)[self.queries]

    @cached_property
    def x(self) -> Float[ndarray, "n d_model"]:
        return float64(self.residual)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the model computes."""
        return self.residual.dtype

    def added(self, out: Float[ndarray, "n d_model"]) -> Float[ndarray, "n d_model"]:
        """The sublayer's output, added to the stream."""
        return stored(self.around.onto(self.x, out), self.dtype)

    def left(self, out: Float[ndarray, "n d_model"]) -> Float[ndarray, "n d_model"]:
        """The stream after the sublayer: the sum, in a post-norm model normalised, with the numbers set by hand."""
        normed = through(self.added(out), self.around.after)
        return set_cells(self.trace, self.after, normed, self.queries.start or 0)

    def proof(self, out: ndarray, *, direct: bool = True) -> Proof:
        """The sublayer's output, added (and normalised), against the residual stream that was recorded after it."""
        after = self.trace.residual(self.after)[self.queries]
        terms = added_sizes(self.around, self.x, out)
        return Proof.compare(recorded(self.after), self.left(out), after, direct, terms=terms)

    def key(self, name: str) -> str:
        return f"{self.kind}.{name}"

    def maker(self, proof: Proof, axes: tuple[Axis, ...] = ROWS) -> Maker:
        """A `Maker` of this sublayer's steps."""
        return Maker(self.key(""), proof, axes)


def sublayer_at(trace: Trace, block: Block, layer: str, kind: SublayerKind, queries: slice = slice(None)) -> Sublayer:
    """A sublayer of the layer called `layer`, e.g. "decoder.2"."""
    return Sublayer(trace, block.around(kind), kind, *points(block, layer)[kind], queries=queries)


def add_and_norm(at: Sublayer, out: ndarray) -> list[Step]:
    """The steps of add & norm: the sublayer's output added to the stream, then the norm of the sum."""
    after, adds, added, proof = at.around.after, at.around.adds, at.added(out), at.proof(out)
    add = at.maker(proof if after is None else replace(proof, direct=False))(
        "add",
        ADD_TITLE[adds],
        _ADD_TEXT.get((adds, after is not None), REPLACE_TEXT),
        *add_formulas(("Y", "X", "O"), "Y_{0,0}", at.x[0, 0] if adds else None, out[0, 0], added[0, 0]),
        "Y",
        added,
        "\n".join([f"added = {'residual + ' * adds}out", *["x = added"] * (after is None)]),
        operands=(Operand("X", N_("the residual stream before"), at.x, ROWS),) * adds,
        variable="added",
        inputs={"residual": at.residual} if adds else {},
    )
    return [add] if after is None else [add, *_norm_steps(at, after, added, proof, "added", {})]


def add_formulas(
    symbols: tuple[str, str, str], live: str, x: float | None, out: float, added: float
) -> tuple[str, str]:
    """The formula of a sum with the residual stream, and with its numbers; x is None where nothing is added to."""
    y, r, o = symbols
    first = "" if x is None else f"{latex.number(x)} + {latex.factor(out)} = "
    return f"{y} = {o}" if x is None else f"{y} = {r} + {o}", f"{live} = {first}{latex.number(added)}"


def linear_step(
    make: Maker,
    key: str,
    title: Message,
    text: Message,
    symbols: tuple[str, str],
    rows: Float[ndarray, "n d"],
    linear: nn.Linear,
    name: str,
    result: Float[ndarray, "n m"],
    names: tuple[str, str],
    what: Message,
    *operands: Operand,
    **more: Any,
) -> Step:
    """The step of x W + b for all rows.

    `symbols` are those of the result and of the rows, `names` theirs in the code; `name` is that of W and b, and W, `what`
    in words, stands after the other `operands`.
    """
    weight, bias = float64(linear.weight).T, None if linear.bias is None else float64(linear.bias)
    letter = name if len(name) == 1 else rf"\mathrm{{{name}}}"
    return make(
        key,
        title,
        text,
        rf"{symbols[0]} = {symbols[1]}\,W_{letter}" + ("" if bias is None else f" + b_{letter}"),
        entry(symbols[0], rows[0], weight[:, 0], None if bias is None else float(bias[0]), result[0, 0]),
        symbols[0],
        result,
        f"{names[0]} = {names[1]}{linear_code(linear, name)}",
        operands=(*operands, Operand(f"W_{letter}", what, weight, MATRIX)),
        contraction=Contraction(rows, weight, bias),
        **{**more, "inputs": {**more.get("inputs", {}), **linear_inputs(linear, name)}},
    )


def norm_before(at: Sublayer, proof: Proof) -> list[Step]:
    """Pre-norm: the step that normalises the input, whose proof is that of the later steps; post-norm: no step."""
    norm = at.around.before
    return [] if norm is None else _norm_steps(at, norm, at.x, proof, "residual", {"residual": at.residual})[-1:]


def _norm_steps(
    at: Sublayer, norm: Norm, rows: ndarray, proof: Proof, argument: str, inputs: dict[str, Tensor]
) -> list[Step]:
    """Mean and variance of each row (RMSNorm: the mean square), then the normalised rows.

    `argument` is the name of the rows in the code; `inputs` holds them if no step has made them.
    """
    result = normalise(rows, norm)
    if proof.direct:
        result = set_cells(at.trace, at.after, result)
    rms, said = norms.is_rms(norm), norms.written(norm, ("X'", "Y"), "X'_{0,0}", rows[0], result[0, 0], ("x", argument))
    moments = _moments(at.maker(replace(proof, direct=False), ("queries",)), rms, rows, argument)
    said["inputs"] = inputs | said["inputs"]
    last = at.maker(proof)("norm", _NORM_TITLE[rms], _NORM_TEXT[rms], symbol="X'", result=result, **said)
    return [*(replace(step, inputs=inputs) for step in moments), last]


def _moments(make: Maker, rms: bool, rows: ndarray, argument: str) -> list[Step]:
    if rms:
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


def entry(letter: str, row: ndarray, column: ndarray, add: float | None, result: float) -> str:
    return rf"{letter}_{{0,0}} = {latex.sum_of_products(row, column, add)} = {latex.number(result)}"


def linear_inputs(linear: nn.Linear, letter: str) -> dict[str, Tensor]:
    """W and b of x W + b, by the names that the code of a step uses."""
    found = {f"W_{letter}": linear.weight.detach().T}
    return found if linear.bias is None else found | {f"b_{letter}": linear.bias.detach()}


def linear_code(linear: nn.Linear, letter: str) -> str:
    """The code of x W + b without x, as in f"{variable} = {rows}{linear_code(...)}"."""
    return f" @ W_{letter}" + ("" if linear.bias is None else f" + b_{letter}")


def bias_of(linear: nn.Linear) -> Float[ndarray, " d"]:
    return np.zeros(linear.out_features) if linear.bias is None else float64(linear.bias)
