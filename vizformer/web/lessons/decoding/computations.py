"""Cached computations of the lesson Writing a text."""

from torch import Tensor

from vizformer.analysis import AnswerCell
from vizformer.analysis.decoding import teacher_forcing
from vizformer.analysis.decoding import ways as decoding
from vizformer.analysis.decoding.teacher_forcing import ForcedRow, OneError
from vizformer.analysis.decoding.ways import Written, first_distribution, warmed, written_from
from vizformer.generation import Candidates, Sampling, leading_candidates
from vizformer.text import Token
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject, written

MOST_NEW = 12  # tokens that the model writes here: many texts at once, and a class of readers


@cached
def forced_rows(subject: Subject) -> tuple[ForcedRow, ...]:
    return teacher_forcing.forced_rows(subject.checkpoint, subject.trace)


@cached
def answer_cell(subject: Subject, most: int) -> AnswerCell | None:
    from vizformer.analysis import answer_cell

    return answer_cell(subject.trace, most)


@cached
def right_rows(subject: Subject) -> tuple[ForcedRow, ...]:
    return teacher_forcing.right_rows(subject.checkpoint, subject.text, subject.trace)


@cached
def one_error(subject: Subject, step: int, rank: int) -> OneError:
    return teacher_forcing.one_error(subject.checkpoint, subject.text, right_rows(subject), step, rank)


@cached
def sampled(subject: Subject, temperature: float, seed: int) -> Written:
    return decoding.written(subject.checkpoint, subject.text, MOST_NEW, Sampling(temperature=temperature, seed=seed))


@cached
def greedy(subject: Subject) -> Written:
    return written_from(subject.checkpoint, subject.text, _greedy(subject))


@cached
def _greedy(subject: Subject) -> Candidates:
    """What each token of the greedy text is chosen from; the page's own translation is that text, written already."""
    if subject.writes_its_target:
        return written(subject).first(MOST_NEW)
    return leading_candidates(subject.checkpoint.stream(subject.text, max_new=MOST_NEW))


@cached
def beams(subject: Subject, width: int, alpha: float) -> list[Written]:
    return decoding.beams(subject.checkpoint, subject.text, MOST_NEW, width, alpha)


@cached
def first_token(subject: Subject, temperature: float) -> list[tuple[Token, float, float]]:
    return warmed(subject.checkpoint, _first_distribution(subject), temperature)


@cached
def _first_distribution(subject: Subject) -> Tensor:
    return first_distribution(subject.checkpoint, subject.text)


@cached
def steps(subject: Subject) -> tuple[Candidates, tuple[Token, ...], dict[int, Token]]:
    """A greedy text: what each token was chosen from, what the text begins with, and the tokens of the ids."""
    loaded, found = subject.checkpoint, _greedy(subject)
    __, beginning = loaded.opening(subject.text)
    known = [id for id in {*found.seen, *found.ids} if id < loaded.tokenizer.vocab_size]
    return found, beginning, dict(zip(known, loaded.tokenizer.tokens(known), strict=True))


@cached
def cache_difference(subject: Subject) -> tuple[float, int]:
    return decoding.cache_difference(subject.checkpoint, subject.text, MOST_NEW)
