"""What goes into a state as steps: one product, a short convolution and a SiLU, of which q, k and v are cut; and the gates."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from vizformer.explain import latex
from vizformer.explain.state_numbers import StateNumbers
from vizformer.explain.state_words import WORDS, StateWords
from vizformer.explain.step import Axis, Contraction, Made, Maker, Operand, Step
from vizformer.messages import N_

_OF_LENGTH_1 = "\n{0} = {0} * torch.rsqrt({0}.square().sum(-1, keepdim=True) + 1e-6)"


@dataclass(frozen=True)
class Followed:
    """What of a layer is followed: one head, whose numbers have no axis of heads, or (None) all of them."""

    n: StateNumbers
    prefix: str
    head: int | None

    @property
    def first(self) -> int:
        """The head whose numbers are written out."""
        return self.head or 0

    @property
    def axes(self) -> tuple[Axis, ...]:
        return ("heads", "keys", "features") if self.head is None else ("keys", "features")

    @property
    def words(self) -> StateWords:
        return WORDS[self.n.layer.rule]

    def of(self, value: ndarray) -> ndarray:
        return value if self.head is None else value[self.head]

    def own(self, weight: Tensor) -> Tensor:
        """That of the head, where there is one only; of a matrix the columns, as in x W."""
        own = weight.detach() if self.head is None else weight[self.head].detach()
        return own if own.ndim < 2 else own.T


def operand_steps(at: Followed, source: str, given: dict[str, Tensor]) -> list[Step]:
    """`source` is the code of the rows that go in (or their name), `given` what it reads."""
    n, one = at.n, at.head is not None
    layer, i = n.layer, n.at
    x, line = ("source", f"{source}\n") if one else (source, "")
    columns, taps = n.channels(at.head), n.filters.shape[1]
    keys, c0 = layer.d_key if one else n.keys, int(columns[0])
    rows = Maker(at.prefix, replace(n.proofs["v"], direct=False), ("keys", "features"))
    chosen = torch.from_numpy(columns)
    into = {"filters": layer.filters[chosen].detach()}
    if layer.filter_bias is not None:
        into["filter_bias"] = layer.filter_bias[chosen].detach()
    own_bias = None if layer.filter_bias is None else float(layer.filter_bias[c0])
    starts, cuts = (0, n.keys, 2 * n.keys), np.split(columns, [keys, 2 * keys])
    matrices = {
        f"W_{letter}": getattr(layer, f"W_{letter}").weight[torch.from_numpy(cut - start)].detach().T
        for letter, cut, start in zip("QKV", cuts, starts, strict=True)
    }
    W, bias = np.concatenate([t.double().cpu().numpy() for t in matrices.values()], axis=1), None
    if n.biases:
        matrices["b"] = torch.cat(n.biases)[chosen].detach()
        bias = matrices["b"].double().cpu().numpy()
    return [
        rows(
            "packed",
            N_("One product for Q, K and V"),
            N_(
                "The three matrices stand side by side, so that one product [{n} × {d}] · [{d} × {width}] gives all three.",
                n=len(n.x),
                d=n.x.shape[1],
                width=W.shape[1],
            ),
            r"[Q \mid K \mid V] = X\,[W_Q \mid W_K \mid W_V]" + ("" if bias is None else " + b"),
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
            rf"y_{{i,c}} = \sum_{{t=0}}^{{{taps - 1}}} f_{{c,t}}\,p_{{i-{taps - 1}+t,\,c}}"
            + ("" if own_bias is None else " + b_c"),
            rf"y_{{{i},0}} = {latex.sum_of_products(n.filters[c0], n.padded[i : i + taps, c0], own_bias)} = "
            rf"{latex.number(n.convolved[i, c0])}",
            "Y",
            n.convolved[:, columns],
            f"before = F.pad(packed.mT, ({taps - 1}, 0))\n"
            f"convolved = F.conv1d(before[None], {', '.join(into)}, groups={len(columns)})[0].mT",
            inputs=into,
        ),
        rows(
            "mixed",
            N_("SiLU"),
            N_("Each number times its own sigmoid: large ones pass, those below 0 are almost shut off."),
            r"y \leftarrow y \cdot \sigma(y)",
            rf"y_{{{i},0}} \leftarrow {latex.number(n.convolved[i, c0])} \cdot \sigma({latex.number(n.convolved[i, c0])}) = "
            rf"{latex.number(n.mixed[i, c0])}",
            "Y",
            n.mixed[:, columns],
            "mixed = F.silu(convolved)",
        ),
        rows(
            "v",
            N_("Values: what is to be written"),
            N_("The last columns are the values, as they are."),
            r"V = Y_{:,\,2 d_k:}",
            rf"v_{{{i}}} = {latex.row(n.v[at.first, i])}",
            "V",
            at.of(n.v),
            "v = " + _cut(one, f"{2 * keys}:", layer.d_head),
            proof=n.proofs["v"],
            axes=at.axes,
        ),
        _unit(at, "q", _cut(one, f":{keys}", layer.d_key)),
        _unit(at, "k", _cut(one, f"{keys}:{2 * keys}", layer.d_key)),
        *_gates(at, x),
    ]


def _cut(one: bool, columns: str, width: int) -> str:
    """The code of some columns of the mixed rows, head by head where there are several."""
    return f"mixed[:, {columns}]" + ("" if one else f".unflatten(-1, (-1, {width})).transpose(0, 1)")


def _unit(at: Followed, letter: str, cut: str) -> Step:
    """Queries or keys; of one head only the query that is followed."""
    n, i, own = at.n, at.n.at, getattr(at.n, letter)
    query = letter == "q" and at.head is not None
    value = at.of(own)[i] if query else at.of(own)
    code = f"{letter} = {cut}{f'[{i}]' if query else ''}" + (_OF_LENGTH_1.format(letter) if n.corrects else "")
    if at.head is None and n.group > 1:
        code += f"\n{letter} = {letter}.repeat_interleave({n.group}, dim=0)"
    where = r":d_k" if letter == "q" else r"d_k:2 d_k"
    return Maker(at.prefix, n.proofs[letter])(
        letter,
        *at.words.units[letter],
        rf"{letter} \leftarrow \frac{{{letter}}}{{\sqrt{{|{letter}|^2 + 10^{{-6}}}}}}"
        if n.corrects
        else rf"{letter.upper()} = Y_{{:,\,{where}}}",
        rf"|{letter}| = {latex.number(float(np.linalg.norm(own[at.first, i])))}"
        if n.corrects
        else rf"{letter}_{{{i}}} = {latex.row(own[at.first, i])}",
        rf"q_{{{i}}}" if query else letter.upper(),
        value,
        code,
        axes=("features",) if query else at.axes,
    )


def _gates(at: Followed, x: str) -> list[Step]:
    """How much is written, and how much is kept."""
    n, layer, i, one = at.n, at.n.layer, at.n.at, at.head is not None
    make = Maker(at.prefix, n.proofs["beta"], at.axes[:-1])
    mT = "" if one else ".mT"
    bias = layer.bias if layer.W_a.bias is None else layer.bias + layer.W_a.bias
    into = {"W_a": at.own(layer.W_a.weight), "bias": at.own(bias)}
    written, step = rf"_{{{i}}} = {latex.number(n.beta[at.first, i])}", f"F.softplus({x} @ W_a + bias){mT}"
    softplus = r"\mathrm{softplus}(x_i\,w_a + b)"
    if n.corrects:
        beta = make(
            "beta",
            N_("How much is written"),
            N_(
                "A gate for each token, 0 to 1: at 0 the state stays as it is, at 1 the key holds the new value afterwards."
            ),
            r"\beta_i = \sigma(x_i\,w_b)",
            rf"\beta{written}",
            r"\beta",
            at.of(n.beta),
            f"beta = torch.sigmoid({x} @ W_b){mT}",
            inputs={"W_b": at.own(layer.W_b.weight)},
        )
    else:
        least, most = layer.limits
        limited = bool(least) or most is not None
        largest = r"\infty" if most is None else f"{most:g}"
        beta = make(
            "beta",
            N_("How large a step"),
            N_(
                "A number of at least {least} for each token: how much of its value is written. The same step decides how much "
                "is forgotten, so that every token changes the state.",
                least=f"{least:g}",
            )
            if least
            else N_(
                "A number above 0 for each token: how much of its value is written. The same step decides how much is "
                "forgotten, so that a token that writes nothing leaves the state as it is."
            ),
            r"\Delta_i = " + (rf"\mathrm{{clamp}}({softplus},\,{least:g},\,{largest})" if limited else softplus),
            rf"\Delta{written}",
            r"\Delta",
            at.of(n.beta),
            f"beta = {step}" + (f".clamp({least!r}, {most!r})" if limited else ""),
            inputs=into,
        )
        step, into, softplus = "beta", {}, r"\Delta_i"
    decay = at.of(n.decay)
    left = make(
        "left",
        N_("How much is kept"),
        at.words.left,
        rf"a_i = e^{{g_i}}, \qquad g_i = -e^{{r}}\,{softplus}",
        rf"a_{{{i}}} = e^{{{latex.number(n.decay[at.first, i])}}} = "
        rf"{latex.number(float(np.exp(n.decay[at.first, i])))}",
        "a",
        np.exp(decay),
        f"decay = -rate.exp(){'' if one else '[:, None]'} * {step}\nleft = decay.exp()",
        proof=n.proofs["decay"],
        also=(Made("decay", Operand("g", N_("the logarithm of what is kept"), decay, make.axes)),),
        inputs={**into, "rate": at.own(layer.rate)},
    )
    return [beta, left]
