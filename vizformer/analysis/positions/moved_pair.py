"""Two tokens that are moved on together: which ways to tell positions keep their score."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float

from vizformer.model import AttentionRecord, Trace, Transformer


@torch.inference_mode()
def moved_scores(
    model: Transformer, query_id: int, key_id: int, distance: int, furthest: int
) -> Float[np.ndarray, "n_heads moves"]:
    """The score in the first layer of a token at place distance + s for another one at place s, for s = 0..furthest.

    score(s) = f_q(x_query, distance + s) . f_k(x_key, s) / sqrt(d_head) + bias.  In the first layer a query and a key
    depend on their own token and place alone, so that all places are read from two texts: one token, over and over.
    """
    n = furthest + distance + 1
    asks, answers = (_first_record(model, [id] * n) for id in (query_id, key_id))
    scores = []
    for head in range(asks.n_heads):
        q, k = asks.q[head].double(), answers.k[answers.kv_head(head)].double()
        score = (q[distance:] * k[: furthest + 1]).sum(-1) * asks.scale
        if asks.position_bias is not None:
            score = score + asks.position_bias[head].diagonal(-distance)
        scores.append(score)
    return torch.stack(scores).numpy()


def _first_record(model: Transformer, ids: Sequence[int]) -> AttentionRecord:
    trace = Trace()
    model.decode(torch.tensor([list(ids)]), trace=trace)
    return trace["decoder.0.self"]
