"""The gated delta rule (`vizformer.model.delta_rule`) as steps: of a whole layer, or of one head for one query.

    [q k v] = silu(conv(x [W_Q W_K W_V])) -> q, k of length 1 -> gates -> what the state keeps, holds under the key, is
    corrected by, and becomes -> o = S^T q -> the map M, of which o = M v -> norm and gate -> W_O -> add

Source: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule", section 3.
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
from vizformer.explain.delta_rule_numbers import DeltaNumbers
from vizformer.explain.layer_projections import joined_heads
from vizformer.explain.mixing import mixing_steps
from vizformer.explain.operands import Operands
from vizformer.explain.site import find_site
from vizformer.explain.step import Axis, Contraction, Made, Maker, Operand, Step
from vizformer.explain.sublayer import MAPS, ROWS, Sublayer, norm_before, through_output
from vizformer.messages import N_
from vizformer.model.gated_delta_layer import GatedDeltaRule
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace

_OF_LENGTH_1 = "{name} = {name} * torch.rsqrt({name}.square().sum(-1, keepdim=True) + 1e-6)"
_RUN = """S = torch.zeros({shape})
for t in range({at}):  # the tokens before
    S = left[..., t, None, None] * S
    u = beta[..., t, None] * (v[..., t, :] - torch.einsum("...kv,...k->...v", S, k[..., t, :]))
    S = S + k[..., t, :, None] * u[..., None, :]
kept = left[..., {at}, None, None] * S"""
_MAP = """c = decay.cumsum(-1)
G = (c[..., :, None] - c[..., None, :]).exp().tril()  # what is left at i of what was written at j
system = torch.eye({n}) + torch.tril(beta[..., None] * (k @ k.mT) * G, -1)
scores = {q} @ k.mT * {scale!r} * G{rows}
pattern = (torch.linalg.solve_triangular(system, scores, upper=False, left=False) * beta[..., None, :]){row}"""


@dataclass(frozen=True)
class DeltaOperands(Operands):
    """One head and one query of the rule, as `mixing_steps` asks for them: M in the place of the weights."""

    numbers: DeltaNumbers | None = None

    @property
    def of_all(self) -> DeltaNumbers:
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


def gather_delta(checkpoint: Checkpoint, trace: Trace, site: str, head: int, query: int) -> DeltaOperands:
    """The operands of one head and query."""
    found, record = find_site(checkpoint, trace, site), trace[site]
    record.check(head)
    query = row_at(query, int(record.q.shape[1]))
    o = DeltaOperands(trace, found, record, head, query, None)
    assert isinstance(found.attention, GatedDeltaRule)
    return replace(o, numbers=DeltaNumbers(found.attention, trace, site, o.source, query))


def delta_sublayer(at: Sublayer, layer: GatedDeltaRule, site: str) -> list[Step]:
    """All heads and tokens of a layer; the state is followed to the last token."""
    n = DeltaNumbers(layer, at.trace, site, at.read, len(at.x) - 1)
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
        _gate(n, at.key("concat"), slice(None), (n.o[0, 0], n.opened[0, 0]), r"\mathrm{concat}", joined),
        *out,
    ]


def _gate(n: DeltaNumbers, key: str, own: slice, row: tuple[ndarray, ndarray], symbol: str, result: ndarray) -> Step:
    """What was read through its norm and gate: of one head and query, or of all, side by side."""
    norm, (z, opened), gate, joined = n.layer.norm, row, n.layer.W_gate, result.ndim > 1
    assert gate is not None
    return Step(
        key,
        N_("Normalise, and through the gate"),
        N_(
            "What was read goes through a norm, so that its size says nothing, and each number through a gate, the SiLU of one "
            "more product with the input: what a token has no use for is held back."
        ),
        r"z'_i = \frac{z_i}{\sqrt{\overline{z_i^2} + \epsilon}} \odot w \odot \mathrm{SiLU}(x_i\,W_\mathrm{gate})",
        rf"z'_0 = {latex.number(z[0])} \cdot {latex.factor(opened[0])} = {latex.number(z[0] * opened[0])}",
        symbol,
        result,
        f"z = z * torch.rsqrt(z.square().mean(-1, keepdim=True) + {norm.eps!r}) * weight\n"
        + ("joined = z.transpose(0, 1).flatten(1)" if joined else "opened = z")
        + " * F.silu(x @ W_gate)",
        replace(n.proofs["opened"], direct=False),
        axes=ROWS if joined else ("features",),
        inputs={"weight": norm.weight.detach(), "W_gate": gate.weight[own].detach().T},
    )


def delta_head_steps(o: DeltaOperands, first: Step, source: str, inputs: dict[str, Tensor]) -> list[Step]:
    """One head for one query: `first` is the step of its row, `source` the code of all rows, which reads `inputs`."""
    n, i, own = o.of_all, o.query, slice(o.head * o.d_head, (o.head + 1) * o.d_head)
    opened = _gate(n, "opened", own, (o.z, o.opened), rf"z'_{{{i}}}", o.read)
    steps = rule_steps(n, Maker("", n.proofs["o"]), o.head, source, inputs)
    return [first, *steps, *mixing_steps(o, opened)]


def rule_steps(n: DeltaNumbers, make: Maker, head: int | None, source: str, given: dict[str, Tensor]) -> list[Step]:
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

    cuts = np.split(columns, [keys, 2 * keys])
    starts = (0, n.keys, 2 * n.keys)
    matrices = {
        f"W_{letter}": getattr(layer, f"W_{letter}").weight[torch.from_numpy(cut - start)].detach().T
        for letter, cut, start in zip("QKV", cuts, starts, strict=True)
    }
    W = np.concatenate([t.double().cpu().numpy() for t in matrices.values()], axis=1)
    to_v, to_o = replace(n.proofs["v"], direct=False), replace(n.proofs["o"], direct=False)
    mixed, rows = n.mixed[:, columns], Maker(make.prefix, to_v, ("keys", "features"))
    gates, mT = Maker(make.prefix, n.proofs["beta"], axes[:-1]), "" if one else ".mT"
    v, M = of(n.v), n.map() if head is None else n.map(slice(head, head + 1))[0, i]
    kept, held, u, S, o = of(n.kept), of(n.held), of(n.u), of(n.S), of(n.o)[..., i, :]
    k_i, k_0 = f"k[..., {i}, :]", n.k[first, i]
    cut = f"[:, {{}}]{'' if one else '.unflatten(-1, (-1, {}))'}{'' if one else '.transpose(0, 1)'}"
    units = []
    for letter, at, rest in (("q", f":{keys}", i if one else slice(None)), ("k", f"{keys}:{2 * keys}", slice(None))):
        value = of(getattr(n, letter))[rest]
        units.append(
            make(
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
                f"{letter} = mixed{cut.format(at, d_key)}"
                + (f"[{i}]" if one and letter == "q" else "")
                + "\n"
                + _OF_LENGTH_1.format(name=letter)
                + (f"\n{letter} = {letter}.repeat_interleave({group}, dim=0)" if group > 1 else ""),
                proof=n.proofs[letter],
                axes=axes if value.ndim == len(axes) else ("features",),
            )
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
            rf"Q_{{0,0}} = {latex.sum_of_products(n.x[0], W[:, 0])} = {latex.number(n.packed[0, c0])}",
            r"[Q \mid K \mid V]",
            n.packed[:, columns],
            f"{line}W = torch.cat([W_Q, W_K, W_V], dim=1)\npacked = {x} @ W",
            operands=(Operand("X", N_("the input, one row per token"), n.x, ("keys", "features")),),
            contraction=Contraction(n.x, W),
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
            r"y_{i,c} = \sum_{t=0}^{" + str(taps - 1) + rf"}} f_{{c,t}}\,p_{{i-{taps - 1}+t,\,c}}",
            rf"y_{{{i},0}} = {latex.sum_of_products(n.filters[c0], n.padded[i : i + taps, c0])} = {latex.number(n.convolved[i, c0])}",
            "Y",
            n.convolved[:, columns],
            f"before = F.pad(packed.mT, ({taps - 1}, 0))\n"
            f"convolved = F.conv1d(before[None], filters, groups={len(columns)})[0].mT",
            inputs={"filters": layer.filters[torch.from_numpy(columns)].detach()},
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
        gates(
            "beta",
            N_("How much is written"),
            N_(
                "A gate for each token, 0 to 1: at 0 the state stays as it is, at 1 the key holds the new value afterwards."
            ),
            r"\beta_i = \sigma(x_i\,w_b)",
            rf"\beta_{{{i}}} = {latex.number(n.beta[first, i])}",
            r"\beta",
            of(n.beta),
            f"beta = torch.sigmoid({x} @ W_b){mT}",
            inputs={"W_b": head_of(layer.W_b.weight)},
        ),
        gates(
            "left",
            N_("How much is kept"),
            N_(
                "A second gate: the share of the whole state that is left before the token is written; 1 forgets nothing."
            ),
            r"a_i = e^{g_i}, \qquad g_i = -e^{r}\,\mathrm{softplus}(x_i\,w_a + b)",
            rf"a_{{{i}}} = e^{{{latex.number(n.decay[first, i])}}} = {latex.number(float(np.exp(n.decay[first, i])))}",
            "a",
            np.exp(of(n.decay)),
            f"decay = -rate.exp() * F.softplus({x} @ W_a + bias)\n"
            + ("" if one else "decay = decay.mT\n")
            + "left = decay.exp()",
            proof=n.proofs["decay"],
            also=(Made("decay", Operand("g", N_("the logarithm of what is kept"), of(n.decay), axes[:-1])),),
            inputs={"W_a": head_of(layer.W_a.weight), "rate": head_of(layer.rate), "bias": head_of(layer.bias)},
        ),
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
            + _RUN.format(shape=", ".join(map(str, S.shape)), at=i),
            proof=to_o,
            axes=state,
        ),
        make(
            "held",
            N_("Read what the key holds already"),
            N_("The state answers the new key: what it would say if it were asked for this token now."),
            r"r_i = \hat S_i^\top k_i",
            rf"r_0 = {latex.sum_of_products(k_0, n.kept[first, :, 0])} = {latex.number(n.held[first, 0])}",
            "r",
            held,
            f'held = torch.einsum("...kv,...k->...v", kept, {k_i})',
            proof=to_o,
            axes=row,
            contraction=Contraction(k_0[None], kept) if one else None,
        ),
        make(
            "u",
            N_("Correct: the difference is what is written"),
            N_("Not the value itself, but what it is more than the answer, times β. A softmax has no such step."),
            r"u_i = \beta_i\,(v_i - r_i)",
            rf"u_0 = {latex.number(n.beta[first, i])} \cdot ({latex.number(n.v[first, i, 0])} - {latex.factor(n.held[first, 0])}) = {latex.number(n.u[first, 0])}",
            "u",
            u,
            f"u = beta[..., {i}, None] * (v[..., {i}, :] - held)",
            proof=to_o,
            axes=row,
        ),
        make(
            "S",
            N_("Write: the state after the token"),
            N_(
                "Every number of the key times every number of the correction, added: the state has the same size as before."
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
            N_("The query asks the corrected state. It is compared with no key, and there is no softmax."),
            r"o_i = S_i^\top q_i / \sqrt{d_k}",
            rf"o_0 = ({latex.sum_of_products(n.q[first, i], n.S[first, :, 0])}) / \sqrt{{{d_key}}} = {latex.number(n.o[first, i, 0])}",
            "o",
            o,
            f'o = torch.einsum("...kv,...k->...v", S, {"q" if one else f"q[:, {i}]"}) * {n.scale!r}',
            axes=row,
        ),
        make(
            "map",
            N_("The same as a map over the values"),
            N_(
                "All of this is linear in the values, so that there are numbers M with o = M v: exact, with both signs, and with "
                "rows that sum to anything. Here |M v − o| / |o| = {error}, with o of the model.",
                error=f"{n.map_error(head):.0e}",
            ),
            r"M = \mathrm{tril}(Q K^\top \odot G)\,\big(I + \mathrm{stril}(\mathrm{diag}(\beta) K K^\top \odot G)\big)^{-1} \mathrm{diag}(\beta)",
            rf"\sum_j M_{{{i},j}} = {latex.sum_of(M if one else M[0, i])} = {latex.number(float((M if one else M[0, i]).sum()))}",
            "M" if not one else rf"M_{{{i}}}",
            M,
            _MAP.format(
                n=n_rows,
                q="q[None]" if one else "q",
                rows=f"[{i}]" if one else "",
                row="[0]" if one else "",
                scale=n.scale,
            ),
            axes=("keys",) if one else MAPS,
        ),
    ]
