"""Exercise 3: one head."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from vizformer.exercises.softmax_with_mask import masked_softmax
from vizformer.exercises.task import Case, Place, Task, readings
from vizformer.messages import N_
from vizformer.word_tables import words_of


def head(q: Tensor, k: Tensor, v: Tensor, blocked: Tensor | None = None) -> tuple[Tensor, Tensor]:
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [..., n_q, n_k]
    weights = masked_softmax(scores, blocked)
    return weights, weights @ v


def _cases(text: str) -> Iterator[Case]:
    q = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0]])
    k, v = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]), torch.tensor([[4.0, 0.0], [0.0, 8.0]])
    yield Case(N_("by hand: weights of 3/4 and 1/4"), (q, k, v))
    random, bundled = readings(text)
    for reading, site in (
        (random, "encoder.0.self"), (random, "decoder.0.self"), (random, "decoder.0.cross"),
        (bundled, "encoder.0.self"), (bundled, "decoder.0.self"),
    ):  # fmt: skip
        record = reading.trace[site]
        blocked = (record.reason(0) > 0,) if site == "decoder.0.self" else ()
        places = {"weights": Place(f"{site}.weights", f"{site}.heads.q"), "z": Place(f"{site}.z", f"{site}.weights")}
        title = reading.at(site)
        yield Case(title, (record.q, record.k, record.v, *blocked), reading, places)


TASK = Task(
    "head",
    words_of(__file__),
    ("weights = softmax(q kᵀ / √d_k)", "z = weights v"),
    ("q [..., n_q, d_k], k [..., n_k, d_k], v [..., n_k, d_v] → weights [..., n_q, n_k], z [..., n_q, d_v]",),
    (head,),
    ("weights", "z"),
    _cases,
    uses=("softmax",),
)
