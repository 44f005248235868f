"""Exercise 6: the feed-forward sublayer."""

from collections.abc import Iterator

import torch
from torch import Tensor

from vizformer.exercises.task import Case, Place, Task, below, readings
from vizformer.messages import N_
from vizformer.word_tables import words_of


def feed_forward(x: Tensor, w: dict[str, Tensor]) -> Tensor:
    hidden = torch.relu(x @ w["W_in.weight"].T + w["W_in.bias"])  # [n, d_ff]
    return hidden @ w["W_out.weight"].T + w["W_out.bias"]


def _cases(text: str) -> Iterator[Case]:
    w = {
        "W_in.weight": torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        "W_in.bias": torch.tensor([0.0, 0.0, -1.0]),
        "W_out.weight": torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]]),
        "W_out.bias": torch.tensor([0.0, 10.0]),
    }
    x = torch.tensor([[2.0, 1.0], [-1.0, 1.0]])
    yield Case(N_("by hand: two numbers, three neurons"), (x, w))
    for reading in readings(text):
        place = Place("encoder.0.feedforward.narrow", "encoder.0.self.norm")
        weights = below(reading.weights("encoder.0"), "feedforward.")
        yield Case(reading.title, (reading.trace.residual("encoder.0.mid"), weights), reading, {"out": place})


TASK = Task(
    "feedforward",
    words_of(__file__),
    ("out = max(0, x W_inᵀ + b_in) W_outᵀ + b_out",),
    (
        "x [n, d_model] → out [n, d_model]",
        'w: "W_in.weight" [d_ff, d_model], "W_in.bias" [d_ff], "W_out.weight" [d_model, d_ff], "W_out.bias" [d_model]',
    ),
    (feed_forward,),
    ("out",),
    _cases,
)
