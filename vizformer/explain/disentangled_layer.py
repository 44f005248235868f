"""The steps of disentangled attention for all heads and positions of a layer (`vizformer.explain.disentangled_steps`)."""

import numpy as np
from numpy import ndarray

from vizformer.explain import latex, norms
from vizformer.explain.arrays import float64, is_half
from vizformer.explain.disentangled_parts import (
    C2P,
    P2C,
    ROW,
    SUM,
    VECTOR,
    anchor,
    projected,
    row_code,
    row_formula,
    row_text,
    sum_text,
    vector_text,
)
from vizformer.explain.disentangled_terms import DistanceTerms
from vizformer.explain.step import Axis, Maker, Operand, Proof, Step
from vizformer.explain.sublayer import MAPS, Sublayer
from vizformer.messages import N_

VECTORS: tuple[Axis, ...] = ("distances", "features")


def added(at: Sublayer, terms: DistanceTerms, site: str, q: ndarray, k: ndarray) -> ndarray:
    """What the further terms of all heads add to their scores, [h, n, n]; in half precision as the model has it."""
    record = at.trace[site]
    if is_half(at.dtype) and record.position_bias is not None:
        return float64(record.position_bias)
    return _total(terms, q, k) * record.scale


def layer_steps(
    at: Sublayer,
    terms: DistanceTerms,
    site: str,
    q: ndarray,
    k: ndarray,
    scores: ndarray,
    placed: ndarray,
    through_z: Proof,
) -> list[Step]:
    """From queries and keys, [h, n, d_head], to the scores with all their terms, `placed`, which are proved through z."""
    record, short = at.trace[site], is_half(at.dtype)
    assert record.position_bias is not None
    size = np.sqrt(_total(terms, q, k, power=2)) * abs(record.scale) if short else 0.0
    total = _total(terms, q, k)
    proof = Proof.compare(anchor(site), total * record.scale, record.position_bias, direct=False, terms=size)
    make = at.maker(proof, MAPS)
    steps = _distances(terms, make)
    vectors = Operand("r", N_("the vectors of the distances"), terms.vectors, VECTORS)
    names, w = [], ".float()" if short else ""
    if (c2p := terms.c2p(q)) is not None and terms.keys is not None:
        names.append("c2p")
        row = terms.keys[0, terms.rows[-1, 0]]
        steps += [
            projected(make, terms, "K", None, vectors, terms.keys),
            make(
                "c2p",
                C2P,
                N_("Content to position: in each head, every query with the key of its distance to every key."),
                r"C_{h,i,j} = q_{h,i} \cdot k^r_{h,\delta(i,j)}",
                rf"C_{{0,{len(q[0]) - 1},0}} = {latex.sum_of_products(q[0, -1], row)} = {latex.number(c2p[0, -1, 0])}",
                "C",
                c2p,
                f"c2p = (q{w} @ relative_k{w}.mT).gather(-1, (rows - rows.min()).expand(len(q), -1, -1))",
            ),
        ]
    if (p2c := terms.p2c(k)) is not None and terms.queries is not None:
        names.append("p2c")
        row = terms.queries[0, terms.rows[-1, 0]]
        steps += [
            projected(make, terms, "Q", None, vectors, terms.queries),
            make(
                "p2c",
                P2C,
                N_("Position to content: in each head, every key with the query of its distance to every query."),
                r"P_{h,i,j} = k_{h,j} \cdot q^r_{h,\delta(i,j)}",
                rf"P_{{0,{len(q[0]) - 1},0}} = {latex.sum_of_products(k[0, 0], row)} = {latex.number(p2c[0, -1, 0])}",
                "P",
                p2c,
                f"p2c = (relative_q{w} @ k{w}.mT).gather(-2, (rows - rows.min()).expand(len(k), -1, -1))",
            ),
        ]
    letters, c = " + ".join({"c2p": "C", "p2c": "P"}[name] for name in names), record.scale
    last = at.maker(through_z, MAPS)(
        "position",
        SUM,
        sum_text(terms, c),
        rf"\tilde S = S + c\,({letters})",
        rf"\tilde S_{{0,{len(q[0]) - 1},0}} = {latex.number(scores[0, -1, 0])} + {latex.number(c)} \cdot "
        rf"{latex.factor(float(total[0, -1, 0]))} = {latex.number(placed[0, -1, 0])}",
        r"\tilde S",
        placed,
        f"scores = scores + ({' + '.join(names)}) * {c!r}",
    )
    return [*steps, last]


def _total(terms: DistanceTerms, q: ndarray, k: ndarray, power: int = 1) -> ndarray:
    found = [term for term in (terms.c2p(q, power), terms.p2c(k, power)) if term is not None]
    total: ndarray = np.sum(found, axis=0)
    return total


def _distances(terms: DistanceTerms, make: Maker) -> list[Step]:
    """Which row of the table belongs to each pair, and the vectors there."""
    whole, norm, n = terms.rows + terms.first, terms.norm, len(terms.rows)
    needed = f"R[{terms.first} : {terms.first + len(terms.vectors)}]"
    return [
        make(
            "distance",
            ROW,
            row_text(terms),
            row_formula(terms),
            rf"\delta({n - 1}, 0) = {whole[-1, 0]}",
            r"\delta",
            whole,
            f"behind = torch.arange({n})[:, None] - torch.arange({n})[None, :]\n{row_code(terms)}",
            axes=("queries", "keys"),
        ),
        make(
            "vectors",
            VECTOR,
            vector_text(norm),
            r"r = R" if norm is None else norms.formula(norm, "r", "R"),
            rf"r_{{0}} = R_{{{terms.first}}}"
            if norm is None
            else norms.live("r_{0,0}", terms.table[0], norm, terms.vectors[0, 0]),
            "r",
            terms.vectors,
            f"vectors = {needed}" if norm is None else norms.code(norm, "vectors", needed, of="_R"),
            operands=(
                Operand("R", N_("the rows of the table from {row} on", row=terms.first), terms.table, VECTORS),
                *(() if norm is None else norms.operands(norm)),
            ),
            axes=VECTORS,
            inputs={"R": terms.weight, **({} if norm is None else norms.inputs(norm, of="_R"))},
        ),
    ]
