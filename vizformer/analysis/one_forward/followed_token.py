"""One token followed through a forward, from its embedding to the prediction: what the stations of the path show."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import n_layers, site_name
from vizformer.analysis.one_forward.picture_numbers import CELLS, Stack, input_rows
from vizformer.analysis.one_forward.predictions import Choice, Prediction, choices, next_tokens
from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain import position_terms
from vizformer.explain.sublayer import find_site
from vizformer.model.input_check import row_at
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace
from vizformer.text import Token

SHOWN = 16  # tokens of a stack that are shown: the first ones

LAYERS = 12
"""The number of first layers from which the head to show is chosen; all layers of a very deep model would take long."""

_DIALS = 4  # pairs of a rotation: the fastest, and others as far apart as there are
_CANDIDATES = 6


@dataclass(frozen=True)
class Look:
    """The attention weights of one head between the tokens that are shown."""

    # layer, head: which one
    layer: int
    head: int
    # query, key: the row that is followed, and the token at which it is seen to look
    query: int
    key: int
    weights: Float[ndarray, "n_q n_k"]  # its attention weights
    blocked: Bool[ndarray, "n_q n_k"]  # where the mask forbids a look


@dataclass(frozen=True)
class Rows:
    """Rows of d_model numbers: the first `CELLS` of them, and the lengths of the whole."""

    cells: Float[ndarray, "m cells"]
    lengths: Float[ndarray, " m"]


@dataclass(frozen=True)
class Writing:
    """The tokens that the decoder chooses in the rows that are shown."""

    choices: tuple[Choice, ...]  # what follows each row, and what the model itself finds most probable
    probabilities: Float[ndarray, " n_target"]  # of the token that follows


@dataclass(frozen=True)
class FollowedToken:
    tokens: tuple[Token, ...]  # of the stack that reads the text; the first `SHOWN` of `count`
    count: int  # tokens that the text has
    followed: int  # the token whose row is followed
    width: int  # d_model
    embedded: Float[ndarray, "n table_cells"]  # E[id], times sqrt(d_model) where the model does that
    added: Float[ndarray, "n table_cells"] | None  # the position vectors; None where none are added
    entering: Float[ndarray, "n cells"]  # what enters the first layer
    plain: bool  # whether entering = embedded + added: nothing else is added, and nothing normalised
    # of RoPE, in radians: a column for some of the pairs, the fastest first; else None
    angles: Float[ndarray, "n dials"] | None
    look: Look  # a head of self-attention
    # the row that is followed, in the layer of that head: before it, what its attention adds, after its attention and
    # after its feed-forward network
    sublayers: Rows
    layers: Rows  # the row that is followed: before the first layer and after every layer
    cosines: Float[ndarray, " m"]  # cosines of the rows in `layers` with the first one
    target: tuple[Token, ...]  # tokens of the decoder that looks at an encoder; empty where there is none
    cross: Look | None  # its head that looks most at the token that is followed; None likewise
    writing: Writing | None  # what the decoder chooses; None where there is no decoder, or no head that predicts
    position: int  # the row, of the last stack, that the candidates belong to
    # the most probable tokens there, with the one that follows in any case; empty without a head
    candidates: tuple[Prediction, ...]


@torch.inference_mode()
def follow_token(
    checkpoint: AnyCheckpoint, trace: Trace, followed: int, *, predicts: bool = True, position: int | None = None
) -> FollowedToken:
    """The numbers of a forward that are shown, for one token of the text.

    Args:
        checkpoint: the model.
        trace: its forward.
        followed: the token's place among the first `SHOWN` of the stack that reads the text.
        predicts: whether the model came with a head that predicts tokens.
        position: the row of the candidates where no encoder is looked at; None: that of the token that is followed.
    """
    stack: Stack = "encoder" if "encoder" in trace.tokens else "decoder"
    tokens = trace.tokens.get(stack, ())
    n = min(SHOWN, len(tokens))
    followed = row_at(followed, n)
    config = checkpoint.model.config
    embedded, added = input_rows(checkpoint, stack, tokens[:n])
    entering = trace.residual(f"{stack}.0.pre")[:n].float().cpu()  # [n, d_model]
    total = embedded if added is None else embedded + added
    look = _look(trace, stack, tokens, followed, n)
    target = trace.tokens["decoder"][:SHOWN] if stack == "encoder" and "decoder" in trace.tokens else ()
    found = choices(checkpoint, trace)[:SHOWN] if predicts else ()
    cross = _cross(trace, tokens, target, found, followed, n) if target else None
    position = cross.query if cross is not None else followed if position is None else position
    layers = [trace.residual(f"{stack}.0.pre")[followed]]
    layers += [trace.residual(f"{stack}.{layer}.post")[followed] for layer in range(n_layers(trace, stack))]
    return FollowedToken(
        tokens=tokens[:n],
        count=len(tokens),
        followed=followed,
        width=config.d_model,
        embedded=_cells(embedded),
        added=None if added is None else _cells(added),
        entering=_cells(entering),
        plain=torch.allclose(total, entering, rtol=1e-2, atol=1e-2 * float(total.abs().max())),
        angles=_dials(position_terms.angles(config, n)) if config.positions == "rope" else None,
        look=look,
        sublayers=_sublayers(checkpoint, trace, f"{stack}.{look.layer}", followed),
        layers=_rows(layers),
        cosines=np.array([torch.cosine_similarity(layers[0].float(), row.float(), dim=0).item() for row in layers]),
        target=target,
        cross=cross,
        writing=_writing(checkpoint, trace, found) if found else None,
        position=position,
        candidates=_candidates(checkpoint, trace, position, found) if predicts else (),
    )


def _look(trace: Trace, stack: Stack, tokens: Sequence[Token], query: int, n: int) -> Look:
    """The head, in the first layers with a softmax, in which `query` gives another shown word the largest weight."""
    words = [i for i, token in enumerate(tokens[:n]) if i != query and _is_word(token)]
    others = words or [i for i in range(n) if i != query] or [query]
    found = [
        (float(weights[query, key]), layer, head, key)
        for layer in range(n_layers(trace, stack))[:LAYERS]
        for head, weights in enumerate(_patterns(trace[site_name(stack, layer)], n))
        for key in others
    ]
    _, layer, head, key = max(found, key=lambda one: one[0])
    return _shown(trace[site_name(stack, layer)], layer, head, query, key, n, n)


def _is_word(token: Token) -> bool:
    return not token.special and any(map(str.isalnum, token.text))


def _cross(
    trace: Trace, tokens: Sequence[Token], target: Sequence[Token], found: Sequence[Choice], key: int, n: int
) -> Look:
    """The cross-attention head of the first layers, and the decoder row, with the largest weight on `key`.

    Rows that choose a word come before those that choose a mark.
    """
    rows = [i for i, choice in enumerate(found) if _is_word(choice.next)] or list(range(len(target)))
    m = len(target)
    best = [
        (float(weights[row, key]), layer, head, row)
        for layer in range(min(LAYERS, n_layers(trace, "cross")))
        for head, weights in enumerate(_patterns(trace[site_name("cross", layer)], m))
        for row in rows
    ]
    _, layer, head, row = max(best, key=lambda one: one[0])
    return _shown(trace[site_name("cross", layer)], layer, head, row, key, m, n)


def _shown(record: AttentionRecord, layer: int, head: int, query: int, key: int, n_q: int, n_k: int) -> Look:
    rows = record.of_queries(0, n_q)
    weights = rows.pattern(head).float().cpu().numpy()  # [n_q, all keys]
    return Look(
        layer,
        head,
        query,
        key,
        weights[:, :n_k],
        rows.reason(head).cpu().numpy()[:, :n_k] > 0,
    )


def _patterns(record: AttentionRecord, n: int) -> list[ndarray]:
    """The weights of every head, for the first queries: [n, n_k] each."""
    rows = record.of_queries(0, n)
    return [rows.pattern(head).float().cpu().numpy() for head in range(rows.n_heads)]


def _dials(angles: Float[ndarray, "n pairs"]) -> Float[ndarray, "n dials"]:
    pairs = np.unique(np.linspace(0, angles.shape[1] - 1, _DIALS).round().astype(int))
    return angles[:, pairs]


def _sublayers(checkpoint: AnyCheckpoint, trace: Trace, layer: str, row: int) -> Rows:
    """x, what attention adds (z W_O + b_O, from the model's own z), x after it, x at the end of the layer."""
    at = find_site(checkpoint, trace, f"{layer}.self")
    record = trace[at.name].of_queries(row, row + 1)
    z = torch.cat([record.z(head)[0] for head in range(record.n_heads)])  # [n_heads * d_head]
    brought = at.attention.W_O(z)
    return _rows(
        [trace.residual(at.before)[row], brought, trace.residual(at.after)[row], trace.residual(f"{layer}.post")[row]]
    )


def _rows(rows: Sequence[Tensor]) -> Rows:
    stacked = torch.stack([row.float().cpu() for row in rows])  # [m, d_model]
    return Rows(_cells(stacked), stacked.norm(dim=1).numpy())


def _cells(rows: Float[Tensor, "m d_model"]) -> Float[ndarray, "m cells"]:
    return rows[:, :CELLS].numpy()


def _writing(checkpoint: AnyCheckpoint, trace: Trace, found: Sequence[Choice]) -> Writing:
    """log P = logit - log sum exp(logits), row by row."""
    logits = trace.logits[: len(found)].double().cpu()
    ids = torch.tensor([choice.next.id for choice in found])
    log = logits.gather(1, ids[:, None])[:, 0] - logits.logsumexp(dim=1)
    return Writing(tuple(found), log.exp().numpy())


def _candidates(
    checkpoint: AnyCheckpoint, trace: Trace, position: int, found: Sequence[Choice]
) -> tuple[Prediction, ...]:
    best = next_tokens(checkpoint, trace, position, _CANDIDATES)
    if found and (follows := found[position].next).id not in [one.token.id for one in best]:
        p = torch.softmax(trace.logits[position].double(), dim=-1)[follows.id]
        best = (*best[:-1], Prediction(follows, float(p)))
    return best
