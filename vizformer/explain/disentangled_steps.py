"""The steps of disentangled attention: a row, a key and a query for each distance, two more terms.

For one head and query, and below for all heads and positions of a layer.

score_ij = (q_i . k_j + q_i . k^r_d(i,j) + k_j . q^r_d(i,j)) c   (He et al. 2021, "DeBERTa", section 3.1)
"""

import numpy as np
from numpy import ndarray

from vizformer.explain import latex, norms
from vizformer.explain.arrays import float64, is_half
from vizformer.explain.disentangled_terms import DistanceTerms
from vizformer.explain.operands import Operands
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Axis, Contraction, Maker, Operand, Proof, Step
from vizformer.explain.sublayer import MAPS, Sublayer
from vizformer.messages import N_, Message
from vizformer.model.norms import Norm

C2P, P2C = N_("Queries with the keys of the distances"), N_("Keys with the queries of the distances")
ROW, VECTOR = N_("The row of every distance"), N_("The vector of every distance")
SUM = N_("Add the terms of the distances")


def anchor(site: str) -> Message:
    return N_("what the model added to the scores for the distances, recorded in {place}", place=in_words(site))


def projected(
    make: Maker, terms: DistanceTerms, letter: str, head: int | None, vectors: Operand, result: ndarray
) -> Step:
    """The vectors times the matrix of the keys ("K") or of the queries ("Q"), of one head or (None) of all."""
    linear = terms.linear(letter)
    assert linear is not None
    d, name = terms.attention.d_head, letter.lower()
    own = slice(None) if head is None else slice(head * d, (head + 1) * d)
    weight, bias = float64(linear.weight[own]).T, None if linear.bias is None else float64(linear.bias[own])
    given = f"W_{letter}" if terms.shared else f"W_{letter}_r"
    symbol = f"W_{letter}" if terms.shared else f"W^r_{letter}"
    inputs = {given: linear.weight[own].detach().T}
    if linear.bias is not None:
        inputs[f"b{given[1:]}"] = linear.bias[own].detach()
    code = f"relative_{name} = vectors @ {given}" + ("" if bias is None else f" + b{given[1:]}")
    heads = "" if head is not None else f"\nrelative_{name} = relative_{name}.unflatten(-1, (-1, {d})).transpose(0, 1)"
    sum_ = latex.sum_of_products(vectors.value[0], weight[:, 0], None if bias is None else float(bias[0]))
    return make(
        f"relative_{name}",
        N_("Keys of the distances") if letter == "K" else N_("Queries of the distances"),
        N_(
            "The vectors of the distances times W_{letter}, the matrix of the contents: this model has none of its own for "
            "distances.",
            letter=letter,
        )
        if terms.shared
        else N_("The vectors of the distances times a matrix of their own: what a distance offers to be found by.")
        if letter == "K"
        else N_("The vectors of the distances times a matrix of their own: what is looked for at that distance."),
        rf"{name}^r = r\,{symbol}" + ("" if bias is None else f" + {symbol.replace('W', 'b', 1)}"),
        rf"{name}^r_{{0,0}} = {sum_} = {latex.number(result[..., 0, 0].flat[0])}",
        rf"{letter}^r",
        result,
        code + heads,
        operands=(
            vectors,
            Operand(symbol, N_("the matrix that makes them"), weight, ("features", "features")),
            *(() if bias is None else (Operand(symbol.replace("W", "b", 1), N_("its bias"), bias),)),
        ),
        axes=("keys", "features") if head is not None else ("heads", "distances", "features"),
        contraction=None if head is None else Contraction(vectors.value, weight, bias),
        inputs=inputs,
    )


def sum_text(terms: DistanceTerms, scale: float) -> Message:
    return N_(
        "Each score has {n} terms: content with content, and what content and distance have to do with each other. All are "
        "multiplied by the same number, c = {scale}.",
        n=terms.n_terms,
        scale=f"{scale:.6g}",
    )


def row_text(terms: DistanceTerms) -> Message:
    values = dict(rows=2 * terms.span, last=2 * terms.span - 1, span=terms.span)
    if terms.furthest is None:
        return N_(
            "DeBERTa: a vector was learned for every distance between two tokens, {rows} in a table that all layers share. "
            "Row {span} is that of a token with itself; the rows after it are for keys before the query, those before it for "
            "keys after the query. What is farther than the table reaches has row 0 or {last}.",
            **values,
        )
    return N_(
        "DeBERTa: vectors were learned for the distances between two tokens, {rows} in a table that all layers share. Row "
        "{span} is that of a token with itself; the rows after it are for keys before the query, those before it for keys "
        "after the query. Up to {middle} tokens away each distance has a row; beyond, ever longer stretches share one, and all "
        "from about {furthest} on have the first or the last.",
        middle=terms.span // 2,
        furthest=terms.furthest,
        **values,
    )


def row_formula(terms: DistanceTerms) -> str:
    within = rf"\delta(i, j) = \min(\max(b(i - j) + {terms.span},\,0),\,{2 * terms.span - 1})"
    if terms.furthest is None:
        return rf"{within}, \qquad b(r) = r"
    m = terms.span // 2
    share = rf"\tfrac{{\ln(|r| / {m})}}{{\ln({terms.furthest - 1} / {m})}}"
    far = rf"\operatorname{{sign}}(r)\,({m} + \lceil {share} \cdot {m - 1} \rceil)"
    cases = rf"\begin{{cases}} r & |r| \le {m} \\ {far} & |r| > {m} \end{{cases}}"
    return rf"\begin{{gathered}} {within} \\ b(r) = {cases} \end{{gathered}}"


def row_code(terms: DistanceTerms) -> str:
    """From `behind`, i - j, to the rows."""
    lines = []
    if terms.furthest is not None:
        m, widest = terms.span // 2, (terms.furthest - 1) / (terms.span // 2)
        lines = [
            f"stretch = torch.log(behind.abs().clamp(min={m}) / {m}) / torch.log(torch.tensor({widest!r}))",
            f"far = behind.sign() * (torch.ceil(stretch * {m - 1}) + {m})",
            f"behind = torch.where(behind.abs() <= {m}, behind, far.long())",
        ]
    return "\n".join([*lines, f"rows = (behind + {terms.span}).clamp(0, {2 * terms.span - 1})"])


def vector_text(norm: Norm | None) -> Message:
    if norm is None:
        return N_("The rows of the table that are needed, as they were learned.")
    return N_("The rows of the table that are needed, normalised: those of all layers are the same.")


VECTORS: tuple[Axis, ...] = ("distances", "features")


def query_steps(o: Operands, terms: DistanceTerms, step: Maker) -> list[Step]:
    """`step` makes those that are proved through z, as the last of these is; the others through what the model has added."""
    assert o.record.position_bias is not None
    added = o.record.position_bias[o.head, o.query]
    squares = terms.row(o.q, o.k, o.head, o.query, power=2) if o.is_half else np.zeros(1)
    proof = Proof.compare(
        anchor(o.site.name),
        terms.row(o.q, o.k, o.head, o.query) * o.record.scale,
        added,
        direct=False,
        terms=np.sqrt(squares) * abs(o.record.scale),
    )
    make = Maker("", proof, ("keys",), o.blocked)
    steps, summed = _distances(o, terms, make), []
    vectors = Operand("r", N_("the vectors of the distances"), steps[-1].result, ("keys", "features"))
    for found, letter in ((_c2p(o, terms, make, vectors), "c2p"), (_p2c(o, terms, make, vectors), "p2c")):
        steps += found
        if found:
            name = N_("queries with distances") if letter == "c2p" else N_("keys with distances")
            summed.append(Operand(found[-1].symbol, name, found[-1].result, ("keys",)))
    return [*steps, _sum(o, terms, step, summed, [one.variable for one in steps if one.key in ("c2p", "p2c")])]


def _distances(o: Operands, terms: DistanceTerms, make: Maker) -> list[Step]:
    """Which row of the table belongs to each key, and the vectors there."""
    i, j, norm, rows = o.query, o.focus, terms.norm, terms.rows[o.query]
    whole, learned, vectors = rows + terms.first, terms.table[rows], terms.vectors[rows]
    before = Operand(rf"{i} - j", N_("how far each key is before the query"), i - np.arange(o.n_k), ("keys",))
    taken = Operand(rf"\delta({i}, j)", N_("the row of each key's distance"), whole, ("keys",))
    given = Operand(rf"R_{{\delta({i}, j)}}", N_("those rows of the table"), learned, ("keys", "features"))
    return [
        make(
            "distance",
            ROW,
            row_text(terms),
            row_formula(terms),
            rf"\delta({i}, {j}) = {whole[j]}",
            rf"\delta({i}, j)",
            whole,
            f"behind = {i} - torch.arange({o.n_k})\n{row_code(terms)}",
            operands=(before,),
        ),
        make(
            "vectors",
            VECTOR,
            vector_text(norm),
            r"r_j = R_{\delta(i,j)}" if norm is None else norms.formula(norm, "r_j", r"R_{\delta(i,j)}"),
            rf"r_{{{j}}} = R_{{{whole[j]}}}"
            if norm is None
            else norms.live(rf"r_{{{j},0}}", learned[j], norm, vectors[j, 0]),
            "r",
            vectors,
            "vectors = R[rows]" if norm is None else norms.code(norm, "vectors", "R[rows]", of="_R"),
            operands=(taken, given, *(() if norm is None else norms.operands(norm))),
            axes=("keys", "features"),
            inputs={"R": terms.weight, **({} if norm is None else norms.inputs(norm, of="_R"))},
        ),
    ]


def _c2p(o: Operands, terms: DistanceTerms, make: Maker, vectors: Operand) -> list[Step]:
    """Content to position: the query with the key of each distance."""
    i, j, keys = o.query, o.focus, terms.keys_of(o.head, o.query)
    if keys is None:
        return []
    dots = keys @ o.q
    return [
        projected(make, terms, "K", o.head, vectors, keys),
        make(
            "c2p",
            C2P,
            N_(
                "Content to position: does this query look for keys at this distance? One dot product for each key, whatever "
                "stands there."
            ),
            r"q_i \cdot k^r_{\delta(i,j)} = \sum_m q_{i,m}\,k^r_{\delta(i,j),m}",
            rf"q_{{{i}}} \cdot k^r_{{{j}}} = {latex.sum_of_products(o.q, keys[j])} = {latex.number(dots[j])}",
            rf"q_{{{i}}} \cdot k^r_j",
            dots,
            f"c2p = relative_k{o.widened} @ q{o.widened}",
            operands=(
                Operand(rf"q_{{{i}}}", N_("the query"), o.q),
                Operand("K^r", N_("the keys of the distances"), keys, ("keys", "features")),
            ),
            contraction=Contraction(o.q[None], keys.T),
        ),
    ]


def _p2c(o: Operands, terms: DistanceTerms, make: Maker, vectors: Operand) -> list[Step]:
    """Position to content: each key with the query of its distance."""
    j, queries = o.focus, terms.queries_of(o.head, o.query)
    if queries is None:
        return []
    dots = (o.k * queries).sum(-1)
    return [
        projected(make, terms, "Q", o.head, vectors, queries),
        make(
            "p2c",
            P2C,
            N_(
                "Position to content: does this key suit somebody who stands so far away, whoever that is? Each key with the "
                "query of its own distance."
            ),
            r"k_j \cdot q^r_{\delta(i,j)} = \sum_m k_{j,m}\,q^r_{\delta(i,j),m}",
            rf"k_{{{j}}} \cdot q^r_{{{j}}} = {latex.sum_of_products(o.k[j], queries[j])} = {latex.number(dots[j])}",
            r"k_j \cdot q^r_j",
            dots,
            f"p2c = (k{o.widened} * relative_q{o.widened}).sum(-1)",
            operands=(
                Operand("K", N_("the keys, one row each"), o.k, ("keys", "features")),
                Operand("Q^r", N_("the queries of the distances"), queries, ("keys", "features")),
            ),
        ),
    ]


def _sum(o: Operands, terms: DistanceTerms, step: Maker, summed: list[Operand], names: list[str]) -> Step:
    i, j, c = o.query, o.focus, o.record.scale
    numbers = " + ".join(latex.factor(float(term.value[j])) for term in summed)
    symbols = {"c2p": r"q_i \cdot k^r_{\delta(i,j)}", "p2c": r"k_j \cdot q^r_{\delta(i,j)}"}
    return step(
        "position",
        SUM,
        sum_text(terms, c),
        rf"\tilde s_{{ij}} = s_{{ij}} + c\,({' + '.join(symbols[name] for name in names)})",
        rf"\tilde s_{{{i},{j}}} = {latex.number(o.scores[j])} + {latex.number(c)} \cdot ({numbers}) = "
        rf"{latex.number(o.placed[j])}",
        rf"\tilde s_{{{i}}}",
        o.placed,
        f"placed = scores + ({' + '.join(names)}) * {c!r}",
        operands=(Operand(rf"s_{{{i}}}", N_("the scores"), o.scores, ("keys",)), *summed),
    )


# --- all heads and positions of a layer -------------------------------------------------------------------------------


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
    steps = _distances_of_layer(terms, make)
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
    return np.sum(found, axis=0)


def _distances_of_layer(terms: DistanceTerms, make: Maker) -> list[Step]:
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
