"""One forward as one picture: the rows that enter, the maps of the heads, layer by layer, and the tokens that come out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import Kind, n_layers, site_name
from vizformer.analysis.heads.measures import FEWEST_ROWS, RESTS, Rest, find_rests
from vizformer.analysis.one_forward.predictions import Prediction, most_probable
from vizformer.checkpoints import AnyCheckpoint
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace
from vizformer.text import Token

SHOWN = 32  # tokens of a stack up to which all are drawn; of more, one less, which leaves room for how many are not
CELLS = 32  # numbers of a row that are drawn: the first ones
LAYERS, HEADS = 3, 4  # drawn of a stack, and of a layer
CANDIDATES = 5
ITSELF = -1  # in the place of a key
_ALL = 0.99

Stack = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class Attention:
    """The heads of one layer that are drawn, between the tokens that are drawn."""

    kind: Kind
    layer: int
    heads: tuple[int, ...]
    n_heads: int
    scale: float  # what q . k is multiplied by
    # whether softmax sees q . k * scale alone: no distance is added, and nothing bent
    plain: bool
    weights: Float[ndarray, "heads n_q n_k"]
    scores: Float[ndarray, "heads n_q n_k"]  # before the mask
    reasons: UInt8[ndarray, "n_q n_k"]  # why a cell is masked, 0 where it is not (`vizformer.model.masks.Reason`)
    totals: Float[ndarray, "heads n_q"]  # log sum exp of a row's scores, over all keys that are visible
    rests: tuple[Rest | None, ...]  # of each head: the key on which it rests, `ITSELF` where each token rests on itself


@dataclass(frozen=True)
class Lane:
    """One stack of the model."""

    stack: Stack
    tokens: tuple[Token, ...]
    count: int  # tokens that the stack reads
    embedded: Float[ndarray, "n cells"]  # E[id], times sqrt(d_model) where the model does that
    added: Float[ndarray, "n cells"] | None  # the positional encoding; None where none is added
    layers: int  # number of layers in the stack
    attention: tuple[Attention, ...]  # of the layers that are drawn, in the order of the data


@dataclass(frozen=True)
class Look:
    """The cell of a head with which the picture begins: its place among all `Attention`, head, query and key."""

    attention: int
    head: int
    query: int
    key: int


@dataclass(frozen=True)
class ForwardPicture:
    lanes: tuple[Lane, ...]
    # of each row that is drawn of the last stack, the most probable tokens; empty without a head that predicts
    candidates: tuple[tuple[Prediction, ...], ...]
    look: Look
    # the text that a decoder beside an encoder has written, token by token: one for each row after the first
    written: tuple[str, ...]


@torch.inference_mode()
def forward_picture(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    *,
    layer: int = 0,
    whole: tuple[Kind, int] | None = None,
    every: bool = False,
    predicts: bool = True,
) -> ForwardPicture:
    """The numbers of a forward that the picture shows.

    Args:
        layer: of more than `LAYERS` layers, one that is to be among them; the first and the last are in any case.
        whole: the kind and layer of which all heads are drawn.
        every: whether all heads of all layers are drawn.
        predicts: whether the model came with a head that predicts tokens.
    """
    stacks: tuple[Stack, ...] = ("encoder", "decoder")
    lanes = tuple(
        _lane(checkpoint, trace, stack, layer, whole, every=every) for stack in stacks if stack in trace.tokens
    )
    last = lanes[-1]
    both = len(lanes) > 1
    return ForwardPicture(
        lanes,
        tuple(most_probable(checkpoint, trace.logits[i], CANDIDATES) for i in range(len(last.tokens)))
        if predicts
        else (),
        _look(lanes, checkpoint.model.config.mask_id),
        _written(checkpoint, last.tokens) if both else (),
    )


def shown_layers(count: int, wanted: int) -> list[int]:
    """All layers, or the first, the one that is wanted (else one in the middle), and the last."""
    if count <= LAYERS:
        return list(range(count))
    return [0, wanted if 0 < wanted < count - 1 else count // 2, count - 1]


def apart(maps: Float[ndarray, "heads n_q n_k"], count: int) -> list[int]:
    """The heads that differ most: the two farthest apart, then always the one farthest from those that were taken.

    d(a, b) = sum_ij |a_ij - b_ij|.
    """
    if len(maps) <= count:
        return list(range(len(maps)))
    flat = maps.reshape(len(maps), -1)
    distances = np.stack([np.abs(flat - one).sum(axis=1) for one in flat])  # [heads, heads]
    taken = [int(i) for i in np.unravel_index(int(distances.argmax()), distances.shape)]
    while len(taken) < count:
        nearest = distances[:, taken].min(axis=1)
        nearest[taken] = -1
        taken.append(int(nearest.argmax()))
    return sorted(taken)


def _lane(
    checkpoint: AnyCheckpoint, trace: Trace, stack: Stack, layer: int, whole: tuple[Kind, int] | None, *, every: bool
) -> Lane:
    tokens = trace.tokens[stack]
    n = _drawn(tokens)
    embedded, added = input_rows(checkpoint, stack, tokens[:n])
    kinds: tuple[Kind, ...] = (stack, "cross") if stack == "decoder" and "encoder" in trace.tokens else (stack,)
    keys: dict[Kind, int] = {stack: n, "cross": _drawn(trace.tokens.get("encoder", ()))}
    count = n_layers(trace, stack)
    return Lane(
        stack,
        tokens[:n],
        len(tokens),
        embedded[:, :CELLS].numpy(),
        None if added is None else added[:, :CELLS].numpy(),
        count,
        tuple(
            _attention(trace[site_name(kind, one)], kind, one, n, keys[kind], every=every or (kind, one) == whole)
            for one in (range(count) if every else shown_layers(count, layer))
            for kind in kinds
        ),
    )


def input_rows(
    checkpoint: AnyCheckpoint, stack: Stack, tokens: Sequence[Token]
) -> tuple[Float[Tensor, "n d_model"], Float[Tensor, "n d_model"] | None]:
    """E[id], times sqrt(d_model) where the model does that; and the positional encoding, None where none is added."""
    model = checkpoint.model
    rows = model.token_table(stack).weight[[token.id for token in tokens]]
    positions = model.positions(len(tokens), stack)
    return rows.float().cpu() * model.config.embedding_factor, None if positions is None else positions.float().cpu()


def _drawn(tokens: Sequence[Token]) -> int:
    return len(tokens) if len(tokens) <= SHOWN else SHOWN - 1


def _attention(record: AttentionRecord, kind: Kind, layer: int, n_q: int, n_k: int, *, every: bool) -> Attention:
    rows = record.of_queries(0, n_q)
    every_score = rows.all_scores()
    maps = rows.all_patterns(every_score)[:, :, :n_k].float().cpu().numpy()
    heads = apart(maps, len(maps) if every else HEADS)
    scores = every_score[heads].float()
    blocked = torch.stack([rows.reason(head) for head in heads])
    reasons = blocked[0, :, :n_k].cpu().numpy()
    return Attention(
        kind,
        layer,
        tuple(heads),
        record.n_heads,
        record.scale,
        rows.position_bias is None and rows.scoring.is_product,
        maps[heads],
        scores[:, :, :n_k].cpu().numpy(),
        reasons,
        scores.masked_fill(blocked > 0, -torch.inf).logsumexp(2).cpu().numpy(),
        _rests(kind, maps[heads], reasons),
    )


def _rests(
    kind: Kind, maps: Float[ndarray, "heads n_q n_k"], reasons: UInt8[ndarray, "n_q n_k"]
) -> tuple[Rest | None, ...]:
    """`find_rests`; else whether the tokens that see several keys give themselves most, on average."""
    found, choosing = find_rests(maps, reasons), (reasons == 0).sum(1) > 1
    if kind != "cross" and choosing.sum() >= FEWEST_ROWS:
        shares = maps.diagonal(axis1=1, axis2=2)[:, choosing].mean(1)
        own = [Rest(ITSELF, float(share)) if share > RESTS else None for share in shares]
        found = [rest or itself for rest, itself in zip(found, own, strict=True)]
    return tuple(found)


def _look(lanes: Sequence[Lane], mask_id: int | None) -> Look:
    """The largest weight on a word in the last kind of attention, over the rows that choose a token.

    Weights that are all there is to give (above `_ALL`) are left out: of them there is nothing to work out.
    """
    every = [one for lane in lanes for one in lane.attention]
    queries, keys = lanes[-1].tokens, lanes[0].tokens
    cross = len(lanes) > 1
    wanted = np.array([[_is_word(b) and (cross or i != j) for j, b in enumerate(keys)] for i, a in enumerate(queries)])
    if cross:  # the row before a word chooses it, and the first one has nothing to go by
        rows = [0 < i < len(queries) - 1 and _is_word(queries[i + 1]) for i in range(len(queries))]
    elif lanes[-1].stack == "decoder":  # the last row chooses what follows the text
        rows = [i == len(queries) - 1 for i in range(len(queries))]
    else:
        rows = [mask_id is not None and token.id == mask_id for token in queries]
    if (chosen := wanted & np.array(rows)[:, None]).any():
        wanted = chosen
    return _largest(every, every[-1].kind, wanted)


def look_of(lanes: Sequence[Lane], kind: Kind) -> Look | None:
    """The largest weight from one word to another in a kind of attention; None where the model has no such kind."""
    every = [one for lane in lanes for one in lane.attention]
    if all(one.kind != kind for one in every):
        return None
    queries = lanes[0 if kind == "encoder" else -1].tokens
    keys = lanes[0].tokens if kind == "cross" else queries
    others = np.array([[kind == "cross" or i != j for j in range(len(keys))] for i in range(len(queries))])
    return _largest(every, kind, others & np.outer([*map(_is_word, queries)], [*map(_is_word, keys)]))


def _largest(every: Sequence[Attention], kind: Kind, wanted: Bool[ndarray, "n_q n_k"]) -> Look:
    """The largest weight of a kind among the cells that are wanted; of heads that rest only where all do."""
    if not wanted.any():
        wanted[:] = True
    best = (-np.inf, Look(0, 0, 0, 0))
    for place, one in enumerate(every):
        if one.kind != kind:
            continue
        rests = np.array([rest is not None for rest in one.rests])[:, None, None]
        weights = np.where(wanted & (one.weights < _ALL), np.nan_to_num(one.weights) - rests, -2)
        head, query, key = (int(i) for i in np.unravel_index(int(weights.argmax()), weights.shape))
        best = max(best, (float(weights[head, query, key]), Look(place, head, query, key)), key=lambda found: found[0])
    return best[1]


def _is_word(token: Token) -> bool:
    return not token.special and any(map(str.isalnum, token.text))


def _written(checkpoint: AnyCheckpoint, tokens: Sequence[Token]) -> tuple[str, ...]:
    """What each token adds to the text: text(first i + 1) after text(first i)."""
    said, found = "", []
    for end in range(2, len(tokens) + 1):
        text = checkpoint.tokenizer.decode([token.id for token in tokens[:end]])
        found.append(text[len(said) :] if text.startswith(said) else tokens[end - 1].text)
        said = text
    return tuple(found)
