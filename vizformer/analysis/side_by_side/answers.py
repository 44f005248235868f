"""What two runs predict at one position."""

from dataclasses import dataclass

import torch

from vizformer.analysis.attribution.predictions import writable
from vizformer.analysis.side_by_side.heads import divergence
from vizformer.analysis.side_by_side.runs import TwoRuns
from vizformer.model.input_check import row_at
from vizformer.text import Token


@dataclass(frozen=True)
class Answer:
    """A token, and the probability that each run gives it."""

    token: Token
    first: float
    second: float


@dataclass(frozen=True)
class Answers:
    """What both runs say: the most probable tokens of either, and the Jensen-Shannon divergence of the two, in bits."""

    tokens: tuple[Answer, ...]
    divergence: float


@torch.inference_mode()
def two_answers(runs: TwoRuns, row: int, other_row: int | None = None, count: int = 5) -> Answers:
    """The `count` most probable tokens of each run, with the probability that the other one gives them.

    p = softmax(logits[row]); a token that only one vocabulary has is impossible for the other model.
    """
    rows = row, row if other_row is None else other_row
    p, q = (
        torch.softmax(trace.logits[row_at(at, len(trace.logits))].double().cpu(), dim=-1)
        for trace, at in zip((runs.trace, runs.other), rows, strict=True)
    )
    size = max(len(p), len(q))
    p, q = (torch.cat([one, torch.zeros(size - len(one), dtype=one.dtype)]) for one in (p, q))
    both = ((runs.first, p), (runs.second, q))
    best = {int(id) for model, one in both for id in writable(model, one).topk(min(count, size)).indices}
    ids = sorted(best, key=lambda id: (-max(float(p[id]), float(q[id])), id))
    return Answers(
        tuple(Answer(token, float(p[token.id]), float(q[token.id])) for token in _tokens(runs, ids)),
        float(divergence(p, q)),
    )


def differing_rows(runs: TwoRuns) -> tuple[int, ...]:
    """The leading rows of the output in which the two runs find different tokens most probable."""
    both = ((runs.first, runs.trace), (runs.second, runs.other))
    first, second = (writable(model, trace.logits).argmax(-1).cpu() for model, trace in both)
    n = min(len(first), len(second))
    return tuple((first[:n] != second[:n]).nonzero()[:, 0].tolist())


def _tokens(runs: TwoRuns, ids: list[int]) -> list[Token]:
    """By the first model's vocabulary, and by the second one's what the first one lacks."""
    known = runs.first.model.config.vocab_size
    return [(runs.first if id < known else runs.second).tokenizer.tokens([id])[0] for id in ids]
