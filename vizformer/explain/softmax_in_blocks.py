"""FlashAttention's online softmax for one query, tile by tile: no row of weights is ever held as a whole.

    begin        m = -inf, l = 0, o = 0
    each tile    m' = max(m, max_j s_j)                      the largest score so far
                 c = exp(m - m')                             what was summed with the old m is worth now
                 p_j = exp(s_j - m')
                 l' = c l + sum_j p_j,  o' = c o + sum_j p_j v_j
    end          z = o / l

s_j are the scores of the keys of a tile (-inf where the mask blocks), v_j their values.  A tile all of whose keys are
blocked is left out.

Source: Dao et al. 2022, "FlashAttention", section 3.1 and Algorithm 1; Milakov & Gimelshein 2018, "Online normalizer
calculation for softmax", Algorithm 3.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain import latex
from vizformer.explain.arrays import float64
from vizformer.explain.step import Made, Maker, Operand, Proof, Step, filled
from vizformer.messages import N_
from vizformer.model.input_check import row_at
from vizformer.model.records import AttentionRecord

MOST_TILES = 32
# what becomes of the largest score with a tile
_MAXIMUM = {
    "first": N_("The first scores: there is nothing to rescale yet."),
    "stays": N_("The maximum stays, so that the factor is 1: this tile is only added."),
    "larger": N_(
        "A larger score than all before: what was summed with the old maximum is multiplied by c = {factor}, then "
        "this tile is added."
    ),
}


@dataclass(frozen=True)
class Tile:
    """One tile of keys, and the running numbers after it."""

    # first, last: its keys, `last` not included
    first: int
    last: int
    scores: Float[ndarray, " keys"]  # with the mask
    values: Float[ndarray, "keys d_head"]  # the values v_j of its keys
    skipped: bool  # whether all its keys are blocked
    largest: float  # m' after it
    factor: float  # c, with which the sums from before are multiplied; 1 where the maximum stays, 0 for the first tile
    weights: Float[ndarray, " keys"]  # p_j, not divided yet
    total: float  # l'
    output: Float[ndarray, " d_head"]  # o'


@dataclass(frozen=True)
class OnlineSoftmax:
    tiles: tuple[Tile, ...]  # in their order
    z: Float[ndarray, " d_head"]  # o / l after the last one; 0 where every key is blocked
    plain: Proof  # against softmax over the whole row, then times V (PyTorch, in the model's numbers)
    fused: Proof  # against z of the model's own fused call


def tile_sizes(n_k: int) -> tuple[int, ...]:
    """The tile sizes to choose from: powers of two that cut n_k keys into at most `MOST_TILES` tiles; the last is n_k."""
    sizes = [2**e for e in range(max(1, n_k).bit_length() + 1)]
    return tuple(size for size in sizes if -(-n_k // size) <= MOST_TILES and size < 2 * n_k)


def online_softmax(record: AttentionRecord, head: int, query: int, tile: int) -> OnlineSoftmax:
    """The online softmax of one row, in tiles of `tile` keys.

    Raises:
        ValueError: a tile without keys.
    """
    if tile < 1:
        raise ValueError(f"tile = {tile}: a tile has at least one key")
    query = row_at(query, record.q.shape[1])
    blocked = record.reason(head)[query].cpu().numpy() > 0
    scores = np.where(blocked, -np.inf, float64(record.scores(head)[query]))
    values = float64(record.v[record.kv_head(head)])
    m, total, output = -np.inf, 0.0, np.zeros(values.shape[1])
    tiles = []
    for first in range(0, len(scores), tile):
        s, v = scores[first : first + tile], values[first : first + tile]
        skipped = not np.isfinite(s).any()
        factor, p = 1.0, np.zeros(len(s))
        if not skipped:
            largest = max(m, float(s.max()))
            factor, p = float(np.exp(m - largest)), np.exp(s - largest)
            m, total, output = largest, factor * total + float(p.sum()), factor * output + p @ v
        tiles.append(Tile(first, first + len(s), s, v, skipped, m, factor, p, total, output))
    z = output / total if total else output
    whole = record.pattern(head)[query] @ record.v[record.kv_head(head)].to(record.pattern(head).dtype)
    share = np.exp(scores - m) / total if total else np.zeros(len(scores))
    return OnlineSoftmax(
        tuple(tiles),
        z,
        Proof.compare(N_("the softmax of the whole row at once, times V"), z, whole),
        Proof.compare(
            N_("z, as the model computed it"),
            z,
            record.z(head)[query],
            terms=float(np.abs(share @ np.abs(values)).max()),
        ),
    )


def online_softmax_steps(found: OnlineSoftmax) -> list[Step]:
    """The online softmax as steps: the start, each tile, and the division at the end."""
    through = Proof(found.plain.anchor, found.plain.difference, found.plain.holds, False, found.plain.precision)
    d = len(found.z)
    m, total, output = -np.inf, 0.0, np.zeros(d)
    make = Maker("", through)
    steps = [
        make(
            "begin",
            N_("Before the first tile"),
            N_("Nothing has been seen: the running maximum m is -∞, the running sum l and the running output o are 0."),
            r"m = -\infty, \qquad l = 0, \qquad o = 0",
            rf"o \in \mathbb{{R}}^{{{d}}}",
            "o",
            output,
            f"m, l = torch.tensor([-math.inf]), torch.tensor([{total}])\no = torch.zeros({d})",
            also=(_made("m", N_("the running maximum m"), m), _made("l", N_("the running sum l"), total)),
            meaning=N_("the running output o"),
        )
    ]
    for index, tile in enumerate(found.tiles):
        steps.append(_tile_step(make, index, tile, len(found.tiles), m, total, output))
        m, total, output = tile.largest, tile.total, tile.output
    j = int(np.argmax(np.abs(found.z)))
    live = rf"z_{{{j}}} = \frac{{{latex.number(output[j])}}}{{{latex.number(total)}}} = {latex.number(found.z[j])}"
    steps.append(
        make(
            "end",
            N_("Divide once, at the end"),
            N_(
                "Only now is the sum of all exponentials known. Every weight has been divided by it, without any "
                "being kept."
            ),
            r"z = o / l",
            live if total else "z = 0",
            "z",
            found.z,
            "z = o / l" if total else "z = (o / l).nan_to_num(0.0)  # every key is blocked",
            proof=found.plain,
            operands=(
                Operand("o", N_("the running output o"), output),
                Operand("l", N_("the running sum l"), np.array([total])),
            ),
        )
    )
    return steps


def _made(variable: str, meaning: object, value: float) -> Made:
    return Made(variable, Operand(variable, meaning, np.array([value])))  # type: ignore[arg-type]


def _tile_step(make: Maker, index: int, tile: Tile, count: int, m: float, total: float, output: ndarray) -> Step:
    title = N_(
        "Tile {index} of {count}: keys {first} to {last}",
        index=index + 1,
        count=count,
        first=tile.first,
        last=tile.last - 1,
    )
    also = (_made("m", N_("the running maximum m"), tile.largest), _made("l", N_("the running sum l"), tile.total))
    scores = Operand("s", N_("the scores of this tile, with the mask"), tile.scores, ("keys",))
    if tile.skipped:
        return make(
            f"tile{index}",
            title,
            N_("Every key of this tile is blocked. Its scores are not even computed: nothing changes."),
            r"m' = m, \qquad l' = l, \qquad o' = o",
            rf"l = {latex.number(total)}",
            "o",
            tile.output,
            "o = o  # this tile is left out",
            operands=(scores,),
            blocked=np.ones(len(tile.scores), dtype=bool),
            also=also,
            meaning=N_("the running output o"),
        )
    case = "first" if not np.isfinite(m) else "stays" if tile.largest == m else "larger"
    text = filled(_MAXIMUM[case], factor=f"{tile.factor:.4g}")
    j = int(np.argmax(np.abs(tile.output)))
    sums = latex.sum_of(tile.weights)
    return make(
        f"tile{index}",
        title,
        text,
        r"\begin{aligned} m' &= \max(m, \max_j s_j), & c &= e^{m - m'}, & p_j &= e^{s_j - m'} \\"
        r" l' &= c\, l + \textstyle\sum_j p_j, & o' &= c\, o + \textstyle\sum_j p_j v_j \end{aligned}",
        r"\begin{aligned} "
        rf"m' &= \max({latex.number(m)},\; {latex.number(float(tile.scores.max()))}) = {latex.number(tile.largest)} \\ "
        rf"c &= {latex.number(tile.factor)} \\ "
        rf"l' &= {latex.number(tile.factor)} \cdot {latex.number(total)} + {sums} = {latex.number(tile.total)} \\ "
        rf"o'_{{{j}}} &= {latex.number(tile.factor)} \cdot {latex.factor(float(output[j]))} + "
        rf"{latex.factor(float(tile.weights @ tile.values[:, j]))} = {latex.number(float(tile.output[j]))} "
        r"\end{aligned}",
        "o",
        tile.output,
        "m_new = torch.maximum(m, s.max())\n"
        "c, p = torch.exp(m - m_new), torch.exp(s - m_new)\n"
        "l, o, m = c * l + p.sum(), c * o + p @ v, m_new",
        operands=(scores, Operand("V", N_("the values of this tile, one row each"), tile.values, ("keys", "features"))),
        variable="o",
        blocked=~np.isfinite(tile.scores),
        inputs={"s": torch.from_numpy(tile.scores), "v": torch.from_numpy(tile.values)},
        also=(
            Made("p", Operand("p", N_("the exponentials of this tile"), tile.weights, ("keys",))),
            _made("c", N_("the factor c"), tile.factor),
            *also,
        ),
        meaning=N_("the running output o"),
    )
