"""Exercise 1: softmax with a mask."""

from collections.abc import Iterator

import torch
from torch import Tensor

from vizformer.exercises.task import Case, Place, Task, readings
from vizformer.messages import N_
from vizformer.word_tables import words_of


def masked_softmax(scores: Tensor, blocked: Tensor | None = None) -> Tensor:
    if blocked is None:
        return torch.softmax(scores, dim=-1)
    weights = torch.softmax(scores.masked_fill(blocked, -torch.inf), dim=-1)
    return weights.masked_fill(blocked.all(dim=-1, keepdim=True), 0.0)


def _cases(text: str) -> Iterator[Case]:
    scores = torch.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]]).log()
    blocked = torch.tensor([[False, False, True], [False, True, False]])
    yield Case(N_("by hand: nothing is blocked"), (scores,))
    yield Case(N_("by hand: some keys are blocked"), (scores, blocked))
    for reading in readings(text):
        name = "decoder.0.self"
        record = reading.trace[name]
        all_scores = torch.stack([record.scores(head) for head in range(record.n_heads)])
        place = Place(f"{name}.weights", f"{name}.scores")
        yield Case(reading.title, (all_scores, record.reason(0) > 0), reading, {"weights": place})
    large = torch.tensor([[1000.0, 1000.0, 0.0]])
    yield Case(N_("by hand: large scores"), (large,))
    nothing = torch.tensor([[True, True, True], [False, True, True]])
    yield Case(N_("by hand: a row of which every key is blocked"), (scores, nothing))


TASK = Task(
    "softmax",
    words_of(__file__),
    ("weights_ij = exp(s_ij) / Σ_j' exp(s_ij')",),
    ("scores [..., n_q, n_k], blocked [n_q, n_k] (bool) → weights [..., n_q, n_k]",),
    (masked_softmax,),
    ("weights",),
    _cases,
)
