"""Exercise 5: add & norm."""

from collections.abc import Iterator

import torch
from torch import Tensor

from vizformer.exercises.task import Case, Place, Task, bundled_reading, random_reading
from vizformer.explain import layer_steps
from vizformer.messages import N_
from vizformer.word_tables import words_of


def add_and_norm(x: Tensor, out: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    added = x + out
    mean = added.mean(dim=-1, keepdim=True)
    variance = added.var(dim=-1, keepdim=True, correction=0)  # divided by d_model, not by d_model - 1
    return (added - mean) / torch.sqrt(variance + eps) * gamma + beta


def _cases(text: str) -> Iterator[Case]:
    x, out = torch.tensor([[1.0, 0.0, 2.0, 5.0]]), torch.tensor([[0.0, 1.0, 1.0, -2.0]])
    yield Case(
        N_("by hand: the sum is 1, 1, 3, 3; γ = 2, β = 10"),
        (x, out, torch.full((4,), 2.0), torch.full((4,), 10.0), 0.0),
    )
    for reading in (random_reading(norm_eps=0.05), bundled_reading(text)):
        for name, residual, step, eps in (
            ("self", "encoder.0.pre", "self.out", reading.checkpoint.model.config.norm_eps),
            ("feedforward", "encoder.0.mid", "feedforward.narrow", reading.checkpoint.model.config.norm_eps),
        ):
            steps = {one.key: one for one in layer_steps(reading.checkpoint, reading.trace, "encoder.0")}
            out = torch.from_numpy(steps[step].result).float()
            weights = reading.weights("encoder.0")
            gamma, beta = weights[f"{name}_norm.weight"], weights[f"{name}_norm.bias"]
            place = Place(f"encoder.0.{name}.norm", f"encoder.0.{step}")
            title = reading.at(f"encoder.0.{name}")
            yield Case(title, (reading.trace.residual(residual), out, gamma, beta, eps), reading, {"x": place})


TASK = Task(
    "add_norm",
    words_of(__file__),
    ("x ← (s − mean(s)) / √(var(s) + ε) · γ + β,  s = x + out",),
    ("x, out [n, d_model], gamma, beta [d_model], eps → x [n, d_model]",),
    (add_and_norm,),
    ("x",),
    _cases,
)
