"""Generation one token at a time: a stream of steps, each with the distribution that its token was chosen from."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal

import torch
from torch import Tensor

from vizformer.errors import GenerationError
from vizformer.generation.reading import OwnReading, Reading
from vizformer.generation.sampling import GREEDY, NextToken, Sampling, best_token, draw, next_token
from vizformer.model import Edit, Transformer
from vizformer.options.shape import ModelShape

End = Literal["eos", "limit", "context"]


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
    """Generation with any reading (`vizformer.generation.reading`); `start` is the beginning of the sequence."""
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
            id = int(drawn.filtered.argmax()) if sampling.is_greedy else draw(drawn.filtered, generator)
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
