"""The state itself as steps: what it keeps, holds under the key, is given and becomes; its reading; and the map M.

The formulas are those of `vizformer.model.state_rule`.
"""

from dataclasses import replace

from torch import Tensor

from vizformer.explain import latex
from vizformer.explain.state_operand_steps import Followed
from vizformer.explain.step import Contraction, Maker, Step
from vizformer.explain.sublayer import MAPS
from vizformer.messages import N_

_RUN = """S = torch.zeros({shape})
for t in range({at}):  # the tokens before
    S = left[..., t, None, None] * S
    u = beta[..., t, None] * {u}
    S = S + k[..., t, :, None] * u[..., None, :]
kept = left[..., {at}, None, None] * S"""
_MAP = """c = decay.cumsum(-1)
G = (c[..., :, None] - c[..., None, :]).exp().tril()  # what is left at i of what was written at j
"""


def rule_steps(at: Followed) -> list[Step]:
    """From what is kept to the map; the state is followed to the token `at.n.at`."""
    n, words, first, one = at.n, at.words, at.first, at.head is not None
    layer, i, d_key = n.layer, n.at, n.layer.d_key
    row = (*at.axes[:-2], "features")
    inner = Maker(at.prefix, replace(n.proofs["o"], direct=False), (*row, "features"))  # not compared themselves
    outer = Maker(at.prefix, n.proofs["o"], row)
    kept, S, o = at.of(n.kept), at.of(n.S), at.of(n.o)[..., i, :]
    M = n.map(slice(first, first + 1))[0, i] if one else n.map()
    map_row = M if one else M[0, i]
    k_0, read = n.k[first, i], latex.sum_of_products(n.q[first, i], n.S[first, :, 0])
    value, key = latex.number(n.v[first, i, 0]), f"k[..., {i}, :]"
    found = latex.number(n.o[first, i, 0])
    asked = rf"({value} - {latex.factor(n.held[first, 0])})" if n.corrects else latex.factor(n.v[first, i, 0])
    inputs: dict[str, Tensor] = {}
    if layer.skip is None:
        live, scaled = rf"({read}) / \sqrt{{{d_key}}}", f" * {n.scale!r}"
    else:
        live = rf"{read} + {latex.factor(float(layer.skip[first]))} \cdot {latex.factor(n.v[first, i, 0])}"
        scaled, inputs = f" + D[..., None] * v[..., {i}, :]", {"D": at.own(layer.skip)}
    held = inner(
        "held",
        N_("Read what the key holds already"),
        N_("The state answers the new key: what it would say if it were asked for this token now."),
        r"r_i = \hat S_i^\top k_i",
        rf"r_0 = {latex.sum_of_products(k_0, n.kept[first, :, 0])} = {latex.number(n.held[first, 0])}",
        "r",
        at.of(n.held),
        f'held = torch.einsum("...kv,...k->...v", kept, {key})',
        axes=row,
        contraction=Contraction(k_0[None], kept) if one else None,
    )
    return [
        inner(
            "kept",
            N_("Forget: what is left of the state"),
            N_(
                "The state, {rows} × {columns} numbers, holds all earlier tokens, however many there are. Before token {i} is written, "
                "all of it is multiplied by a.",
                rows=d_key,
                columns=layer.d_head,
                i=i,
            ),
            r"\hat S_i = a_i\,S_{i-1}",
            rf"\hat S_{{0,0}} = {latex.number(kept.reshape(-1)[0])}",
            r"\hat S",
            kept,
            ("q, k, v, beta = (t.float() for t in (q, k, v, beta))\n" if n.short else "")
            + _RUN.format(shape=", ".join(map(str, S.shape)), at=i, u=words.in_the_run),
        ),
        *([held] if n.corrects else []),
        inner(
            "u",
            *words.written,
            rf"u_0 = {latex.number(n.beta[first, i])} \cdot {asked} = {latex.number(n.u[first, 0])}",
            "u",
            at.of(n.u),
            f"u = beta[..., {i}, None] * {words.writes.format(at=i)}",
            axes=row,
        ),
        inner(
            "S",
            N_("Write: the state after the token"),
            N_(
                "Every number of the key times every number of what is written, added: the state has the same size as before."
            ),
            r"S_i = \hat S_i + k_i\,u_i^\top",
            rf"S_{{0,0}} = {latex.number(n.kept[first, 0, 0])} + {latex.factor(k_0[0])} \cdot "
            rf"{latex.factor(n.u[first, 0])} = {latex.number(n.S[first, 0, 0])}",
            "S",
            S,
            f"S = kept + {key}[..., :, None] * u[..., None, :]",
        ),
        outer(
            "o",
            N_("Read the state with the query"),
            words.read,
            words.read_formula,
            rf"o_0 = {live} = {found}",
            "o",
            o,
            f'o = torch.einsum("...kv,...k->...v", S, {"q" if one else f"q[:, {i}]"}){scaled}',
            inputs=inputs,
        ),
        outer(
            "map",
            N_("The same as a map over the values"),
            N_(
                "All of this is linear in the values, so that there are numbers M with o = M v: exact, with both signs, and with "
                "rows that sum to anything. Here |M v − o| / |o| = {error}, with o of the model.",
                error=f"{n.map_error(at.head):.0e}",
            ),
            words.map_formula,
            rf"\sum_j M_{{{i},j}} = {latex.sum_of(map_row)} = {latex.number(float(map_row.sum()))}",
            rf"M_{{{i}}}" if one else "M",
            M,
            (_MAP + words.map_code).format(
                skip="D" if one else "D[:, None, None]",
                n=len(n.x),
                q="q[None]" if one else "q",
                rows=f"[{i}]" if one else "",
                row="[0]" if one else "",
                scale=n.scale,
            ),
            axes=("keys",) if one else MAPS,
        ),
    ]
