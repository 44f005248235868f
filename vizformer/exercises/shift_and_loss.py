"""Exercise 10: what a translator is trained on: the target shifted by one, and the loss."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from vizformer.exercises.task import Case, Function, Reading, Task, readings
from vizformer.messages import N_
from vizformer.word_tables import words_of


def next_token_loss(logits_of: Callable[..., Tensor], target: Tensor, pad: int) -> Tensor:
    read, wanted = target[:, :-1], target[:, 1:]
    logits = logits_of(read)  # [b, m - 1, vocabulary]
    real = wanted != pad
    return F.cross_entropy(logits[real], wanted[real])


def _cases(text: str) -> Iterator[Case]:
    # After start (1) the table says 3 with 1/2, after 3 the end (2) with 1/4: the loss is (ln 2 + ln 4) / 2.
    table = torch.tensor(
        [[1.0, 1, 1, 1, 0], [2.0, 1, 1, 8, 4], [1.0, 2, 3, 4, 5], [1.0, 1, 2, 3, 1], [1.0, 1, 1, 1, 1]]
    ).log()
    hand = torch.tensor([[1, 3, 2]])
    padded = torch.tensor([[1, 3, 3, 3, 2], [1, 4, 2, 0, 0]])
    yield Case(N_("by hand: (ln 2 + ln 4) / 2"), (lambda read: table[read], hand, 0))
    yield Case(N_("by hand: two rows, one of them padded"), (lambda read: table[read], padded, 0))
    for reading in readings(text):
        yield Case(reading.title, _read_by(reading))


def _read_by(reading: Reading) -> tuple[Function, Tensor, int]:
    """Logits of a model for the texts of its trace; the target, and its first half with padding."""
    model, tokens = reading.checkpoint.model, reading.trace.tokens
    pad, end = model.config.pad_id, model.config.eos_id
    assert pad is not None
    assert end is not None
    memory = reading.trace.residual("encoder.final")[None]
    ids = [token.id for token in tokens["decoder"]]
    half = ids[: (len(ids) + 1) // 2]
    rows = [[*ids, end], [*half, end, *[pad] * (len(ids) - len(half))]]

    def logits_of(read: Tensor) -> Tensor:
        with torch.no_grad():
            return model.logits(model.decode(read, memory.expand(len(read), -1, -1)))

    return logits_of, torch.tensor(rows), pad


TASK = Task(
    "loss",
    words_of(__file__),
    (
        "read = target[:, : −1],  wanted = target[:, 1 :]",
        "loss = mean over wanted ≠ pad of −ln softmax(logits)[wanted]",
    ),
    ("logits_of: [b, m − 1] → [b, m − 1, vocabulary], target [b, m], pad → loss []",),
    (next_token_loss,),
    ("loss",),
    _cases,
)
