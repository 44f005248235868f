"""Exercise 2: the positional encoding of the paper."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from vizformer.exercises.task import Case, Place, Task, readings
from vizformer.messages import N_
from vizformer.word_tables import words_of


def positional_encoding(n: int, d_model: int) -> Tensor:
    pos = torch.arange(n)[:, None]  # [n, 1]
    pair = torch.arange(0, d_model, 2)  # 2i: [d_model / 2]
    angle = pos / 10_000 ** (pair / d_model)
    P = torch.zeros(n, d_model)
    P[:, 0::2] = torch.sin(angle)
    P[:, 1::2] = torch.cos(angle)
    return P


def _cases(text: str) -> Iterator[Case]:
    yield Case(N_("by hand: the first position"), (1, 4))
    yield Case(N_("by hand: two positions, four dimensions"), (2, 4))
    for reading in readings(text):
        model, tokens = reading.checkpoint.model, reading.trace.tokens["encoder"]
        rows = model.embedding.weight[[token.id for token in tokens]].detach() * math.sqrt(model.config.d_model)
        place = Place("encoder.0.input", "", brought=lambda P, rows=rows: rows + P)  # type: ignore[misc]
        yield Case(reading.title, tuple(rows.shape), reading, {"P": place})


TASK = Task(
    "positions",
    words_of(__file__),
    ("P[pos, 2i] = sin(pos / 10000^(2i / d_model))", "P[pos, 2i + 1] = cos(pos / 10000^(2i / d_model))"),
    ("n, d_model → P [n, d_model]",),
    (positional_encoding,),
    ("P",),
    _cases,
)
