"""Small symbolic tasks that a tiny Transformer learns while one watches: questions and answers made of symbols.

Every symbol is a token.  An encoder-decoder reads the question and writes the answer; a decoder-only model reads
question, separator and answer as one text, and is trained on the answer.
"""

import random
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from vizformer.errors import VizformerError
from vizformer.model import Transformer
from vizformer.options import Architecture
from vizformer.text import Tokenizer
from vizformer.training.loss import IGNORED, PairBatch, RowBatch, token_logits, translation_logits

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


def _letters(symbols: str, answer: Callable[[str], str]) -> Callable[..., Example]:
    def sample(rng: random.Random) -> Example:
        question = "".join(rng.choices(symbols, k=rng.randint(2, 8)))
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
        Task("copy", LETTERS, ":", True, _BOTH, 8, _letters(LETTERS, _same), _same, "cafe"),
        Task("reverse", LETTERS, ":", True, _BOTH, 8, _letters(LETTERS, _reversed), _reversed, "badge"),
        Task("sort", DIGITS, ":", True, _BOTH, 8, _letters(DIGITS, _sorted), _sorted, "31415"),
        Task("addition", DIGITS + "+", "=", True, _BOTH, 5, _sum, _added, "47+38"),
        Task("repeat", LETTERS, "", False, ("decoder-only",), 11, _repeated, _continued, "gcadg"),
    )
}
"""The tasks by name: copy, reverse, sort, addition, and repeat (the induction task)."""


# Examples of symbolic tasks as batches, their loss, and how many a model gets right.

Batch = PairBatch | RowBatch


class Marks(NamedTuple):
    """The loss and the accuracy of a model on held-out questions."""

    loss: float  # cross-entropy per symbol of the right answers, in nats
    accuracy: float  # share of the questions answered without a mistake
    symbols: float  # share of the answers' symbols that are right, each given the right ones before it


def ids_of(task: Task, example: Example, architecture: Architecture) -> tuple[list[int], list[int]]:
    """The ids of the question, and those of the answer (with the end mark, if the task has one).

    An encoder-decoder's encoder reads the question and an end mark; its decoder's start mark is not included.
    """
    number = {piece: id for id, piece in enumerate(task.vocabulary)}
    question = [number[symbol] for symbol in example.question]
    answer = [number[symbol] for symbol in example.answer] + ([number[EOS]] if task.ends else [])
    if architecture == "encoder-decoder":
        return [*question, number[EOS]], answer
    return [number[BOS], *question, *(number[symbol] for symbol in task.separator)], answer


def batch_of(task: Task, architecture: Architecture, examples: Sequence[Example]) -> Batch:
    """A padded batch of examples; it has labels only for the answers."""
    vocabulary = list(task.vocabulary)
    pad, bos = vocabulary.index(PAD), vocabulary.index(BOS)
    pairs = [ids_of(task, example, architecture) for example in examples]
    if architecture == "encoder-decoder":
        return PairBatch(_padded([read for read, _ in pairs], pad), _padded([[bos, *write] for _, write in pairs], pad))
    ids = _padded([[*read, *write[:-1]] for read, write in pairs], pad)
    labels = _padded([[IGNORED] * (len(read) - 1) + write for read, write in pairs], IGNORED)
    return RowBatch(ids, labels, torch.zeros_like(ids), ids.eq(pad))


def loss_of(model: Transformer, batch: Batch) -> Tensor:
    """The mean cross-entropy of the answers' symbols."""
    logits, labels = translation_logits(model, batch) if isinstance(batch, PairBatch) else token_logits(model, batch)
    return torch.nn.functional.cross_entropy(logits, labels)


@torch.no_grad()
def marks(model: Transformer, batch: Batch) -> Marks:
    """The `Marks` of a batch.

    Where every symbol of an answer is the most probable one after the right symbols before it, greedy decoding writes
    this answer, and only there: one forward tells its accuracy.
    """
    if isinstance(batch, PairBatch):
        labels = batch.target[:, 1:]  # [b, m-1]
        pad = model.config.pad_id or 0
        labels = labels.masked_fill(labels.eq(pad), IGNORED)
        logits = model(batch.source, batch.target[:, :-1], padding=batch.source.eq(pad))  # [b, m-1, vocab_size]
    else:
        labels = batch.labels  # [b, n]
        logits = model(batch.ids)  # [b, n, vocab_size]
    asked = labels.ne(IGNORED)
    hit = logits.argmax(-1).eq(labels)  # [b, n]
    loss = torch.nn.functional.cross_entropy(logits[asked], labels[asked])
    return Marks(loss.item(), float((hit | ~asked).all(dim=1).float().mean()), float(hit[asked].float().mean()))


def _padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=fill)  # [b, n]
