"""Exercise 4: cutting d_model into heads, and joining them."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from vizformer.exercises.task import Case, Function, Place, Results, Task, named, readings
from vizformer.messages import N_
from vizformer.word_tables import words_of


def split(x: Tensor, n_heads: int) -> Tensor:
    n, d_model = x.shape
    return x.reshape(n, n_heads, d_model // n_heads).transpose(0, 1)


def join(z: Tensor) -> Tensor:
    n_heads, n, d_k = z.shape
    return z.transpose(0, 1).reshape(n, n_heads * d_k)


def _run(functions: tuple[Function, ...], arguments: tuple[Any, ...]) -> Results:
    x, n_heads, z = arguments
    return named(functions[0](x, n_heads), "split") | named(functions[1](z), "join")


def _cases(text: str) -> Iterator[Case]:
    x = torch.arange(12.0).reshape(3, 4)
    z = torch.tensor([[[0.0, 1.0], [4.0, 5.0], [8.0, 9.0]], [[2.0, 3.0], [6.0, 7.0], [10.0, 11.0]]])
    yield Case(N_("by hand: three tokens, two heads"), (x, 2, z))
    site = "encoder.0.self"
    for reading in readings(text):
        record = reading.trace[site]
        z = torch.stack([record.z(head) for head in range(record.n_heads)])
        places = {"split": Place(f"{site}.heads.q", "encoder.0.input"), "join": Place(f"{site}.concat", f"{site}.z")}
        yield Case(reading.title, (join(record.q), record.n_heads, z), reading, places)


TASK = Task(
    "split_join",
    words_of(__file__),
    ("head_h = x[:, h d_k : (h + 1) d_k]", "joined_i = (z_0i, z_1i, ...)"),
    ("split: x [n, d_model], n_heads → [n_heads, n, d_k]", "join: z [n_heads, n, d_k] → [n, n_heads · d_k]"),
    (split, join),
    ("split", "join"),
    _cases,
    run=_run,
)
