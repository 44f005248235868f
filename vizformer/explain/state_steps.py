"""A layer that keeps a state (`vizformer.model.state_rule`) as steps: all of it, or one head for one query.

    [q k v] = silu(conv(x [W_Q W_K W_V])) -> q, k (of length 1) -> gates -> what the state keeps, (holds under the key,) is
    written, and becomes -> o = S^T q (+ D v) -> the map M, of which o = M v -> norm and gate -> W_O -> add

What is in brackets, only the delta rule has, or only a state space.

Source: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule", section 3; Dao & Gu 2024, "Transformers
are SSMs", sections 5 to 7.
"""

from dataclasses import dataclass, replace
from functools import cached_property

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
from vizformer.explain.state_operand_steps import Followed, operand_steps
from vizformer.explain.state_rule_steps import rule_steps
from vizformer.explain.state_words import WORDS
from vizformer.explain.step import Step
from vizformer.explain.sublayer import ROWS, Sublayer, norm_before, through_output
from vizformer.messages import N_
from vizformer.model.input_check import row_at
from vizformer.model.state_layers import StateLayer
from vizformer.model.trace import Trace


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
        return self.of_all.map(slice(self.head, self.head + 1))[0, self.query]

    @property
    def z(self) -> Float[ndarray, " d_value"]:
        return self.of_all.o[self.head, self.query]

    @property
    def opened(self) -> Float[ndarray, " d_value"]:
        return self.of_all.opened[self.head, self.query]


def gather_state(checkpoint: Checkpoint, trace: Trace, site: str, head: int, query: int) -> StateOperands:
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
        *_steps(Followed(n, at.key(""), None), "x", {}),
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


def _steps(at: Followed, source: str, given: dict[str, Tensor]) -> list[Step]:
    """From the matrices to the map."""
    return [*operand_steps(at, source, given), *rule_steps(at)]


def _gate(n: StateNumbers, key: str, head: int | None, i: int, symbol: str, result: ndarray) -> Step:
    """What was read through its norm and gate: of one head and query, or (shown: query `i` of head 0) of all."""
    layer, norm, gate, joined = n.layer, n.layer.norm, n.layer.W_gate, head is None
    assert gate is not None
    words = WORDS[layer.rule]
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
        words.gate_title,
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
        words.gate_formula.replace("BIAS", "" if gate.bias is None else r" + b_\mathrm{gate}"),
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
    return [first, *_steps(Followed(n, "", o.head), source, inputs), *mixing_steps(o, opened)]
