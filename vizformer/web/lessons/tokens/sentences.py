"""Sentences of the lesson Tokens and embeddings that use one token in two senses, or share tokens with the reader's."""

from dataclasses import dataclass

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.word_tables import data_of


@dataclass(frozen=True)
class Occasion:
    """Sentences that use one token in two senses: the first and the second differ, the third is as the first."""

    token: str
    first: str
    second: str
    third: str


_DATA = data_of(__file__)
OCCASIONS = tuple(Occasion(**one) for one in _DATA["occasions"])
FRAMES = {token: tuple(sentences) for token, sentences in _DATA["frames"].items()}  # the same in two senses
OTHERS: tuple[str, ...] = tuple(_DATA["others"])  # for a sentence of the reader's: the one that shares most with it


@cached
def occasions(model: ModelRef) -> tuple[Occasion, ...]:
    """The examples that the model can read: not where it takes few tokens, or came without a tokenizer."""
    return tuple(o for o in OCCASIONS if all(model_cache.reads(model, text) for text in (o.first, o.second, o.third)))


def beside(subject: Subject) -> tuple[str, str]:
    """A second and a third sentence to hold against the first: of the examples, or the one that shares most with it."""
    for occasion in occasions(subject.model):
        if occasion.first == subject.text.strip():
            return occasion.second, occasion.third
    return _fitting(subject.model, subject.text), ""


@cached
def _fitting(model: ModelRef, text: str) -> str:
    """The sentence that shares most words with the text; where none can be read, the text's own words turned round.

    Words with which both begin do not count: what a decoder makes of them is the same in both.
    """
    tokenizer = model_cache.checkpoint(model).tokenizer_of("encoder")
    others = [other for other in OTHERS if other != text.strip() and model_cache.reads(model, other)]
    if not others:
        turned = " ".join(reversed(text.split()))
        return turned if turned != text.strip() and model_cache.reads(model, turned) else ""

    def words(sentence: str) -> list[int]:
        return [token.id for token in tokenizer.encode(sentence, special=False) if token.text[:1].isalnum()]

    own = words(text)

    def shared(other: str) -> int:
        theirs = words(other)
        begun = next((i for i, (one, two) in enumerate(zip(own, theirs, strict=False)) if one != two), len(theirs))
        return len(set(own[begun:]) & set(theirs[begun:]))

    return max(others, key=shared)
