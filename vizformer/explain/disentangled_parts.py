"""What the steps of disentangled attention have in common, for one query or all: how they are made, their words and code."""

from numpy import ndarray

from vizformer.explain import latex
from vizformer.explain.arrays import float64
from vizformer.explain.disentangled_terms import DistanceTerms
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Contraction, Maker, Operand, Step
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
