"""Exercise 10: what a translator is trained on: the target shifted by one, and the loss."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from vizformer.exercises.task import Case, Function, Reading, Task, readings
from vizformer.messages import N_


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
    N_("Shift and loss"),
    N_(
        "A row of target is a whole translation: start mark, tokens, end mark, and padding where it is shorter than others. "
        "The decoder reads all but the last token of a row, and at each place the next token is wanted. Return the mean of "
        "−ln p(wanted) over all wanted tokens that are no padding. logits_of(read) calls the model."
    ),
    (
        "read = target[:, : −1],  wanted = target[:, 1 :]",
        "loss = mean over wanted ≠ pad of −ln softmax(logits)[wanted]",
    ),
    ("logits_of: [b, m − 1] → [b, m − 1, vocabulary], target [b, m], pad → loss []",),
    (next_token_loss,),
    ("loss",),
    _cases,
    slips={
        "target[:, 1:] ⟶ target[:, :-1]": N_("Nothing is shifted: each token is to predict itself, which it can read."),
        "target[:, :-1], target[:, 1:] ⟶ target[:, 1:], target[:, :-1]": N_(
            "It is shifted the other way: the decoder reads the next token and predicts the one before."
        ),
        "real = wanted != pad ⟶ real = wanted == wanted": N_("Padding is counted as if it were to be predicted."),
        'wanted[real]) ⟶ wanted[real], reduction="sum")': N_("The loss is a sum; the mean over the tokens is wanted."),
        'wanted[real]) ⟶ wanted[real], reduction="sum") / wanted.numel()': N_(
            "The sum is divided by all places; only those that are no padding count."
        ),
        "F.cross_entropy(logits[real], wanted[real]) ⟶ "
        "sum(F.cross_entropy(l[r], w[r]) for l, w, r in zip(logits, wanted, real)) / len(target)": N_(
            "The mean of each row is taken first: short rows then weigh as much as long ones."
        ),
        "cross_entropy(logits[real] ⟶ cross_entropy(torch.softmax(logits[real], dim=-1)": N_(
            "A softmax is taken of the logits before cross_entropy, which takes one itself."
        ),
        "return F ⟶ return -F": N_("The sign is missing: the loss is −ln p."),
        "wanted[real]) ⟶ wanted[real]) / torch.tensor(2.0).log()": N_(
            "The logarithm has base 2; the loss is in nats, with ln."
        ),
        "wanted[real]) ⟶ wanted[real], label_smoothing=0.1)": N_("The labels are smoothed: without label_smoothing."),
        "real = wanted != pad ⟶ real = (wanted != pad) & (torch.arange(wanted.shape[1]) > 0)": N_(
            "The first prediction, that after the start mark, is left out."
        ),
    },
)
