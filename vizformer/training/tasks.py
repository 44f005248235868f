"""Small symbolic tasks that a tiny Transformer learns while one watches: questions and answers made of symbols.

Every symbol is a token.  An encoder-decoder reads the question and writes the answer; a decoder-only model reads
question, separator and answer as one text, and is trained on the answer.
"""

import random
import unicodedata
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from vizformer.errors import VizformerError
from vizformer.options.common import Architecture
from vizformer.text import Tokenizer

PAD, BOS, EOS, UNKNOWN = MARKS = ("<pad>", "<s>", "</s>", "<unk>")
LETTERS, DIGITS = "abcdefghijklmnop", "0123456789"
HELD_OUT = 8  # one question in so many is never trained on
LONGEST_QUESTION = 40  # symbols that a student may type


class Example(NamedTuple):
    question: str
    answer: str


@dataclass(frozen=True)
class Task:
    name: str
    symbols: str  # the vocabulary of questions and answers, each symbol one token
    separator: str  # stands between question and answer in a decoder-only model; empty: the answer just goes on
    ends: bool  # whether an answer is over at some point (and then has an end mark), or goes on for ever
    architectures: tuple[Architecture, ...]  # the kinds of model that can learn it
    longest: int
    sample: Callable[[random.Random], Example]  # a question for training
    solve: Callable[[str], str]  # the right answer to a question
    example: str

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*MARKS, *self.symbols, *self.separator)

    def read(self, text: str) -> Example:
        """A question as typed, with or without spaces, and its right answer.

        What follows a separator is left out: it would be the answer.

        Raises:
            VizformerError: nothing typed, other symbols, too long, or a question without an answer.
        """
        question = "".join(unicodedata.normalize("NFKC", text).lower().split())
        if self.separator:
            question = question.partition(self.separator)[0]
        if not question:
            raise VizformerError("Type something for the model, for example {example}.", example=self.example)
        if strange := sorted(set(question) - set(self.symbols)):
            raise VizformerError(
                "This model knows only {symbols}, not {strange}. Leave that out.",
                symbols=" ".join(self.symbols),
                strange=" ".join(strange[:8]),
            )
        if len(question) > LONGEST_QUESTION:
            raise VizformerError(
                "The input has {n} symbols; at most {limit} fit. Shorten it.", n=len(question), limit=LONGEST_QUESTION
            )
        return Example(question, self.solve(question))

    def tokenizer(self, architecture: Architecture) -> Tokenizer:
        """One token per symbol, whatever spaces stand between them; full-width symbols and capitals count the same.

        Any other symbol is <unk>, which no training contains: the pages show it as such.
        """
        vocabulary = {piece: id for id, piece in enumerate(self.vocabulary)}
        backend = Backend(models.WordLevel(vocabulary, unk_token=UNKNOWN))
        backend.add_special_tokens([AddedToken(piece, special=True, normalized=False) for piece in MARKS])
        backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex("."), "isolated")]
        )
        mark, template = (EOS, f"$A {EOS}") if architecture == "encoder-decoder" else (BOS, f"{BOS} $A")
        marks = [(mark, vocabulary[mark])]
        backend.post_processor = processors.TemplateProcessing(single=template, special_tokens=marks)
        backend.decoder = decoders.Fuse()
        return Tokenizer(backend)

    def text(self, example: Example, architecture: Architecture) -> str:
        """The text that a reader would type into another page to see the model at this question."""
        return (
            example.question
            if architecture == "encoder-decoder"
            else "".join((example.question, self.separator, example.answer))
        )


def is_held_out(question: str) -> bool:
    """Whether a question is held out from training. A hash of the question decides, so that no run trains on it."""
    return zlib.crc32(question.encode()) % HELD_OUT == 0


def examples(task: Task, rng: random.Random, count: int, *, held_out: bool) -> list[Example]:
    """`count` random examples, all of them held out or none."""
    found: list[Example] = []
    while len(found) < count:
        example = task.sample(rng)
        if is_held_out(example.question) == held_out:
            found.append(example)
    return found


def _letters(shortest: int, longest: int, symbols: str, answer: Callable[[str], str]) -> Callable[..., Example]:
    def sample(rng: random.Random) -> Example:
        question = "".join(rng.choices(symbols, k=rng.randint(shortest, longest)))
        return Example(question, answer(question))

    return sample


def _same(question: str) -> str:
    return question


def _reversed(question: str) -> str:
    return question[::-1]


def _sorted(question: str) -> str:
    return "".join(sorted(question))


def _added(question: str) -> str:
    left, plus, right = question.partition("+")
    if not (plus and left.isdigit() and right.isdigit()):
        raise VizformerError("{question} is not a sum of two numbers. Type one such as 47+38.", question=question)
    return str(int(left) + int(right))


def _sum(rng: random.Random) -> Example:
    left, right = (rng.randrange(10 ** rng.randint(1, 2)) for _ in range(2))
    return Example(f"{left}+{right}", str(left + right))


REPEATED = 24  # symbols of a training text of "repeat"


def _repeated(rng: random.Random) -> Example:
    """A period of different symbols, repeated; the question ends where the second period begins.

    The period's length differs from text to text: counting places does not help, looking up what followed does.
    """
    period = "".join(rng.sample(LETTERS, rng.randint(3, 10)))
    text = (period * REPEATED)[:REPEATED]
    return Example(text[: len(period) + 1], text[len(period) + 1 :])


def _continued(question: str) -> str:
    """The answer of "repeat": one more period, in which each symbol is followed by what followed it before."""
    before = question.rfind(question[-1], 0, len(question) - 1)
    if before < 0:
        raise VizformerError(
            "Nothing is repeated in {question} yet: end with a symbol that came before, as in {example}.",
            question=question,
            example="gcadg",
        )
    period = len(question) - 1 - before
    text = question
    while len(text) < len(question) + period:
        text += text[-period]
    return text[len(question) :]


_BOTH: tuple[Architecture, ...] = ("encoder-decoder", "decoder-only")

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("copy", LETTERS, ":", True, _BOTH, 8, _letters(2, 8, LETTERS, _same), _same, "cafe"),
        Task("reverse", LETTERS, ":", True, _BOTH, 8, _letters(2, 8, LETTERS, _reversed), _reversed, "badge"),
        Task("sort", DIGITS, ":", True, _BOTH, 8, _letters(2, 8, DIGITS, _sorted), _sorted, "31415"),
        Task("addition", DIGITS + "+", "=", True, _BOTH, 5, _sum, _added, "47+38"),
        Task("repeat", LETTERS, "", False, ("decoder-only",), 11, _repeated, _continued, "gcadg"),
    )
}
"""The tasks by name: copy, reverse, sort, addition, and repeat (the induction task)."""
