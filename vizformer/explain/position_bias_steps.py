"""The step that adds the position bias to the scores: ALiBi's slopes or T5's buckets, for one query or for all heads."""

import numpy as np
import torch

from vizformer.explain import latex
from vizformer.explain.attention_numbers import AttentionNumbers, HeadNumbers
from vizformer.explain.position_terms import Buckets, Slopes
from vizformer.explain.step import Maker, Operand, Step
from vizformer.messages import N_, Message

TITLE = N_("Add the position bias")


def query_steps(o: HeadNumbers, make: Maker) -> list[Step]:
    """The position bias of one head and query; no step for a model without one."""
    distances, h, i, j = o.all.distances, o.head, o.query, o.focus
    if distances is None:
        return []
    relative = o.all.relative[0]
    code, live_first, inputs = f"relative = torch.arange({o.n_k}) - {i}\n", "", {}
    if isinstance(distances, Slopes):
        slope = float(distances.slopes[h])
        operands = (
            Operand(rf"|{i} - j|", N_("how far each key is from the query"), np.abs(relative), ("keys",)),
            Operand(rf"m_{{{h}}}", N_("the slope of this head"), np.array([slope])),
        )
        added, formula = rf"- {latex.number(slope)} \cdot {abs(j - i)}", r"\tilde s_{ij} = s_{ij} - m_h\,|i - j|"
        power = 2 ** int(np.log2(o.record.n_heads))
        if h < power:
            live_first = rf"m_{{{h}}} = 2^{{-8 \cdot {h + 1} / {power}}} = {latex.number(slope)}, \qquad "
        code += f"placed = scores - {slope!r} * relative.abs()"
    else:
        rows, column = distances.rows(relative), distances.table[:, h]
        operands = (
            Operand(rf"\beta(j - {i})", N_("the bucket of each key"), rows, ("keys",)),
            Operand(rf"B_{{\cdot,{h}}}", N_("this head's number for each bucket"), column),
        )
        added, formula = f"+ {latex.factor(float(column[rows[j]]))}", r"\tilde s_{ij} = s_{ij} + B_{\beta(j - i),\,h}"
        live_first = rf"\beta({j - i}) = {rows[j]}, \qquad "
        code += f"{_bucket_code(distances)}\nplaced = scores + B[rows]"
        inputs = {"B": torch.from_numpy(column).float()}
    live = rf"{live_first}\tilde s_{{{i},{j}}} = {latex.number(o.scores[j])} {added} = {latex.number(o.placed[j])}"
    scores = Operand(rf"s_{{{i}}}", N_("the scores"), o.scores, ("keys",))
    symbol = rf"\tilde s_{{{i}}}"
    given = (formula, live, symbol, o.placed, code)
    return [make("position", TITLE, _text(distances), *given, operands=(scores, *operands), inputs=inputs)]


def layer_step(at: AttentionNumbers, make: Maker) -> Step:
    """The position bias of all heads and positions at once."""
    distances, relative, n = at.distances, at.relative, len(at.x)
    assert distances is not None
    code = f"relative = torch.arange({n})[None, :] - torch.arange({n})[:, None]\n"
    if isinstance(distances, Slopes):
        operands: tuple[Operand, ...] = (
            Operand("|i - j|", N_("how far each key is from the query"), np.abs(relative), ("queries", "keys")),
            Operand("m", N_("the slope of each head"), distances.slopes, ("heads",)),
        )
        added = rf"- {latex.number(distances.slopes[0])} \cdot {n - 1}"
        formula = r"\tilde S_{h,i,j} = S_{h,i,j} - m_h\,|i - j|"
        code += "scores = scores - slopes[:, None, None] * relative.abs()"
        inputs = {"slopes": torch.from_numpy(distances.slopes).float()}
    else:
        rows = distances.rows(relative)
        operands = (
            Operand(r"\beta(j - i)", N_("the bucket of each key"), rows, ("queries", "keys")),
            Operand("B", N_("a number for each bucket and head"), distances.table, ("features", "heads")),
        )
        added = f"+ {latex.factor(float(distances.table[rows[-1, 0], 0]))}"
        formula = r"\tilde S_{h,i,j} = S_{h,i,j} + B_{\beta(j - i),\,h}"
        code += f"{_bucket_code(distances)}\nscores = scores + B[rows].permute(2, 0, 1)"
        inputs = {"B": torch.from_numpy(distances.table).float()}
    first, last = latex.number(at.scores[0, -1, 0]), latex.number(at.placed[0, -1, 0])
    live = rf"\tilde S_{{0,{n - 1},0}} = {first} {added} = {last}"
    given = (formula, live, r"\tilde S", at.placed, code)
    return make("position", TITLE, _text(distances), *given, operands=operands, inputs=inputs)


def _text(distances: Slopes | Buckets) -> Message:
    if isinstance(distances, Slopes):
        return N_(
            "ALiBi: nothing was added to the embeddings for the position. Instead each head subtracts its "
            "slope times the distance between query and key from the score; slopes are the same in all "
            "layers and not learned. The slopes of the {n_heads} heads differ: a head with a steep slope "
            "attends to neighbours, one with a flat slope can attend far away.",
            n_heads=len(distances.slopes),
        )
    values = dict(single=distances.single, per_side=distances.per_side, furthest=distances.max_distance)
    if distances.both_sides:
        return N_(
            "T5: nothing was added to the embeddings for the position. Instead each head has learned a number per bucket "
            "of distances, the same in all layers. Distances below {single} have a bucket each, longer ones share ever "
            "wider ones, and all from {furthest} on the last: {per_side} buckets for the keys before the query (and "
            "itself), as many for those after it.",
            **values,
        )
    return N_(
        "T5: nothing was added to the embeddings for the position. Instead each head has learned a "
        "number per bucket of distances, the same in all layers. Distances below {single} have a bucket "
        "each, longer ones share ever wider ones, and all from {furthest} on the last of the {per_side}. "
        "Keys after the query count as distance 0: the mask blocks them anyway.",
        **values,
    )


def _bucket_code(distances: Buckets) -> str:
    """The code that computes `rows`, the rows of the table, from `relative`."""
    single, per_side = distances.single, distances.per_side
    distance = "relative.abs()" if distances.both_sides else "(-relative).clamp(min=0)"
    behind = f"\nrows = rows + (relative > 0) * {per_side}" if distances.both_sides else ""
    return (
        f"distance = {distance}\n"
        f"stretch = torch.log(distance.clamp(min=1).double() / {single}) / math.log({distances.max_distance} / {single})\n"
        f"far = ({single} + (stretch * {per_side - single}).long()).clamp(max={per_side - 1})\n"
        f"rows = torch.where(distance < {single}, distance, far){behind}"
    )
