"""A mask laid over the scores of a head, proved by an independent computation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray

from vizformer.explain.arrays import float64, softmax
from vizformer.explain.step import Proof
from vizformer.messages import N_
from vizformer.model import AttentionRecord, Mask, Reason
from vizformer.model.masks import total_bias
from vizformer.model.mixing import mix_scored


@dataclass(frozen=True)
class Masked:
    """softmax(S + M) of one head, in float64 from the q and k that the model used.

    Attributes:
        scores: S = q k^T / sqrt(d_head) (plus the position bias, where the model has one), before the mask.
        bias: M, 0 or -inf.
        weights: rows sum to 1; a row that is blocked as a whole is 0.
        reasons: why a cell is blocked (`vizformer.model.Reason`), 0 where it is not.
        own: whether the model itself ran with this mask.
        proof: weights @ v against z: the model's own where `own`, else a fused call with this mask.
    """

    scores: Float[ndarray, "n_q n_k"]
    bias: Float[ndarray, "n_q n_k"]
    weights: Float[ndarray, "n_q n_k"]
    reasons: UInt8[ndarray, "n_q n_k"]
    own: bool
    proof: Proof

    @property
    def blocked(self) -> Bool[ndarray, "n_q n_k"]:
        """Which cells are blocked, for any reason."""
        return self.reasons > 0

    @property
    def n_open(self) -> int:
        """The number of cells that are not blocked."""
        return int(self.reasons.size - np.count_nonzero(self.reasons))

    @property
    def blind(self) -> tuple[int, ...]:
        """The queries whose keys are all blocked."""
        return tuple(np.flatnonzero(self.blocked.all(axis=1)).tolist())

    @property
    def padding_keys(self) -> tuple[bool, ...]:
        """For each key, whether it is blocked as padding."""
        return tuple((self.reasons == Reason.PADDING).any(axis=0).tolist())

    def telling_row(self, unused: Sequence[int] = ()) -> tuple[int, tuple[int, ...]] | None:
        """The query in which most keys have a share, and the keys that it sees, the largest score first.

        Where it can be chosen, the query sees at least two keys, and not all of them.  `unused` are queries that are
        not to be chosen.  None where no other query sees a key.
        """
        n_seen = (~self.blocked).sum(axis=1)
        read = [i for i in range(len(n_seen)) if i not in unused and n_seen[i] > 0]
        rows = [i for i in read if 2 <= n_seen[i] < self.blocked.shape[1]] or read
        if not rows:
            return None
        i = min(rows, key=lambda row: float(self.weights[row].max()))
        seen = np.flatnonzero(~self.blocked[i])
        return i, tuple(seen[np.argsort(-self.scores[i, seen], kind="stable")].tolist())


def masked_attention(record: AttentionRecord, head: int, mask: Mask | None = None) -> Masked:
    """The attention of a head with `mask` in place of its own mask; None keeps its own."""
    q, k, v = record.q[head], record.k[record.kv_head(head)], record.v[record.kv_head(head)]
    shape = (q.shape[0], k.shape[0])
    position = None if record.position_bias is None else record.position_bias[head]
    scores = float64(record.scoring.bent(q.double() @ k.double().T * record.scale))
    scores = scores if position is None else scores + float64(position)
    own = record.reason(head).cpu().numpy()
    reasons = own if mask is None else mask.reason[0, 0].expand(shape).cpu().numpy()
    bias = np.where(reasons > 0, -np.inf, 0.0)
    weights = softmax(scores + bias)
    same = bool(np.array_equal(reasons > 0, own > 0))
    if same:
        anchor, z = N_("z, as the model computed it"), record.z(head)
    else:
        anchor = N_("z of F.scaled_dot_product_attention with this mask, from the model's q, k and v")
        added = total_bias(position, torch.from_numpy(bias).to(q.device, q.dtype))
        assert added is not None  # there is a mask
        z = mix_scored(q[None, None], k[None, None], v[None, None], added[None, None].to(q.dtype), record.scoring)[0, 0]
    values = float64(v)
    proof = Proof.compare(anchor, weights @ values, z, terms=weights @ np.abs(values))
    return Masked(scores, bias, weights, reasons, same, proof)
