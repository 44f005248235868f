"""A row of a head's scores through the softmax, without a sink and with one (`vizformer.model.mixing.Scoring`).

    a_j = e^(s_j - c) / (e^s + sum_j' e^(s_j' - c)),   c taken off every score, s the sink's; without it e^s is left out

Source: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section 3.3; OpenAI 2025,
"gpt-oss-120b & gpt-oss-20b Model Card", section 2.2.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain.arrays import float64, softmax
from vizformer.model.records import AttentionRecord


@dataclass(frozen=True)
class SinkRow:
    """The scores less c, the weights of either softmax, and how long the sum of the values is with them."""

    scores: Float[ndarray, " n_k"]
    plain: Float[ndarray, " n_k"]
    weights: Float[ndarray, " n_k"]
    plain_length: float
    length: float

    @property
    def share(self) -> float:
        """The sink's part of the softmax."""
        return 1.0 - float(self.weights.sum())


def sink_row(record: AttentionRecord, head: int, query: int, lower: float, sink: float) -> SinkRow:
    """The row of a query, every score `lower` less, beside a sink with the score `sink`."""
    scores, mask = float64(record.scores(head)[query]), record.mask_row(head, query)
    scores = scores - lower if mask is None else scores - lower + float64(mask)
    plain, weights = softmax(scores), softmax(scores, sink)
    v = float64(record.v[record.kv_head(head)])
    return SinkRow(scores, plain, weights, *(float(np.linalg.norm(w @ v)) for w in (plain, weights)))
