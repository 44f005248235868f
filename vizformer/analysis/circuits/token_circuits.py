"""The two circuits of a head from embedding to unembedding: which tokens attend to which (QK), and what that raises (OV).

    QK = W_E W_Q W_K^T W_E^T * scale   [query token, key token]
    OV = W_E W_V W_O W_U               [token that is looked at, token whose logit rises]

Both have d_head as their rank, and are never made whole.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", "Splitting attention head terms into
circuits" and "Summarizing OV/QK matrices".
"""

from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Complex, Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.circuits.weights import (
    HeadWeights,
    embedding,
    head_weights,
    known_heads,
    predicting_kind,
    unembedding,
)
from vizformer.checkpoints import AnyCheckpoint
from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
from vizformer.errors import TraceError
from vizformer.explain.arrays import float64
from vizformer.model.input_check import token_id
from vizformer.model.positions import rope_frequencies, rotation

MOST_TOKENS = 8192
"""The number of tokens among which pairs are searched: the first ones, in most vocabularies the most frequent."""
Circuit = Literal["qk", "ov"]
_ROWS = 512  # of a circuit that are held at once


class TokenPair(NamedTuple):
    """An entry of a circuit: the token of the row, of the column, and the value."""

    row: int
    column: int
    value: float


def eigenvalues(checkpoint: AnyCheckpoint, layer: int, head: int) -> Complex[ndarray, " d_head"]:
    """The eigenvalues of the OV circuit W_E W_V W_O W_U, largest first, without those that its rank d_head makes 0.

    They are those of W_O W_U W_E W_V [d_head, d_head].  Positive ones raise a token's own logit, a circle those of others.
    """
    own = head_weights(checkpoint, predicting_kind(checkpoint), layer, head)
    return _eigenvalues(own, _through(checkpoint))


def copying_scores(checkpoint: AnyCheckpoint) -> Float[ndarray, "n_layers n_heads"]:
    """sum of the eigenvalues of OV / sum of their absolute values, of every head: 1 for a head that only copies.

    -1 for one that lowers the logit of what it looks at, near 0 for one that does neither; NaN where OV is 0.

    Raises:
        TraceError: recorded code of which the matrices are not found and proved.
    """
    kind = predicting_kind(checkpoint)
    heads, through = known_heads(checkpoint, kind), _through(checkpoint)
    counts = checkpoint.shape.heads_of(kind)
    found = np.full((len(counts), max(counts)), np.nan)
    for own in heads:
        values = _eigenvalues(own, through)
        size = np.abs(values).sum()
        if size > 1e-12 * max(1.0, float(through.norm())):
            found[own.layer, own.head] = values.sum().real / size
    return found


def qk_pairs(checkpoint: AnyCheckpoint, layer: int, head: int, count: int = 20, distance: int = 0) -> list[TokenPair]:
    """The pairs (query token, key token) with the largest scores.

    `distance`: of the key before the query, in tokens, for models whose positions turn both; others do not depend on it.
    Below 0 the key is the later one.
    """
    own = head_weights(checkpoint, predicting_kind(checkpoint), layer, head)
    rows = embedding(checkpoint)[:MOST_TOKENS]
    queries = _turned(checkpoint, rows @ own.W_Q, distance)
    return _largest(queries * own.scale, (rows @ own.W_K).T, count)


def ov_pairs(checkpoint: AnyCheckpoint, layer: int, head: int, count: int = 20) -> list[TokenPair]:
    """The pairs (token that is looked at, token whose logit rises) with the largest values."""
    own = head_weights(checkpoint, predicting_kind(checkpoint), layer, head)
    rows, columns = embedding(checkpoint)[:MOST_TOKENS], unembedding(checkpoint)[:, :MOST_TOKENS]
    return _largest(rows @ own.W_V, own.W_O @ columns, count)


def token_scores(
    checkpoint: AnyCheckpoint, circuit: Circuit, layer: int, head: int, token: int, distance: int = 0
) -> Float[ndarray, " vocab_size"]:
    """One row of a circuit: the scores of all keys for a query token (QK), or the effects of a key on all logits (OV).

    `distance`: of the key before the query, as of `qk_pairs`; below 0 of a later key.

    Raises:
        TraceError: no such head, one that no one matrix describes, or no such token.
    """
    own, vocab = head_weights(checkpoint, predicting_kind(checkpoint), layer, head), checkpoint.model.config.vocab_size
    row = embedding(checkpoint, slice(token_id(token, vocab), token + 1))
    parts = [slice(first, first + MOST_TOKENS) for first in range(0, vocab, MOST_TOKENS)]
    if circuit == "qk":
        query = _turned(checkpoint, row @ own.W_Q, distance) * own.scale
        asked = own.W_K @ query[0]
        found = [embedding(checkpoint, part) @ asked for part in parts]
    else:
        written = (row @ own.W_V @ own.W_O)[0]
        found = [written @ unembedding(checkpoint, part) for part in parts]
    return float64(torch.cat(found))


def _through(checkpoint: AnyCheckpoint) -> Float[Tensor, "d_model d_model"]:
    """W_U W_E, the vocabulary a part at a time: whole tables in float64 would be several times the model."""
    if isinstance(checkpoint, RecordedCheckpoint):
        if checkpoint.circuits.through is None:
            raise TraceError(
                "No matrices were found that turn a token into its row of the stream and the last row into logits: another "
                "calculation, such as a norm after the embeddings or a cap of the logits, stands between."
            )
        return checkpoint.circuits.through.cpu().double()
    parts = [slice(first, first + MOST_TOKENS) for first in range(0, checkpoint.model.config.vocab_size, MOST_TOKENS)]
    return sum((unembedding(checkpoint, part) @ embedding(checkpoint, part) for part in parts), torch.zeros(()))


def _eigenvalues(own: HeadWeights, through: Float[Tensor, "d_model d_model"]) -> Complex[ndarray, " d_head"]:
    found: Complex[ndarray, " d_head"] = torch.linalg.eigvals(own.W_O @ through @ own.W_V).numpy()
    return np.asarray(found[np.argsort(-np.abs(found), kind="stable")])


def _turned(checkpoint: AnyCheckpoint, queries: Float[Tensor, "m d_head"], distance: int) -> Float[Tensor, "m d_head"]:
    """Rotates queries by RoPE to `distance` positions after their keys (before them where it is negative)."""
    config = checkpoint.model.config
    if config.positions != "rope" or not distance:
        return queries
    frequencies = rope_frequencies(config)
    turn = rotation(abs(distance) + 1, frequencies if distance > 0 else -frequencies)[abs(distance) :]
    return turn.turn(queries[None, :, None, :])[0, :, 0]


def _largest(left: Float[Tensor, "m d_head"], right: Float[Tensor, "d_head k"], count: int) -> list[TokenPair]:
    """The largest entries of left @ right, some rows at a time."""
    best: list[TokenPair] = []
    for first in range(0, len(left), _ROWS):
        block = left[first : first + _ROWS].float() @ right.float()
        values, places = block.flatten().topk(min(count, block.numel()))
        width = block.shape[1]
        best += [
            TokenPair(first + place // width, place % width, value)
            for value, place in zip(values.tolist(), places.tolist(), strict=True)
        ]
        best = sorted(best, key=lambda pair: (-pair.value, pair.row, pair.column))[:count]
    return best
