"""A short convolution (`vizformer.model.short_convolution`) as steps: all of it, or one tap for one query.

    [q k v] = x [W_Q W_K W_V] -> u = k * v -> v_t = f_t * u -> the map M_t -> z_t = M_t v_t -> their sum, the convolution
    -> q * it -> W_O -> add

v, z and the gate are compared with the model's own; in half precision the arithmetic goes on from those.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import Checkpoint
from vizformer.explain import latex
from vizformer.explain.arrays import float64, is_half, set_cells, stored, was_edited
from vizformer.explain.mixing import mixing_steps
from vizformer.explain.operands import Operands
from vizformer.explain.site import find_site
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Contraction, Maker, Proof, Step, sizes
from vizformer.explain.sublayer import (
    MAPS,
    ROWS,
    Sublayer,
    bias_of,
    linear_code,
    linear_inputs,
    norm_before,
    through_output,
)
from vizformer.messages import N_, Message
from vizformer.model.input_check import row_at
from vizformer.model.short_convolution import ShortConvolution
from vizformer.model.trace import Trace


class ConvolutionNumbers:
    """Those of every tap and token of a layer, in float64.

    Attributes:
        q, k, w: what the three matrices make of the rows, [n, d_model]; w are the values.
        u, v, M, z, opened: what the filter reads, and tap by tap its values, map and reading; the gate.
        proofs: of v, z and opened.
    """

    def __init__(self, layer: ShortConvolution, trace: Trace, site: str, x: Float[ndarray, "n d"]) -> None:
        record = trace[site]
        assert record.opened is not None
        self.layer, self.x, self.dtype, self.record = layer, x, record.q.dtype, record
        self.q, self.k, self.w = (
            stored(x @ float64(one.weight).T + bias_of(one), self.dtype) for one in (layer.W_Q, layer.W_K, layer.W_V)
        )
        self.u, self.taps = stored(self.k * self.w, self.dtype), float64(layer.taps)
        self.bias = np.zeros(layer.d_head) if layer.filter_bias is None else float64(layer.filter_bias)
        v = stored(self.taps[:, None] * self.u, self.dtype)
        v[0] = stored(v[0] + self.bias, self.dtype)
        terms = [sizes(x, float64(one.weight).T, bias_of(one)) for one in (layer.W_Q, layer.W_K, layer.W_V)]
        place, self.proofs = in_words(site), dict[str, Proof]()
        anchor = N_("q, k and v recorded in {place}", place=place)
        size = np.abs(self.taps)[:, None] * terms[1] * terms[2]
        self.v = self._same("v", anchor, set_cells(trace, f"{site}.v", v), record.v, size)
        self.M: Float[ndarray, "h n n"] = float64(record.patterns())
        anchor = N_("what the rule has read in the model's own forward: {place}", place=place)
        own = torch.stack([record.z(tap) for tap in range(layer.n_heads)])
        self.z = self._same("z", anchor, stored(self.M @ self.v, self.dtype), own, np.abs(self.M @ self.v))
        anchor = N_("the gates recorded in {place}", place=place)
        self.opened = self._same("opened", anchor, self.q, record.opened[0], terms[0])
        self.by_hand = {name for name in ("q", "k") if was_edited(trace, f"{site}.{name}")}

    def _same(self, name: str, anchor: Message, found: ndarray, own: Tensor, terms: ndarray) -> ndarray:
        """What the arithmetic goes on with, once it has been compared with the model's own."""
        short = is_half(self.dtype)
        self.proofs[name] = Proof.compare(anchor, found, own, terms=terms if short else 0.0, dtype=self.dtype)
        return float64(own) if short else found

    def channel(self, number: int) -> Float[ndarray, "n n"]:
        """The map of one number of the rows, of which gate * convolution = M w (+ gate * b)."""
        found: ndarray = self.q[:, number, None] * np.einsum("t,tij->ij", self.taps[:, number], self.M)
        return found * self.k[:, number]

    def channel_error(self, number: int) -> float:
        """|M w + gate * b - o| / |o| of this map, o as the model has computed it."""
        own = sum(float64(self.record.read(tap)[:, number]) for tap in range(self.layer.n_heads))
        made = self.channel(number) @ self.w[:, number] + self.q[:, number] * self.bias[number]
        return float(np.linalg.norm(made - own) / max(float(np.linalg.norm(own)), 1e-300))


@dataclass(frozen=True)
class ConvolutionOperands(Operands):
    """One tap and one query, as `mixing_steps` asks for them."""

    numbers: ConvolutionNumbers | None = None

    @property
    def of_all(self) -> ConvolutionNumbers:
        assert self.numbers is not None
        return self.numbers

    @property
    def q_recomputed(self) -> Float[ndarray, " 1"]:
        return float64(self.record.q[self.head, self.query])

    def projection_sizes(self, letter: str) -> ndarray | float:
        """0: a query is 1, whatever the token is."""
        return 0.0

    @property
    def v_recomputed(self) -> Float[ndarray, "n d_model"]:
        return self.of_all.v[self.head]

    @property
    def pattern(self) -> Float[ndarray, " n"]:
        return self.of_all.M[self.head, self.query]

    @property
    def opened(self) -> Float[ndarray, " d_model"]:
        return self.of_all.opened[self.query]


def gather_convolution(checkpoint: Checkpoint, trace: Trace, site: str, head: int, query: int) -> ConvolutionOperands:
    found, record = find_site(checkpoint, trace, site), trace[site]
    record.check(head)
    o = ConvolutionOperands(trace, found, record, head, row_at(query, int(record.q.shape[1])), None)
    assert isinstance(found.attention, ShortConvolution)
    return replace(o, numbers=ConvolutionNumbers(found.attention, trace, site, o.source))


def convolution_sublayer(at: Sublayer, layer: ShortConvolution, site: str) -> list[Step]:
    """All taps and tokens of a layer."""
    n = ConvolutionNumbers(layer, at.trace, site, at.read)
    summed = stored(n.z.sum(0), at.dtype)
    joined, taps, d, i = stored(summed * n.opened, at.dtype), layer.n_heads, layer.d_head, len(at.x) - 1
    matrices = (layer.W_Q, layer.W_K, layer.W_V)
    W, bias = np.concatenate([float64(one.weight).T for one in matrices], axis=1), None
    inputs = {f"W_{letter}": one.weight.detach().T for letter, one in zip("QKV", matrices, strict=True)}
    if layer.filter_bias is not None:
        inputs["b"] = torch.cat([one.bias.detach() for one in matrices])
        bias = np.concatenate([bias_of(one) for one in matrices])
    make = at.maker(replace(n.proofs["v"], direct=False))
    map_0, packed = n.channel(0), np.concatenate([n.q, n.k, n.w], axis=1)
    back = "at = torch.arange(len(u))\nback = at[:, None] - at  # how many places back each token stands\n"
    own_bias = None if layer.filter_bias is None else float(n.bias[0])
    last = np.array([n.u[i - t, 0] if t <= i else 0.0 for t in range(taps)])
    __, out = through_output(at, layer.W_O.matrix, joined)
    return [
        *norm_before(at, replace(n.proofs["v"], direct=False)),
        make(
            "packed",
            N_("One product for Q, K and V"),
            N_(
                "The three matrices stand side by side, so that one product [{n} × {d}] · [{d} × {width}] gives all three.",
                n=len(n.x),
                d=d,
                width=3 * d,
            ),
            r"[Q \mid K \mid V] = X\,[W_Q \mid W_K \mid W_V]" + ("" if bias is None else " + b"),
            rf"Q_{{0,0}} = {latex.sum_of_products(n.x[0], W[:, 0], None if bias is None else float(bias[0]))} = "
            rf"{latex.number(n.q[0, 0])}",
            r"[Q \mid K \mid V]",
            packed,
            f"W = torch.cat([W_Q, W_K, W_V], dim=1)\npacked = x @ W{'' if bias is None else ' + b'}",
            contraction=Contraction(n.x, W, bias),
            inputs=inputs,
        ),
        _gated(n, make, f"u = packed[:, {d} : {2 * d}] * packed[:, {2 * d} :]", {}),
        _values(n, at.key(""), None),
        at.maker(n.proofs["z"], MAPS)(
            "map",
            *_MAP,
            r"M_{t,i,j} = 1 \text{ where } i - j = t, \text{ else } 0",
            rf"\sum_j M_{{0,{i},j}} = {latex.number(float(n.M[0, i].sum()))}",
            "M",
            n.M,
            f"{back}pattern = (back == torch.arange({taps})[:, None, None]).to(v.dtype)",
            edited=bool(n.by_hand),
        ),
        at.maker(n.proofs["z"], ("heads", "queries", "features"))(
            "z",
            N_("Mix the values"),
            N_("In each head, every query gets the sum of the values, each times its number in the map."),
            "Z = M V",
            rf"Z_{{0,0}} = {latex.sum_of_products(n.M[0, 0], n.v[0, :, 0])} = {latex.number(n.z[0, 0, 0])}",
            "Z",
            n.z,
            "z = pattern @ v",
        ),
        at.maker(replace(n.proofs["z"], direct=False))(
            "convolved",
            N_("All heads together: the convolution"),
            N_(
                "The heads of a row are added up: each number is a weighted sum of itself and of those right before it in its "
                "column. A convolution computes it in one call, without making any head."
            ),
            r"Y_{i,c} = \sum_t f_{t,c}\,u_{i-t,c}" + ("" if own_bias is None else " + b_c"),
            rf"Y_{{{i},0}} = {latex.sum_of_products(n.taps[:, 0], last, own_bias)} = {latex.number(summed[i, 0])}",
            "Y",
            summed,
            "convolved = z.sum(0)",
        ),
        _through_gate(n, at.key("concat"), "Y'", joined, f"joined = convolved * packed[:, :{d}]", {}),
        at.maker(replace(n.proofs["z"], direct=False), ("queries", "keys"))(
            "channel",
            N_("The same as a map of one number"),
            N_(
                "All of this is linear in the values, but each of the {d} numbers of a row has a map of its own: exact, with "
                "both signs, and with rows that sum to anything. That of number 0 is shown; for it |M v − o| / |o| = {error}, "
                "with o of the model.",
                d=d,
                error=f"{n.channel_error(0):.0e}",
            ),
            r"M^{(c)}_{i,j} = q_{i,c}\,f_{i-j,c}\,k_{j,c}",
            rf"M^{{(0)}}_{{{i},{i}}} = {latex.factor(n.q[i, 0])} \cdot {latex.factor(n.taps[0, 0])} \cdot "
            rf"{latex.factor(n.k[i, 0])} = {latex.number(map_0[i, i])}",
            "M^{(0)}",
            map_0,
            f"channel = packed[:, 0, None] * (taps[:, 0, None, None] * pattern).sum(0) * packed[:, {d}]",
        ),
        *out,
    ]


def convolution_head_steps(
    o: ConvolutionOperands, first: Step, source: str, inputs: Mapping[str, Tensor]
) -> list[Step]:
    """One tap for one query: `first` is the step of its row, `source` the code of all rows, which reads `inputs`."""
    n, layer, i, tap = o.of_all, o.of_all.layer, o.query, o.head
    indirect = replace(n.proofs["v"], direct=False)
    given = {**inputs, **linear_inputs(layer.W_K, "K"), **linear_inputs(layer.W_V, "V")}
    product = f"u = (source{linear_code(layer.W_K, 'K')}) * (source{linear_code(layer.W_V, 'V')})"
    row = Maker("", n.proofs["z"], ("keys",))(
        "map",
        *_MAP,
        rf"M_{{{i},j}} = 1 \text{{ where }} {i} - j = {tap}, \text{{ else }} 0",
        rf"\sum_j M_{{{i},j}} = {latex.number(float(o.pattern.sum()))}",
        rf"M_{{{i}}}",
        o.pattern,
        f"pattern = ({i} - torch.arange(len(v)) == {tap}).to(v.dtype)",
        edited=bool(n.by_hand),
    )
    gate = f"opened = z * (x{linear_code(layer.W_Q, 'Q')})"
    opened = _through_gate(n, "opened", rf"z'_{{{i}}}", o.read, gate, linear_inputs(layer.W_Q, "Q"))
    return [
        replace(first, proof=indirect),
        _gated(n, Maker("", indirect, ("keys", "features")), f"{source}\n{product}", given),
        _values(n, "", tap),
        row,
        *mixing_steps(o, opened),
    ]


_MAP = (
    N_("The map: which token each tap reads"),
    N_(
        "A convolution compares nothing: tap t reads the one token t places back, with weight 1, in every text. There is no "
        "softmax, and before the first token there is nothing. What differs from text to text is only what is read."
    ),
)


def _gated(n: ConvolutionNumbers, make: Maker, code: str, inputs: Mapping[str, Tensor]) -> Step:
    return make(
        "gated",
        N_("The first gate"),
        N_(
            "Each value is multiplied by a number made of the same token, its key (the paper calls query, key and value C, B "
            "and x): a token says itself how much of it is to be read. These rows, u, are what the filter reads, and all that a "
            "cache keeps of a text: the latest ones, one fewer than the filter has taps."
        ),
        r"u_{j,c} = k_{j,c}\,v_{j,c}",
        rf"u_{{0,0}} = {latex.factor(n.k[0, 0])} \cdot {latex.factor(n.w[0, 0])} = {latex.number(n.u[0, 0])}",
        "U",
        n.u,
        code,
        inputs=dict(inputs),
    )


def _values(n: ConvolutionNumbers, prefix: str, tap: int | None) -> Step:
    """Of one tap, or (None) of all."""
    layer, t = n.layer, tap or 0
    chosen, inputs = ("taps[:, None]", {"taps": layer.taps.detach()})
    if tap is not None:
        chosen, inputs = "tap", {"tap": layer.taps[tap].detach()}
    code, bias = f"v = {chosen} * u", layer.filter_bias if t == 0 else None
    if bias is not None:
        inputs["filter_bias"] = bias.detach()
        code += "\nv = torch.cat([v[:1] + filter_bias, v[1:]])" if tap is None else " + filter_bias"
    add = "" if bias is None else f" + {latex.factor(float(n.bias[0]))}"
    axes = ("heads", "keys", "features") if tap is None else ("keys", "features")
    return Maker(prefix, n.proofs["v"])(
        "v",
        N_("Values: what each tap hands over"),
        N_(
            "A tap is one place of the filter, with a weight for each number of a row. Each tap is a head of its own here: what "
            "it hands over of a token is the token's row u, number by number times these weights."
        ),
        rf"v_{{t,j}} = f_t \odot u_j{'' if bias is None else ' + b'}",
        rf"v_{{{t},0,0}} = {latex.factor(n.taps[t, 0])} \cdot {latex.factor(n.u[0, 0])}{add} = {latex.number(n.v[t, 0, 0])}",
        "V",
        n.v if tap is None else n.v[tap],
        code,
        axes=axes,
        inputs=inputs,
    )


def _through_gate(
    n: ConvolutionNumbers, key: str, symbol: str, result: ndarray, code: str, inputs: Mapping[str, Tensor]
) -> Step:
    return Step(
        key,
        N_("Through the second gate"),
        N_(
            "What was read is multiplied, number by number, by the query: what the token that asks has no use for is held back."
        ),
        r"y_{i,c} \leftarrow q_{i,c}\,y_{i,c}",
        rf"y_{{0}} \leftarrow {latex.number(float(result.flat[0]))}",
        symbol,
        result,
        code,
        replace(n.proofs["opened"], direct=False),
        axes=ROWS if result.ndim > 1 else ("features",),
        inputs=dict(inputs),
    )
