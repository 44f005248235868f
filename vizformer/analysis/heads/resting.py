"""Whether a head rests: whether most of its attention lies on one token, whichever row asks.

share_j = mean over the queries that see several keys of a[i, j]

A head rests on the key of the largest share where that is more than `RESTS`, and more than twice what the key would get if
every query gave all the same.  Such a head says little about the sentence (an attention sink: Xiao et al. 2023, "Efficient
Streaming Language Models with Attention Sinks").
"""

from dataclasses import dataclass

from jaxtyping import Float, UInt8
from numpy import ndarray

from vizformer.model.trace import Trace

RESTS = 0.5
ROWS = 3  # queries that see several keys: of fewer nothing is said


@dataclass(frozen=True)
class Rest:
    """The key on which a head rests, and its share of the attention (0 to 1)."""

    key: int
    share: float


def find_rest(weights: Float[ndarray, "n_q n_k"], reasons: UInt8[ndarray, "n_q n_k"]) -> Rest | None:
    """The resting place of a head with these weights; None where it does not rest.

    Args:
        reasons: Why a cell is masked, 0 where it is not.
    """
    return find_rests(weights[None], reasons)[0]


def find_rests(weights: Float[ndarray, "heads n_q n_k"], reasons: UInt8[ndarray, "n_q n_k"]) -> list[Rest | None]:
    """`find_rest` of several heads with one mask."""
    seen = reasons == 0
    choosing = seen.sum(1) > 1
    if choosing.sum() < ROWS:
        return [None] * len(weights)
    even = (seen[choosing] / seen[choosing].sum(1, keepdims=True)).mean(0)
    found = []
    for shares in weights[:, choosing].mean(1):
        key = int(shares.argmax())
        found.append(Rest(key, float(shares[key])) if shares[key] > max(RESTS, 2 * even[key]) else None)
    return found


def resting_head(trace: Trace, site: str, head: int) -> Rest | None:
    """`find_rest` of one head of a trace."""
    record = trace[site]
    return find_rest(record.pattern(head).float().cpu().numpy(), record.reason(head).cpu().numpy())
