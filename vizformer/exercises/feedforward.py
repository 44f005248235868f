"""Exercise 6: the feed-forward sublayer."""

from collections.abc import Iterator

import torch
from torch import Tensor

from vizformer.exercises.task import Case, Place, Task, below, readings
from vizformer.messages import N_


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
    N_("Feed-forward"),
    N_(
        "Widen each row with W_in, set what is negative to 0, and make it narrow again with W_out. w holds the weights by "
        "the names of a checkpoint; nn.Linear keeps a matrix as [out, in], so that x is multiplied by its transpose. Adding "
        "x is not yet done here: that is add & norm."
    ),
    ("out = max(0, x W_inᵀ + b_in) W_outᵀ + b_out",),
    (
        "x [n, d_model] → out [n, d_model]",
        'w: "W_in.weight" [d_ff, d_model], "W_in.bias" [d_ff], "W_out.weight" [d_model, d_ff], "W_out.bias" [d_model]',
    ),
    (feed_forward,),
    ("out",),
    _cases,
    slips={
        "return hidden ⟶ return x + hidden": N_("x is added already: that is the next step, add & norm."),
        'hidden @ w["W_out.weight"].T + w["W_out.bias"] ⟶ (hidden @ w["W_out.weight"].T + w["W_out.bias"]).relu()': N_(
            "The activation function is applied twice: after W_out there is none."
        ),
        'torch.relu(x @ w["W_in.weight"].T + w["W_in.bias"]) ⟶ torch.relu(x @ w["W_in.weight"].T) + w["W_in.bias"]': N_(
            "The bias b_in is added after the activation; it belongs before it."
        ),
    },
)
