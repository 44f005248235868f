"""A layer that keeps a state (`vizformer.model.state_rule`) as steps: all of it, or one head for one query.

    [q k v] = silu(conv(x [W_Q W_K W_V])) -> q, k (of length 1) -> gates -> what the state keeps, (holds under the key,) is
    written, and becomes -> o = S^T q (+ D v) -> the map M, of which o = M v -> norm and gate -> W_O -> add

What is in brackets, only the delta rule has, or only a state space.

Source: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule", section 3; Dao & Gu 2024, "Transformers
are SSMs", sections 5 to 7.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import Checkpoint
from vizformer.explain import latex
from vizformer.explain.arrays import stored
from vizformer.explain.layer_projections import joined_heads
from vizformer.explain.mixing import mixing_steps
from vizformer.explain.operands import Operands
from vizformer.explain.site import find_site
from vizformer.explain.state_numbers import StateNumbers
from vizformer.explain.step import Axis, Contraction, Made, Maker, Operand, Step
from vizformer.explain.sublayer import MAPS, ROWS, Sublayer, norm_before, through_output
from vizformer.messages import N_
from vizformer.model.input_check import row_at
from vizformer.model.state_layers import GatedDeltaRule, StateLayer, StateSpace
from vizformer.model.trace import Trace

_READ = '(v[..., t, :] - torch.einsum("...kv,...k->...v", S, k[..., t, :]))'
_SPACE_TEXTS = {
    "q": (N_("Queries"), N_("The first columns are the queries, called C in the paper: what the state is asked for.")),
    "k": (
        N_("Keys"),
        N_(
            "The next columns are the keys, called B in the paper: under which directions of the state a value is written. Heads of "
            "a group have the same queries and keys."
        ),
    ),
}
_OF_LENGTH_1 = "{name} = {name} * torch.rsqrt({name}.square().sum(-1, keepdim=True) + 1e-6)"
_RUN = """S = torch.zeros({shape})
for t in range({at}):  # the tokens before
    S = left[..., t, None, None] * S
    u = beta[..., t, None] * {u}
    S = S + k[..., t, :, None] * u[..., None, :]
kept = left[..., {at}, None, None] * S"""
_MAP = """c = decay.cumsum(-1)
G = (c[..., :, None] - c[..., None, :]).exp().tril()  # what is left at i of what was written at j
"""
_DELTA_MAP = """system = torch.eye({n}) + torch.tril(beta[..., None] * (k @ k.mT) * G, -1)
scores = {q} @ k.mT * {scale!r} * G{rows}
pattern = (torch.linalg.solve_triangular(system, scores, upper=False, left=False) * beta[..., None, :]){row}"""
_SPACE_MAP = """pattern = ({q} @ k.mT * G{rows} * beta[..., None, :]){row}
pattern = pattern + {skip} * torch.eye({n}){rows}"""


@dataclass(frozen=True)
class StateOperands(Operands):
    """One head and one query, as `mixing_steps` asks for them: M in the place of the weights."""

    numbers: StateNumbers | None = None

    @property
    def of_all(self) -> StateNumbers:
        assert self.numbers is not None
        return self.numbers

    @property
    def q_recomputed(self) -> Float[ndarray, " d_key"]:
        return self.of_all.q[self.head, self.query]

    def projection_sizes(self, letter: str) -> ndarray | float:
        """0: a convolution and a length come after the product."""
        return 0.0

    @property
    def v_recomputed(self) -> Float[ndarray, "n d_value"]:
        return self.of_all.v[self.head]

    @cached_property
    def pattern(self) -> Float[ndarray, " n"]:
        found: ndarray = self.of_all.map(slice(self.head, self.head + 1))[0, self.query]
        return found

    @property
    def z(self) -> Float[ndarray, " d_value"]:
        return self.of_all.o[self.head, self.query]

    @property
    def opened(self) -> Float[ndarray, " d_value"]:
        return self.of_all.opened[self.head, self.query]


def gather_state(checkpoint: Checkpoint, trace: Trace, site: str, head: int, query: int) -> StateOperands:
    """The operands of one head and query."""
    found, record = find_site(checkpoint, trace, site), trace[site]
    record.check(head)
    query = row_at(query, int(record.q.shape[1]))
    o = StateOperands(trace, found, record, head, query, None)
    assert isinstance(found.attention, StateLayer)
    return replace(o, numbers=StateNumbers(found.attention, trace, site, o.source, query))


def state_sublayer(at: Sublayer, layer: StateLayer, site: str) -> list[Step]:
    """All heads and tokens of a layer; the state is followed to the last token."""
    n = StateNumbers(layer, at.trace, site, at.read, len(at.x) - 1)
    z = stored(n.map() @ n.v, at.dtype)
    joined = joined_heads(stored(n.o * n.opened, at.dtype))
    __, out = through_output(at, layer.W_O, joined)
    return [
        *norm_before(at, replace(n.proofs["v"], direct=False)),
        *rule_steps(n, Maker(at.key(""), n.proofs["o"]), None, "x", {}),
        at.maker(n.proofs["o"], ("heads", "queries", "features"))(
            "z",
            N_("Mix the values"),
            N_("In each head, every query gets the sum of the values, each times its number in the map."),
            "Z = M V",
            rf"Z_{{0,0}} = {latex.sum_of_products(n.map(slice(1))[0, 0], n.v[0, :, 0])} = {latex.number(z[0, 0, 0])}",
            "Z",
            z,
            "z = pattern @ v",
        ),
        _gate(n, at.key("concat"), None, 0, r"\mathrm{concat}", joined),
        *out,
    ]


def _gate(n: StateNumbers, key: str, head: int | None, i: int, symbol: str, result: ndarray) -> Step:
    """What was read through its norm and gate: of one head and query, or (shown: query `i` of head 0) of all."""
    layer, norm, gate, joined = n.layer, n.layer.norm, n.layer.W_gate, head is None
    assert gate is not None
    d, z, opened = layer.d_head, n.o[head or 0, i, 0], n.opened[head or 0, i, 0]
    own = slice(None) if head is None else slice(head * d, (head + 1) * d)
    inputs = {"weight": norm.weight.detach(), "W_gate": gate.weight[own].detach().T}
    if gate.bias is not None:
        inputs["b_gate"] = gate.bias[own].detach()
    silu = f"F.silu(x @ W_gate{'' if gate.bias is None else ' + b_gate'})"
    rows = "joined = z.transpose(0, 1).flatten(1)" if joined else "opened = z"
    if n.corrects:
        code = f"z = z * torch.rsqrt(z.square().mean(-1, keepdim=True) + {norm.eps!r}) * weight\n{rows} * {silu}"
    elif joined:
        code = (
            f"{rows} * {silu}\ngroups = joined.unflatten(-1, ({layer.n_key_heads}, -1))\n"
            f"groups = groups * torch.rsqrt(groups.square().mean(-1, keepdim=True) + {norm.eps!r})\n"
            "joined = groups.flatten(-2) * weight"
        )
    else:
        code = f"{rows} * {silu} / root * weight  # root: of the mean square over all heads of the group"
        inputs |= {"weight": norm.weight[own].detach(), "root": torch.from_numpy(n.root[head, i]).to(n.dtype)}
    return Step(
        key,
        N_("Normalise, and through the gate") if n.corrects else N_("Through the gate, and normalise"),
        N_(
            "What was read goes through a norm, so that its size says nothing, and each number through a gate, the SiLU of one "
            "more product with the input: what a token has no use for is held back."
        )
        if n.corrects
        else N_(
            "Each number goes through a gate, the SiLU of one more product with the input: what a token has no use for is held "
            "back. A norm then brings the numbers of {n} heads together to a standard size.",
            n=n.group,
        ),
        r"z'_i = \frac{z_i}{\sqrt{\overline{z_i^2} + \epsilon}} \odot w \odot \mathrm{SiLU}(x_i\,W_\mathrm{gate})"
        if n.corrects
        else r"z'_i = \frac{y_i}{\sqrt{\overline{y_i^2} + \epsilon}} \odot w, \qquad y_i = z_i \odot "
        r"\mathrm{SiLU}(x_i\,W_\mathrm{gate})",
        rf"z'_0 = {latex.number(z)} \cdot {latex.factor(opened)} = {latex.number(z * opened)}",
        symbol,
        result,
        code,
        replace(n.proofs["opened"], direct=False),
        axes=ROWS if joined else ("features",),
        inputs=inputs,
    )


def state_head_steps(o: StateOperands, first: Step, source: str, inputs: dict[str, Tensor]) -> list[Step]:
    """One head for one query: `first` is the step of its row, `source` the code of all rows, which reads `inputs`."""
    n = o.of_all
    opened = _gate(n, "opened", o.head, o.query, rf"z'_{{{o.query}}}", o.read)
    steps = rule_steps(n, Maker("", n.proofs["o"]), o.head, source, inputs)
    return [first, *steps, *mixing_steps(o, opened)]


def _cut_out(letter: str, cut: str, query: int | None, group: int, more: str = "") -> str:
    """The code of the queries or keys: columns of the mixed rows, of one query where it is named, and what comes after."""
    row = "" if query is None else f"[{query}]"
    shared = f"\n{letter} = {letter}.repeat_interleave({group}, dim=0)" if group > 1 else ""
    return f"{letter} = mixed{cut}{row}" + (more and f"\n{more.format(name=letter)}") + shared


def _gates(n: StateNumbers, make: Maker, head: int | None, x: str) -> list[Step]:
    """How much is written, and how much is kept."""
    layer, i, first, axes = n.layer, n.at, head or 0, make.axes
    mT = "" if head is not None else ".mT"

    def own(weight: Tensor) -> Tensor:
        found = weight.detach() if head is None else weight[head].detach()
        return found if found.ndim < 2 else found.T

    def of(value: ndarray) -> ndarray:
        return value if head is None else value[head]

    bias = layer.bias if layer.W_a.bias is None else layer.bias + layer.W_a.bias
    into = {"W_a": own(layer.W_a.weight), "bias": own(bias)}
    written, step = rf"_{{{i}}} = {latex.number(n.beta[first, i])}", f"F.softplus({x} @ W_a + bias){mT}"
    if isinstance(layer, GatedDeltaRule):
        beta = make(
            "beta",
            N_("How much is written"),
            N_(
                "A gate for each token, 0 to 1: at 0 the state stays as it is, at 1 the key holds the new value afterwards."
            ),
            r"\beta_i = \sigma(x_i\,w_b)",
            rf"\beta{written}",
            r"\beta",
            of(n.beta),
            f"beta = torch.sigmoid({x} @ W_b){mT}",
            inputs={"W_b": own(layer.W_b.weight)},
        )
    else:
        assert isinstance(layer, StateSpace)
        least, most = layer.limits
        limited = bool(least) or most is not None
        beta = make(
            "beta",
            N_("How large a step"),
            N_(
                "A number above 0 for each token: how much of its value is written. The same step decides how much is "
                "forgotten, so that a token that writes nothing leaves the state as it is."
            ),
            r"\Delta_i = "
            + (r"\mathrm{clamp}(" if limited else "")
            + r"\mathrm{softplus}(x_i\,w_a + b)"
            + (
                rf",\,{least:g},\,{'infty' if most is None else f'{most:g}'})".replace("infty", r"\infty")
                if limited
                else ""
            ),
            rf"\Delta{written}",
            r"\Delta",
            of(n.beta),
            f"beta = {step}" + (f".clamp({least!r}, {most!r})" if limited else ""),
            inputs=into,
        )
        step, into = "beta", {}
    wide = "" if head is not None else "[:, None]"
    left = make(
        "left",
        N_("How much is kept"),
        N_("A second gate: the share of the whole state that is left before the token is written; 1 forgets nothing.")
        if n.corrects
        else N_(
            "The share of the whole state that is left before the token is written: the larger the step, the less."
        ),
        r"a_i = e^{g_i}, \qquad g_i = -e^{r}\," + (r"\mathrm{softplus}(x_i\,w_a + b)" if n.corrects else r"\Delta_i"),
        rf"a_{{{i}}} = e^{{{latex.number(n.decay[first, i])}}} = {latex.number(float(np.exp(n.decay[first, i])))}",
        "a",
        np.exp(of(n.decay)),
        f"decay = -rate.exp(){wide} * {step}\nleft = decay.exp()",
        proof=n.proofs["decay"],
        also=(Made("decay", Operand("g", N_("the logarithm of what is kept"), of(n.decay), axes)),),
        inputs={**into, "rate": own(layer.rate)},
    )
    return [beta, left]


def rule_steps(n: StateNumbers, make: Maker, head: int | None, source: str, given: dict[str, Tensor]) -> list[Step]:
    """From the matrices to the map: of all heads, or of one, without an axis of heads.

    `source` is the code of the rows that go in (or their name), `given` what it reads.
    """
    layer, i, one, first = n.layer, n.at, head is not None, head or 0
    x, line = ("source", f"{source}\n") if one else (source, "")
    axes: tuple[Axis, ...] = ("keys", "features") if one else ("heads", "keys", "features")
    state, row = (*axes[:-2], "features", "features"), (*axes[:-2], "features")
    columns, taps, d_key, d_value = n.channels(head), n.filters.shape[1], layer.d_key, layer.d_head
    keys, group = (d_key, 1) if one else (n.keys, n.group)
    c0, n_rows = int(columns[0]), len(n.x)

    def of(value: ndarray) -> ndarray:
        return value if head is None else value[head]

    def head_of(weight: Tensor) -> Tensor:
        """That of the head, where there is one only; of a matrix the columns of all, as in x W."""
        own = weight.detach() if head is None else weight[head].detach()
        return own if own.ndim < 2 else own.T

    given_filters = {"filters": layer.filters[torch.from_numpy(columns)].detach()}
    cuts = np.split(columns, [keys, 2 * keys])
    starts = (0, n.keys, 2 * n.keys)
    matrices = {
        f"W_{letter}": getattr(layer, f"W_{letter}").weight[torch.from_numpy(cut - start)].detach().T
        for letter, cut, start in zip("QKV", cuts, starts, strict=True)
    }
    W, bias = np.concatenate([t.double().cpu().numpy() for t in matrices.values()], axis=1), None
    if n.biases:
        matrices["b"] = torch.cat(n.biases)[torch.from_numpy(columns)].detach()
        bias = matrices["b"].double().cpu().numpy()
    if layer.filter_bias is not None:
        given_filters["filter_bias"] = layer.filter_bias[torch.from_numpy(columns)].detach()
    to_v, to_o = replace(n.proofs["v"], direct=False), replace(n.proofs["o"], direct=False)
    mixed, rows = n.mixed[:, columns], Maker(make.prefix, to_v, ("keys", "features"))
    gates = Maker(make.prefix, n.proofs["beta"], axes[:-1])
    v, M = of(n.v), n.map() if head is None else n.map(slice(head, head + 1))[0, i]
    kept, u, S, o = of(n.kept), of(n.u), of(n.S), of(n.o)[..., i, :]
    skip = "" if layer.skip is None else latex.factor(float(layer.skip[first]))
    own = latex.number(n.v[first, i, 0])
    asked = rf"({own} - {latex.factor(n.held[first, 0])})" if n.corrects else latex.factor(n.v[first, i, 0])
    k_i, k_0 = f"k[..., {i}, :]", n.k[first, i]
    cut = f"[:, {{}}]{'' if one else '.unflatten(-1, (-1, {}))'}{'' if one else '.transpose(0, 1)'}"
    units = []
    for letter, at, rest in (("q", f":{keys}", i if one else slice(None)), ("k", f"{keys}:{2 * keys}", slice(None))):
        value = of(getattr(n, letter))[rest]
        units.append(
            make(
                letter,
                *_SPACE_TEXTS[letter],
                rf"{letter.upper()} = Y_{{:,\,{'' if letter == 'q' else 'd_k'}:{'d_k' if letter == 'q' else '2 d_k'}}}",
                rf"{letter}_{{{i}}} = {latex.row(getattr(n, letter)[first, i])}",
                letter.upper() if value.ndim > 1 else rf"q_{{{i}}}",
                value,
                _cut_out(letter, cut.format(at, d_key), i if one and letter == "q" else None, group),
                proof=n.proofs[letter],
                axes=axes if value.ndim == len(axes) else ("features",),
            )
            if not n.corrects
            else make(
                letter,
                N_("Queries of length 1") if letter == "q" else N_("Keys of length 1"),
                N_("Each query is divided by its length: only its direction says what is asked for.")
                if letter == "q"
                else N_(
                    "Each key is divided by its length: writing under it then replaces what it held, neither more nor less."
                ),
                rf"{letter} \leftarrow \frac{{{letter}}}{{\sqrt{{|{letter}|^2 + 10^{{-6}}}}}}",
                rf"|{letter}| = {latex.number(float(np.linalg.norm(getattr(n, letter)[first, i])))}",
                letter.upper() if value.ndim > 1 else rf"q_{{{i}}}",
                value,
                _cut_out(letter, cut.format(at, d_key), i if one and letter == "q" else None, group, _OF_LENGTH_1),
                proof=n.proofs[letter],
                axes=axes if value.ndim == len(axes) else ("features",),
            )
        )
    held = make(
        "held",
        N_("Read what the key holds already"),
        N_("The state answers the new key: what it would say if it were asked for this token now."),
        r"r_i = \hat S_i^\top k_i",
        rf"r_0 = {latex.sum_of_products(k_0, n.kept[first, :, 0])} = {latex.number(n.held[first, 0])}",
        "r",
        of(n.held),
        f'held = torch.einsum("...kv,...k->...v", kept, {k_i})',
        proof=to_o,
        axes=row,
        contraction=Contraction(k_0[None], kept) if one else None,
    )
    return [
        rows(
            "packed",
            N_("One product for Q, K and V"),
            N_(
                "The three matrices stand side by side, so that one product [{n} × {d}] · [{d} × {width}] gives all three.",
                n=n_rows,
                d=n.x.shape[1],
                width=W.shape[1],
            ),
            r"[Q \mid K \mid V] = X\,[W_Q \mid W_K \mid W_V]",
            rf"Q_{{0,0}} = {latex.sum_of_products(n.x[0], W[:, 0], None if bias is None else float(bias[0]))} = "
            rf"{latex.number(n.packed[0, c0])}",
            r"[Q \mid K \mid V]",
            n.packed[:, columns],
            f"{line}W = torch.cat([W_Q, W_K, W_V], dim=1)\npacked = {x} @ W{'' if bias is None else ' + b'}",
            operands=(Operand("X", N_("the input, one row per token"), n.x, ("keys", "features")),),
            contraction=Contraction(n.x, W, bias),
            inputs={**given, **matrices},
        ),
        rows(
            "convolved",
            N_("A short convolution"),
            N_(
                "Each number becomes a weighted sum of itself and of the {before} before it in its column: a token takes in what "
                "stands right before it. Each column has weights of its own; before the first token there are zeros.",
                before=taps - 1,
            ),
            r"y_{i,c} = \sum_{t=0}^{"
            + str(taps - 1)
            + rf"}} f_{{c,t}}\,p_{{i-{taps - 1}+t,\,c}}"
            + ("" if layer.filter_bias is None else " + b_c"),
            rf"y_{{{i},0}} = {latex.sum_of_products(n.filters[c0], n.padded[i : i + taps, c0], None if layer.filter_bias is None else float(layer.filter_bias[c0]))} = {latex.number(n.convolved[i, c0])}",
            "Y",
            n.convolved[:, columns],
            f"before = F.pad(packed.mT, ({taps - 1}, 0))\n"
            f"convolved = F.conv1d(before[None], {', '.join(given_filters)}, groups={len(columns)})[0].mT",
            inputs=given_filters,
        ),
        rows(
            "mixed",
            N_("SiLU"),
            N_("Each number times its own sigmoid: large ones pass, those below 0 are almost shut off."),
            r"y \leftarrow y \cdot \sigma(y)",
            rf"y_{{{i},0}} \leftarrow {latex.number(n.convolved[i, c0])} \cdot \sigma({latex.number(n.convolved[i, c0])}) = {latex.number(n.mixed[i, c0])}",
            "Y",
            mixed,
            "mixed = F.silu(convolved)",
        ),
        make(
            "v",
            N_("Values: what is to be written"),
            N_("The last columns are the values, as they are."),
            r"V = Y_{:,\,2 d_k:}",
            rf"v_{{{i}}} = {latex.row(n.v[first, i])}",
            "V",
            v,
            f"v = mixed{cut.format(f'{2 * keys}:', d_value)}",
            proof=n.proofs["v"],
            axes=axes,
        ),
        *units,
        *_gates(n, gates, head, x),
        make(
            "kept",
            N_("Forget: what is left of the state"),
            N_(
                "The state, {rows} × {columns} numbers, holds all earlier tokens, however many there are. Before token {i} is written, "
                "all of it is multiplied by a.",
                rows=d_key,
                columns=d_value,
                i=i,
            ),
            r"\hat S_i = a_i\,S_{i-1}",
            rf"\hat S_{{0,0}} = {latex.number(kept.reshape(-1)[0])}",
            r"\hat S",
            kept,
            ("q, k, v, beta = (t.float() for t in (q, k, v, beta))\n" if n.short else "")
            + _RUN.format(shape=", ".join(map(str, S.shape)), at=i, u=_READ if n.corrects else "v[..., t, :]"),
            proof=to_o,
            axes=state,
        ),
        *([held] if n.corrects else []),
        make(
            "u",
            N_("Correct: the difference is what is written") if n.corrects else N_("The value, times its step"),
            N_("Not the value itself, but what it is more than the answer, times β. A softmax has no such step.")
            if n.corrects
            else N_("Whatever the state holds under the key already, the value comes on top: nothing is corrected."),
            r"u_i = \beta_i\,(v_i - r_i)" if n.corrects else r"u_i = \Delta_i\,v_i",
            rf"u_0 = {latex.number(n.beta[first, i])} \cdot {asked} = {latex.number(n.u[first, 0])}",
            "u",
            u,
            f"u = beta[..., {i}, None] * {'(' if n.corrects else ''}v[..., {i}, :]{' - held)' if n.corrects else ''}",
            proof=to_o,
            axes=row,
        ),
        make(
            "S",
            N_("Write: the state after the token"),
            N_(
                "Every number of the key times every number of what is written, added: the state has the same size as before."
            ),
            r"S_i = \hat S_i + k_i\,u_i^\top",
            rf"S_{{0,0}} = {latex.number(n.kept[first, 0, 0])} + {latex.factor(k_0[0])} \cdot {latex.factor(n.u[first, 0])} = {latex.number(n.S[first, 0, 0])}",
            "S",
            S,
            f"S = kept + {k_i}[..., :, None] * u[..., None, :]",
            proof=to_o,
            axes=state,
        ),
        make(
            "o",
            N_("Read the state with the query"),
            N_("The query asks the corrected state. It is compared with no key, and there is no softmax.")
            if n.corrects
            else N_(
                "The query asks the state, and the token's own value is added once more, times D, a number that each head has "
                "learned. The query is compared with no key, and there is no softmax."
            ),
            r"o_i = S_i^\top q_i / \sqrt{d_k}" if n.corrects else r"o_i = S_i^\top q_i + D\,v_i",
            rf"o_0 = {latex.sum_of_products(n.q[first, i], n.S[first, :, 0])} + {skip} \cdot {latex.factor(n.v[first, i, 0])} = {latex.number(n.o[first, i, 0])}"
            if skip
            else rf"o_0 = ({latex.sum_of_products(n.q[first, i], n.S[first, :, 0])}) / \sqrt{{{d_key}}} = {latex.number(n.o[first, i, 0])}",
            "o",
            o,
            f'o = torch.einsum("...kv,...k->...v", S, {"q" if one else f"q[:, {i}]"})'
            + (f" + D[..., None] * v[..., {i}, :]" if skip else f" * {n.scale!r}"),
            axes=row,
            inputs={} if layer.skip is None else {"D": head_of(layer.skip)},
        ),
        make(
            "map",
            N_("The same as a map over the values"),
            N_(
                "All of this is linear in the values, so that there are numbers M with o = M v: exact, with both signs, and with "
                "rows that sum to anything. Here |M v − o| / |o| = {error}, with o of the model.",
                error=f"{n.map_error(head):.0e}",
            ),
            r"M = \mathrm{tril}(Q K^\top \odot G)\,\big(I + \mathrm{stril}(\mathrm{diag}(\beta) K K^\top \odot G)\big)^{-1} \mathrm{diag}(\beta)"
            if n.corrects
            else r"M = L \odot (Q K^\top)\,\mathrm{diag}(\Delta) + D\,I, \qquad L_{i,j} = a_{j+1} \cdots a_i",
            rf"\sum_j M_{{{i},j}} = {latex.sum_of(M if one else M[0, i])} = {latex.number(float((M if one else M[0, i]).sum()))}",
            "M" if not one else rf"M_{{{i}}}",
            M,
            (_MAP + (_DELTA_MAP if n.corrects else _SPACE_MAP)).format(
                skip="D" if one else "D[:, None, None]",
                n=n_rows,
                q="q[None]" if one else "q",
                rows=f"[{i}]" if one else "",
                row="[0]" if one else "",
                scale=n.scale,
            ),
            axes=("keys",) if one else MAPS,
        ),
    ]
