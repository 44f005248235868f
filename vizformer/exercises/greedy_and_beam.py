"""Exercise 11: writing a text with a cache: beam search, of which greedy decoding is the narrowest."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from vizformer.exercises.task import (
    Case,
    Function,
    Kept,
    Reading,
    Results,
    Task,
    UnusableError,
    bundled_reading,
    named,
    random_reading,
)
from vizformer.messages import N_
from vizformer.model import Cache
from vizformer.word_tables import words_of

Step = Callable[[Tensor, Kept | None], tuple[Tensor, Kept]]


def beam_search(
    step: Callable[..., tuple[Tensor, list[Tensor]]], start: int, end: int, width: int, longest: int, alpha: float = 0.6
) -> tuple[list[int], float]:
    logits, cache = step(torch.tensor([[start]]), None)  # [1, vocabulary]
    live: list[tuple[list[int], float]] = [([], 0.0)]  # tokens, and the sum of their log-probabilities
    finished: list[tuple[list[int], float]] = []
    for _ in range(longest):
        before = torch.tensor([total for _, total in live])[:, None]
        totals = before + torch.log_softmax(logits, dim=-1)  # [live, vocabulary]
        best = totals.flatten().topk(width)
        going, rows = [], []
        for total, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            row, token = divmod(place, totals.shape[1])
            ids = [*live[row][0], token]
            if token == end:
                finished.append((ids, total))
            else:
                going.append((ids, total))
                rows.append(row)
        live = going
        if not live or len(finished) >= width:
            break
        cache = [kept[rows] for kept in cache]
        logits, cache = step(torch.tensor([[ids[-1]] for ids, _ in live]), cache)
    scored = [(ids, total / ((5 + len(ids)) / 6) ** alpha) for ids, total in finished or live]
    return max(scored, key=lambda one: one[1])


def _run(functions: tuple[Function, ...], arguments: tuple[Any, ...]) -> Results:
    step, *rest = arguments
    widest = 0

    def counted(new: Tensor, cache: Kept | None) -> tuple[Tensor, Kept]:
        nonlocal widest
        if not isinstance(new, Tensor) or new.ndim != 2:
            raise UnusableError(N_("step takes the new tokens as a tensor [hypotheses, 1]."))
        if cache is not None and new.shape[1] != 1:
            raise UnusableError(
                N_("With a cache step takes only the newest token of each hypothesis: [hypotheses, 1].")
            )
        if cache is not None and (held := len(cache[0])) != len(new):
            raise UnusableError(
                N_(
                    "The cache holds {held} hypotheses, and {new} go on: keep their rows, [kept[rows] for kept in cache].",
                    held=held,
                    new=len(new),
                )
            )
        widest = max(widest, new.shape[1])
        found: tuple[Tensor, Kept] = step(new, cache)
        return found

    found = named(functions[0](counted, *rest), "ids", "score")
    return {**found, "new.shape[1]": widest}  # 1 where the cache is used, however often step is called


def _by_hand(new: Tensor, cache: Kept | None) -> tuple[Tensor, Kept]:
    """0 start, 1 end, 2 a, 3 b: a is likelier than b, but what follows a is uncertain."""
    table = torch.tensor(
        [[0.0001, 0.0001, 0.6, 0.3998], [0.25] * 4, [0.3, 0.4, 0.1, 0.2], [0.02, 0.94, 0.02, 0.02]]
    )  # fmt: skip
    return table[new[:, -1]].log(), [new if cache is None else torch.cat([cache[0], new], dim=1)]


def _all_before(new: Tensor, cache: Kept | None) -> tuple[Tensor, Kept]:
    """Logits that depend on all tokens so far and on their order: random numbers, the sum kept in the cache."""
    generator = torch.Generator().manual_seed(3)
    table, out = (2 * torch.randn(9, 9, generator=generator) for _ in range(2))
    state = torch.zeros(len(new), 9) if cache is None else cache[0]
    for column in new.T:
        state = torch.tanh(0.7 * state + table[column])
    return state @ out, [state]


def model_step(reading: Reading) -> Step:
    """The decoder of a model over the text of a trace: keys and values of all its attentions are the cache."""
    model, memory = reading.checkpoint.model, reading.trace.residual("encoder.final")[None]

    @torch.no_grad()
    def step(new: Tensor, cache: Kept | None) -> tuple[Tensor, Kept]:
        kept = Cache()
        if cache is None:  # of a model that is told a language, one more mark before the start mark
            marks = torch.tensor([reading.checkpoint.model.config.start_ids[:-1]] * len(new), dtype=torch.long)
            new = torch.cat([marks, new], dim=1)
        sites = [name for name in reading.trace.sites if name.startswith("decoder")]
        if cache is not None:
            kept.keys, kept.values = (
                dict(zip(sites, cache[::2], strict=True)),
                dict(zip(sites, cache[1::2], strict=True)),
            )
            kept.length = kept.keys[sites[0]].shape[2]
        x = model.decode(new, memory.expand(len(new), -1, -1), cache=kept)
        return model.logits(x[:, -1]), [x for site in sites for x in (kept.keys[site], kept.values[site])]

    return step


def _cases(text: str) -> Iterator[Case]:
    yield Case(N_("by hand: width 1, which is greedy"), (_by_hand, 0, 1, 1, 5, 0.0))
    yield Case(N_("by hand: width 2 finds a more probable text"), (_by_hand, 0, 1, 2, 5, 0.0))
    random = random_reading().title
    for width, longest, end in ((1, 6, 1), (3, 8, 1), (4, 5, 8)):
        title = N_("{where}: width {width}", where=random, width=width)
        yield Case(title, (_all_before, 0, end, width, longest))
    reading = bundled_reading(text)
    config = reading.checkpoint.model.config
    for width in (1, 4):
        title = N_("{where}: width {width}", where=reading.title, width=width)
        marks = config.start_ids[-1], config.eos_id
        yield Case(title, (model_step(reading), *marks, width, 2 * len(reading.trace.tokens["encoder"]) + 10))


TASK = Task(
    "decoding",
    words_of(__file__),
    ("total = Σ ln p(token)", "score = total / ((5 + length) / 6)^alpha"),
    (
        "step: new [h, 1], cache → logits [h, vocabulary], cache",
        "start, end, width, longest, alpha → ids (list), score",
    ),
    (beam_search,),
    ("ids", "score"),
    _cases,
    run=_run,
)
