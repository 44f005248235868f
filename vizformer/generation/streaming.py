"""Generation one token at a time: a stream of steps, each with the distribution that its token was chosen from."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from numpy import ndarray
from torch import Tensor

from vizformer.config import ModelShape
from vizformer.errors import GenerationError
from vizformer.generation.sampling import GREEDY, NextToken, Sampling, best_token, draw_token, next_token
from vizformer.model import Cache, Edit, Transformer

End = Literal["eos", "limit", "context"]

AT_A_GLANCE = 10


# The interface that generation needs of a model: logits of the next token after given tokens.
class Reading(Protocol):
    """A model that reads growing sequences, one token per call; it is made for one generation."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of the keys and values in the cache; 0 without a cache."""

    def next_logits(self, sequences: Sequence[Sequence[int]], parents: Sequence[int]) -> Float[Tensor, "b vocab_size"]:
        """The logits of the next token, after each of these sequences of equal length.

        Args:
            parents: for each sequence, the index of the sequence of the previous call that it extends by one token.
        """


class OwnReading:
    """Our own Transformer, with its KV cache; with an edit every step is a full forward instead."""

    def __init__(self, model: Transformer, prompt: Sequence[int], edit: Edit | None = None) -> None:
        self._model, self._edit, self._device = model, edit, model.embedding.weight.device
        self._cache = Cache() if edit is None else None
        self._memory: Tensor | None = None
        self._rows = 1
        if model.encoder is not None:
            self._memory = model.encode(self._tensor([prompt]), edit=edit)  # [1, n, d_model]

    def _tensor(self, ids: Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor([list(row) for row in ids], dtype=torch.long, device=self._device)

    @property
    def cache_bytes(self) -> int:
        return 0 if self._cache is None else self._cache.nbytes

    def next_logits(self, sequences: Sequence[Sequence[int]], parents: Sequence[int]) -> Float[Tensor, "b vocab_size"]:
        first, memory = 0, self._memory
        if self._cache is not None and self._cache.length:
            first = self._cache.length
            if list(parents) != list(range(self._rows)):
                self._cache.select(torch.tensor(list(parents), device=self._device))
        self._rows = len(sequences)
        if memory is not None:
            memory = memory.expand(len(sequences), -1, -1)
        new = self._tensor([row[first:] for row in sequences])
        x = self._model.decode(new, memory, edit=self._edit, cache=self._cache)  # [b, n_new, d_model]
        return self._model.logits(x[:, -1])


@dataclass(frozen=True)
class GenerationStep:
    """One generated token, and the distribution that it was chosen from.

    Attributes:
        id: the token.
        choice: computes that distribution; called once, on first use.
        length: positions that the decoder had read when it chose.
        cache_bytes: keys and values kept of them (and of the encoder's memory); 0 without a cache.
        by_hand: whether the token was given (`instead`) and not the model's choice.
        end: why the text ends with this token: end mark, limit reached, no position left; None while it goes on.
    """

    id: int
    choice: Callable[[], NextToken] = field(repr=False, compare=False)
    length: int
    cache_bytes: int
    by_hand: bool = False
    end: End | None = None

    @property
    def probabilities(self) -> Tensor:
        """The model's distribution, softmax(logits) [vocab_size]."""
        return self._chosen_from.probabilities

    @property
    def filtered(self) -> Tensor:
        """The distribution that the token was drawn from, after penalty, temperature and cuts [vocab_size]."""
        return self._chosen_from.filtered

    @property
    def cut(self) -> Tensor:
        """Which cut removed each token, `vizformer.generation.Cut` as uint8 [vocab_size]."""
        return self._chosen_from.cut

    @cached_property
    def _chosen_from(self) -> NextToken:
        with torch.inference_mode():
            return self.choice()


@torch.inference_mode()
def stream(
    model: Transformer,
    prompt: Sequence[int],
    prefix: Sequence[int] = (),
    *,
    max_new: int,
    sampling: Sampling = GREEDY,
    instead: Mapping[int, int] | None = None,
    edit: Edit | None = None,
) -> Iterator[GenerationStep]:
    """Generates one sequence; each step decodes only the newest token, the rest is in the KV cache.

    With an `edit` every step is a full forward instead: its cells are counted from the start of the sequence.

    Args:
        prompt: the input of the encoder (encoder-decoder) or the beginning of the text (decoder-only).
        prefix: the beginning of the target (encoder-decoder; its start mark comes first).
        max_new: at most this many new tokens; fewer when the end mark comes or the positions run out.
        sampling: how a token is chosen.
        instead: step -> id of the token to take there, whatever the model would choose.  The random numbers go on as
            if nothing had happened: naming the tokens that were drawn anyway changes nothing.
        edit: numbers set by hand in every forward.

    Raises:
        GenerationError: an id of `instead` outside the vocabulary.
        TraceError: an empty or too long prompt, an id outside the vocabulary.
    """
    start = prompt if model.encoder is None else prefix
    reading = OwnReading(model, prompt, edit)
    shape = model.config.shape
    yield from stream_of(reading, shape, start, max_new=max_new, sampling=sampling, instead=instead)


def stream_of(
    reading: Reading,
    shape: ModelShape,
    start: Sequence[int],
    *,
    max_new: int,
    sampling: Sampling = GREEDY,
    instead: Mapping[int, int] | None = None,
) -> Iterator[GenerationStep]:
    """Generation with any reading (`Reading`); `start` is the beginning of the sequence."""
    instead, ids = _checked(instead or {}, shape.vocab_size), list(start)
    generator = torch.Generator().manual_seed(sampling.seed)
    room = shape.max_positions - len(ids)
    for number in range(min(max_new, room)):
        logits, never = reading.next_logits([ids], [0])[0], shape.never_written  # [vocab_size]
        choice = partial(next_token, logits, tuple(ids), sampling, never=never)
        if sampling.is_greedy and sampling.repetition_penalty == 1:
            id = best_token(logits, never=never)
        else:
            drawn = choice()
            choice = partial(_same, drawn)
            id = int(drawn.filtered.argmax()) if sampling.is_greedy else draw_token(drawn.filtered, generator)
        id = instead.get(number, id)
        length = len(ids)
        ids.append(id)
        end: End | None = None
        if id == shape.eos_id:
            end = "eos"
        elif number + 1 == min(max_new, room):
            end = "context" if room <= max_new else "limit"
        yield GenerationStep(id, choice, length, reading.cache_bytes, by_hand=number in instead, end=end)
        if end is not None:
            return


def _same(drawn: NextToken) -> NextToken:
    return drawn


def _checked(instead: Mapping[int, int], vocab_size: int) -> Mapping[int, int]:
    for id in instead.values():
        if not 0 <= id < vocab_size:
            raise GenerationError(
                "Token id {id} is outside the vocabulary: ids go from 0 to {last}.", id=id, last=vocab_size - 1
            )
    return instead


# The candidates of every token in a text, cut down to as many as a reader can see at a glance.
@dataclass(frozen=True)
class Candidates:
    """The leading candidates of every step of a text, the most probable first; the chosen token is always among them.

    Attributes:
        ids: the token of each step.
        candidates: ids [steps, count].
        before, after: their probabilities before and after penalty, temperature and cuts.
        cut: which cut removed each of them, `vizformer.generation.Cut`.
        kept: how many tokens of the vocabulary were left to draw from, in each step.
        by_hand: whether the token was given instead of chosen, in each step.
        end: why the text ends; None where it was not written to its end.
    """

    ids: list[int]
    candidates: Int[ndarray, "steps count"]
    before: Float[ndarray, "steps count"]
    after: Float[ndarray, "steps count"]
    cut: UInt8[ndarray, "steps count"]
    kept: list[int]
    by_hand: list[bool]
    end: End | None

    def first(self, count: int) -> "Candidates":
        """The candidates of the first `count` steps."""
        if len(self.ids) <= count:
            return self
        return Candidates(
            self.ids[:count],
            self.candidates[:count],
            self.before[:count],
            self.after[:count],
            self.cut[:count],
            self.kept[:count],
            self.by_hand[:count],
            "limit",
        )

    @property
    def probabilities(self) -> Float[ndarray, " steps"]:
        """The probability of each chosen token, before penalty, temperature and cuts."""
        found: ndarray = self.before[self.candidates == np.array(self.ids)[:, None]]
        return found

    @property
    def seen(self) -> list[int]:
        """The ids of all candidates, ascending."""
        return sorted({int(id) for id in self.candidates.ravel()})


def leading_candidates(steps: Iterable[GenerationStep], count: int = AT_A_GLANCE) -> Candidates:
    """Runs all steps and keeps, for each, the `count` most probable tokens and the chosen one.

    Each step is freed before the next one is computed: the distributions of a hundred tokens of GPT-2 would be 40 MB.
    A chosen token that is not among the most probable takes the place of the last one of them.

    Raises:
        ValueError: there is no step.
    """
    ids: list[int] = []
    rows: list[tuple[ndarray, ...]] = []
    kept: list[int] = []
    by_hand: list[bool] = []
    end: End | None = None
    for step in steps:
        before, after, cut = (part.cpu().numpy() for part in (step.probabilities, step.filtered, step.cut))
        best = _largest(before, count)
        if step.id not in best:
            best[-1] = step.id
        ids.append(step.id)
        rows.append((best, before[best], after[best], cut[best]))
        kept.append(int((cut == 0).sum()))
        by_hand.append(step.by_hand)
        end = step.end
    if not rows:
        raise ValueError("a text without steps has no candidates")
    candidates, probabilities, filtered, cuts = (np.stack(column) for column in zip(*rows, strict=True))
    return Candidates(ids, candidates, probabilities, filtered, cuts, kept, by_hand, end)


def _largest(values: Float[ndarray, " n"], count: int) -> Int[ndarray, " count"]:
    """The indices of the largest values, the largest first, equal ones in ascending order; without sorting all values."""
    if count >= len(values):
        return np.argsort(-values, kind="stable")
    least = np.partition(values, len(values) - count)[len(values) - count]
    reach = np.flatnonzero(values >= least)
    return reach[np.argsort(-values[reach], kind="stable")[:count]]
