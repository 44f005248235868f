"""What the stations are about: one forward of the reader's sentence, and the words of a station."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from vizformer.analysis.one_forward import station_numbers
from vizformer.analysis.one_forward.followed_token import SHOWN, FollowedToken, Look, follow_token
from vizformer.analysis.one_forward.picture_numbers import Stack
from vizformer.analysis.one_forward.station_numbers import HeadRow
from vizformer.components.stations import Ask, Frame, Option
from vizformer.text import Token
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import usual_query
from vizformer.web.words import labels, lesson_words

MOST_OPTIONS = 4

Say = Callable[..., str]  # a text of a station by its name, with values for its placeholders


def words_of(station: str) -> Say:
    def say(name: str, /, **values: object) -> str:
        return lesson_words.say("path", station, name, **values)

    return say


@dataclass(frozen=True)
class Sentence:
    """A sentence in a model, with the numbers that several stations show."""

    subject: Subject

    @cached_property
    def found(self) -> FollowedToken:
        """The numbers of the token that is followed, among the first `SHOWN` tokens."""
        tokens = self.subject.tokens[:SHOWN]
        alone = self.stack == "decoder"
        row = len(tokens) - 1 if alone else usual_query(tokens)
        predicts, position = model_cache.predicts(self.subject.model), _before_last_word(tokens) if alone else None
        return follow_token(self.subject.checkpoint, self.subject.trace, row, predicts=predicts, position=position)

    @property
    def stack(self) -> Stack:
        return "decoder" if self.subject.shape.architecture == "decoder-only" else "encoder"

    @property
    def texts(self) -> list[str]:
        return labels.texts(self.found.tokens)

    @property
    def token(self) -> str:
        return self.texts[self.found.followed]

    @property
    def look(self) -> Look:
        return self.found.look

    @cached_property
    def row(self) -> HeadRow:
        return station_numbers.head_row(self.subject.trace, self.stack, self.look)

    @property
    def head(self) -> dict[str, int]:
        """Layer and head that are shown, for the words of a station."""
        return {"layer": self.look.layer, "head": self.look.head}

    @cached_property
    def written(self) -> tuple[Token, ...]:
        """The tokens of the decoder that are shown: what it has written, its start mark first."""
        return self.found.target or (self.found.tokens if self.stack == "decoder" else ())


def _before_last_word(tokens: Sequence[Token]) -> int:
    """The last row; where the text ends in a punctuation mark, the row before its last word, which it predicts."""
    last = usual_query(tokens)
    if last == len(tokens) - 1 or tokens[last].special:
        return len(tokens) - 1
    return max(next(i for i in range(len(tokens)) if tokens[i].word == tokens[last].word) - 1, 0)


def number(value: float) -> str:
    """A weight or a probability, with a true minus sign."""
    return f"{value:.2f}".replace("-", "−")


def share(value: float) -> str:
    return labels.percent(value)


def best_of(names: Sequence[str], values: Sequence[float]) -> list[int] | None:
    """Which of them to choose from, in their order: the largest, and others that read differently; None for one alone.

    The others are those of the largest values but the last, so that the choice is not too easy.
    """
    order = sorted(range(len(names)), key=lambda i: -values[i])
    chosen: list[int] = []
    for index in order:
        if names[index].strip() and names[index] not in [names[one] for one in chosen]:
            chosen.append(index)
    return sorted(chosen[:MOST_OPTIONS]) if len(chosen) > 1 and chosen[0] == order[0] else None


def each(say: Say, names: Sequence[str], chosen: Sequence[int], right: int, values: Sequence[str]) -> list[Option]:
    """Options of which each has a number, that of the right one the largest: who chose one is told both."""
    return [
        Option(
            names[i],
            say("because.right", value=values[i])
            if i == right
            else say("because.wrong", value=values[i], best=names[right], best_value=values[right]),
        )
        for i in chosen
    ]


def asked(say: Say, given: Sequence[Option], right: int, frame: Frame, **values: object) -> Ask:
    """The question of a station, in its words for the first time and for a later one."""
    return Ask(say("ask", **values), given, right, frame, say("again", **values))


def fixed(say: Say, names: Sequence[str], **values: object) -> list[Option]:
    """The options of a question that are in the words of the station, by their names."""
    return [Option(say(f"choices.{name}"), say(f"because.{name}", **values), name) for name in names]
