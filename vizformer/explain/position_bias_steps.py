"""The step that adds the position bias to the scores: ALiBi's slopes or T5's buckets, for one query or for all heads."""

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain import latex
from vizformer.explain.operands import Operands
from vizformer.explain.position_terms import Buckets, Slopes, relative_positions
from vizformer.explain.step import Maker, Operand, Proof, Step
from vizformer.explain.sublayer import MAPS, Sublayer
from vizformer.messages import N_, Message

TITLE = N_("Add the position bias")


def query_steps(o: Operands, step: Maker) -> list[Step]:
    """The position bias of one head and query; no step for a model without one."""
    if o.distances is None:
        return []
    h, i, j = o.head, o.query, o.focus
    relative = np.arange(o.n_k) - i
    scores = Operand(rf"s_{{{i}}}", N_("the scores"), o.scores, ("keys",))
    start = f"relative = torch.arange({o.n_k}) - {i}\n"
    if isinstance(o.distances, Slopes):
        slope = float(o.distances.slopes[h])
        operands = (
            Operand(rf"|{i} - j|", N_("how far each key is from the query"), np.abs(relative), ("keys",)),
            Operand(rf"m_{{{h}}}", N_("the slope of this head"), np.array([slope])),
        )
        text, formula = _slope_text(o.record.n_heads), r"\tilde s_{ij} = s_{ij} - m_h\,|i - j|"
        added = rf"- {latex.number(slope)} \cdot {abs(j - i)}"
        power = 2 ** int(np.log2(o.record.n_heads))
        live_slope = (
            rf"m_{{{h}}} = 2^{{-8 \cdot {h + 1} / {power}}} = {latex.number(slope)}, \qquad " if h < power else ""
        )
        code, inputs = f"{start}placed = scores - {slope!r} * relative.abs()", {}
    else:
        rows = o.distances.rows(relative)
        operands = (
            Operand(rf"\beta(j - {i})", N_("the bucket of each key"), rows, ("keys",)),
            Operand(rf"B_{{\cdot,{h}}}", N_("this head's number for each bucket"), o.distances.table[:, h]),
        )
        text, formula = _bucket_text(o.distances), r"\tilde s_{ij} = s_{ij} + B_{\beta(j - i),\,h}"
        added = f"+ {latex.factor(float(o.distances.table[rows[j], h]))}"
        live_slope = rf"\beta({j - i}) = {rows[j]}, \qquad "
        code = f"{start}{_bucket_code(o.distances)}\nplaced = scores + B[rows]"
        inputs = {"B": torch.from_numpy(o.distances.table[:, h]).float()}
    live = rf"{live_slope}\tilde s_{{{i},{j}}} = {latex.number(o.scores[j])} {added} = {latex.number(o.placed[j])}"
    return [
        step(
            "position",
            TITLE,
            text,
            formula,
            live,
            rf"\tilde s_{{{i}}}",
            o.placed,
            code,
            operands=(scores, *operands),
            inputs=inputs,
        )
    ]


def layer_step(
    at: Sublayer, distances: Slopes | Buckets, scores: Float[ndarray, "h n n"], placed: ndarray, proof: Proof
) -> Step:
    """The position bias of all heads and positions at once."""
    n = scores.shape[-1]
    relative = relative_positions(n)
    first = latex.number(scores[0, -1, 0])
    start = f"relative = torch.arange({n})[None, :] - torch.arange({n})[:, None]\n"
    if isinstance(distances, Slopes):
        operands: tuple[Operand, ...] = (
            Operand("|i - j|", N_("how far each key is from the query"), np.abs(relative), ("queries", "keys")),
            Operand("m", N_("the slope of each head"), distances.slopes, ("heads",)),
        )
        text, formula = _slope_text(len(distances.slopes)), r"\tilde S_{h,i,j} = S_{h,i,j} - m_h\,|i - j|"
        added = rf"- {latex.number(distances.slopes[0])} \cdot {n - 1}"
        code = f"{start}scores = scores - slopes[:, None, None] * relative.abs()"
        inputs = {"slopes": torch.from_numpy(distances.slopes).float()}
    else:
        rows = distances.rows(relative)
        operands = (
            Operand(r"\beta(j - i)", N_("the bucket of each key"), rows, ("queries", "keys")),
            Operand("B", N_("a number for each bucket and head"), distances.table, ("features", "heads")),
        )
        text, formula = _bucket_text(distances), r"\tilde S_{h,i,j} = S_{h,i,j} + B_{\beta(j - i),\,h}"
        added = f"+ {latex.factor(float(distances.table[rows[-1, 0], 0]))}"
        code = f"{start}{_bucket_code(distances)}\nscores = scores + B[rows].permute(2, 0, 1)"
        inputs = {"B": torch.from_numpy(distances.table).float()}
    live = rf"\tilde S_{{0,{n - 1},0}} = {first} {added} = {latex.number(placed[0, -1, 0])}"
    return Step(
        at.key("position"),
        TITLE,
        text,
        formula,
        live,
        r"\tilde S",
        placed,
        code,
        proof,
        operands=operands,
        axes=MAPS,
        inputs=inputs,
    )


def _slope_text(n_heads: int) -> Message:
    return N_(
        "ALiBi: nothing was added to the embeddings for the position. Instead each head subtracts its "
        "slope times the distance between query and key from the score; slopes are the same in all "
        "layers and not learned. The slopes of the {n_heads} heads differ: a head with a steep slope "
        "attends to neighbours, one with a flat slope can attend far away.",
        n_heads=n_heads,
    )


def _bucket_text(distances: Buckets) -> Message:
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
