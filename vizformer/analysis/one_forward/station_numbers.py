"""What single stations of the path show of one forward, besides the token that all of them follow (`followed_token`)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import site_name
from vizformer.analysis.one_forward.followed_token import FollowedToken, Look
from vizformer.analysis.one_forward.picture_numbers import CELLS, Stack
from vizformer.checkpoints import AnyCheckpoint
from vizformer.model.records import weights_of
from vizformer.model.trace import Trace

FACTORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # what scores are multiplied by, before their softmax
TEMPERATURES = (0.25, 0.5, 1.0, 1.5, 2.0, 4.0)
PLACES = 12  # at which a token is tried


@dataclass(frozen=True)
class HeadRow:
    """The scores of one head between the tokens that are shown, and the weighted values of the query that is followed."""

    scores: Float[ndarray, "n_q n_k"]  # what softmax sees; NaN where the mask blocks
    # weight times value row, one row for each key, of the query that is followed: its first cells
    weighted: Float[ndarray, "n_k cells"]
    z: Float[ndarray, " cells"]  # their sum, what the head finds: its first cells
    d_head: int


@torch.inference_mode()
def head_row(trace: Trace, stack: Stack, look: Look) -> HeadRow:
    """The scores of a head and, for the query that is followed, z = sum_j a_j v_j [d_head] with its terms a_j v_j."""
    record = trace[site_name(stack, look.layer)]
    n_q, n_k = look.weights.shape
    scores = record.scores(look.head)[:n_q, :n_k].float().cpu().numpy()
    values = record.v[record.kv_head(look.head)].float()  # [all keys, d_head]
    weights = record.pattern(look.head)[look.query].float()  # [all keys]
    weighted = weights[:, None] * values
    z = weighted.sum(dim=0)
    return HeadRow(
        np.where(look.blocked, np.nan, scores),
        weighted[:n_k, :CELLS].cpu().numpy(),
        z[:CELLS].cpu().numpy(),
        values.shape[1],
    )


def scaled(scores: Float[ndarray, " n"], factor: float) -> Float[ndarray, " n"]:
    """softmax(factor * scores) over what is not NaN."""
    exponents = factor * scores - np.nanmax(factor * scores)
    powers = np.where(np.isnan(exponents), 0.0, np.exp(exponents))
    return powers / powers.sum()


@torch.inference_mode()
def layer_maps(trace: Trace, stack: Stack, look: Look) -> Float[ndarray, "heads n_q n_k"]:
    """The weights of all heads of the layer, between the tokens that are shown."""
    record = trace[site_name(stack, look.layer)]
    n_q, n_k = look.weights.shape
    return np.stack([record.pattern(head)[:n_q, :n_k].float().cpu().numpy() for head in range(record.n_heads)])


def previous_shares(maps: Float[ndarray, "heads n n"]) -> Float[ndarray, " heads"]:
    """The weight of each head on the previous token, averaged over all rows but the first."""
    return np.array([np.diagonal(one, -1).mean() if len(one) > 1 else 0.0 for one in maps])


@dataclass(frozen=True)
class Unmasked:
    """A head of causal attention as it is, and the same scores without the mask."""

    layer: int
    head: int
    # masked, open: the weights [n, n]; NaN where the mask blocks
    masked: Float[ndarray, "n n"]
    open: Float[ndarray, "n n"]
    # of the attention without a mask, the share that goes to later tokens; the mean of all rows but the last
    ahead: float


@torch.inference_mode()
def unmasked(trace: Trace, shown: int) -> Unmasked:
    """The head of the decoder's first layer that would give later tokens the most weight without a mask."""
    layer = 0
    record = trace[site_name("decoder", layer)]
    n = min(shown, record.q.shape[1])
    found = []
    for head in range(record.n_heads):
        scores = record.scores(head)[:n, :n].float()
        free = weights_of(scores)
        ahead = float(free.triu(1)[:-1].sum(dim=1).mean()) if n > 1 else 0.0
        found.append((ahead, head, free))
    ahead, head, free = max(found, key=lambda one: one[0])
    blocked = record.reason(head)[:n, :n].cpu().numpy() > 0
    pattern = record.pattern(head)[:n, :n].float().cpu().numpy()
    return Unmasked(layer, head, np.where(blocked, np.nan, pattern), free.cpu().numpy(), ahead)


@dataclass(frozen=True)
class Placed:
    """One token at several places."""

    rows: Float[ndarray, "places cells"]  # the first cells of embedding + position, for each place
    cosines: Float[ndarray, " places"]  # of the whole rows with the one at place 0


@torch.inference_mode()
def placed(checkpoint: AnyCheckpoint, found: FollowedToken, stack: Stack) -> Placed | None:
    """The row of the token that is followed, at place 0, 1, ...; None where no position vectors are added to it."""
    if found.added is None or not found.plain:
        return None
    model = checkpoint.model
    positions = model.positions(PLACES, stack)
    assert positions is not None  # found.added is not
    table = model.token_table(stack).weight
    row: Tensor = table[[found.tokens[found.followed].id]].float()
    rows = row * model.config.embedding_factor + positions.float()  # [PLACES, d_model]
    cosines = torch.cosine_similarity(rows[:1], rows, dim=1)
    return Placed(rows[:, :CELLS].cpu().numpy(), cosines.cpu().numpy())


@torch.inference_mode()
def tempered(trace: Trace, position: int, ids: Sequence[int]) -> Float[ndarray, "temperatures ids"]:
    """softmax(logits / T) of some tokens, for each of `TEMPERATURES`."""
    logits = trace.logits[position].double().cpu()
    return np.stack([torch.softmax(logits / t, dim=-1)[list(ids)].numpy() for t in TEMPERATURES])


@torch.inference_mode()
def nearest(checkpoint: AnyCheckpoint, ids: Sequence[int], stack: Stack, count: int) -> list[list[tuple[int, float]]]:
    """For each token the rows of the embedding table with the largest cosines to its own, and these cosines."""
    table = checkpoint.model.token_table(stack).weight.float()  # [vocab_size, d_table]
    lengths = table.norm(dim=1).clamp(min=1e-12)
    found = []
    for id in ids:
        cosines = table @ table[id] / (lengths * lengths[id])  # [vocab_size]
        cosines[id] = -torch.inf
        best = cosines.topk(min(count, len(cosines) - 1))
        found.append(list(zip(best.indices.tolist(), best.values.tolist(), strict=True)))
    return found
