"""Cached computations of the lesson Tokens and embeddings."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from vizformer.analysis.heads.minimal_pairs import minimal_pair
from vizformer.analysis.vectors import embeddings
from vizformer.analysis.vectors.contextual import Contexts
from vizformer.analysis.vectors.embeddings import (
    Lookup,
    Neighbours,
    Norms,
    Projection,
    directions,
    entries,
    input_parts,
    project,
    with_scale,
)
from vizformer.analysis.vectors.senses import SenseGap, sense_gap
from vizformer.analysis.vectors.word_vectors import WordVectors, read_word_vectors
from vizformer.assets import asset
from vizformer.explain.snippets import Given
from vizformer.model import Trace
from vizformer.text import IdTokenizer, merging
from vizformer.text.merging import Applied, Learned, pair_counts
from vizformer.text.schemes import Piece, Scheme, cut, pieces, scheme_tokenizer
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens.sentences import FRAMES, OCCASIONS, OTHERS, Occasion
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words import labels

SCHEMES: tuple[Scheme, ...] = ("word", "character", "bpe", "wordpiece", "unigram", "byte")
MERGES = 40  # steps of learning that are shown
NEAREST = 8  # neighbours of the chosen token
NEAR = 3  # neighbours of every other token, on the map
AFFORDABLE = 100_000_000  # parameters of a model that reads sixty sentences while a reader waits
TRIED = 12  # tokens that a model generates with the factor switched


@dataclass(frozen=True)
class Cut:
    """A text under one tokenizer: its tokens in order, without special ones around it, and the vocabulary's entries."""

    pieces: tuple[Piece, ...]
    vocab_size: int


@dataclass(frozen=True)
class Cuts:
    """A text under the six schemes and under the model's own tokenizer.

    Attributes:
        takes_ids: whether the model came without a tokenizer, so that a text is the ids themselves.
        d_model: numbers of a row of the model's table.
    """

    schemes: "dict[Scheme, Cut]"
    own: Cut
    takes_ids: bool
    d_model: int


@cached
def cuts(subject: Subject) -> Cuts:
    loaded = subject.checkpoint
    config, reader = loaded.model.config, loaded.tokenizer_of("encoder")
    schemes = {scheme: Cut(cut(scheme, subject.text), scheme_tokenizer(scheme).vocab_size) for scheme in SCHEMES}
    own = Cut(pieces(subject.text, reader), config.input_vocab_size)
    return Cuts(schemes, own, isinstance(reader, IdTokenizer), config.d_embedding)


@cached
def applied(text: str) -> tuple[tuple[tuple[str, ...], ...], tuple[Applied, ...]]:
    """The words of the text as characters, and the merges of the bundled table one by one."""
    words = merging.words_of(text)
    return words, merging.apply(words, *merging.bundled_table())


@cached
def learned(text: str) -> tuple[tuple[tuple[tuple[str, ...], int], ...], tuple[Learned, ...]]:
    """Words with how often they occur, and what BPE learns from them; an empty text stands for the paper's words."""
    words = Counter(merging.words_of(text)) if text else merging.PAPER
    return tuple(words.items()), merging.learn(words, MERGES)


@cached
def next_counts(text: str, step: int) -> tuple[tuple[tuple[str, str], int], ...]:
    """The pairs of neighbours before merge `step`, most frequent first."""
    words, steps = learned(text)
    if step < len(steps):
        return steps[step].counts
    return tuple(pair_counts(steps[-1].words if steps else words).most_common())


@cached
def lookup(model: ModelRef, id: int) -> Lookup:
    return embeddings.lookup(model_cache.checkpoint(model), id)


@cached
def table(model: ModelRef, rows: tuple[int, ...], columns: tuple[int, ...]) -> Float[np.ndarray, "rows columns"]:
    """Some numbers of the embedding table."""
    return entries(model_cache.checkpoint(model), rows, columns)


@cached
def _directions(model: ModelRef, centred: bool) -> tuple[Float[np.ndarray, "vocab_size d_model"], float]:
    unit = directions(model_cache.checkpoint(model), centred=centred)
    return unit, embeddings.average_cosine(unit)


@cached
def neighbours(model: ModelRef, id: int, centred: bool) -> Neighbours:
    return embeddings.neighbours(_directions(model, centred)[0], id, NEAREST)


def average_cosine(model: ModelRef, centred: bool) -> float:
    """The mean cosine of two rows of the table."""
    return _directions(model, centred)[1]


@cached
def near(model: ModelRef, ids: tuple[int, ...], chosen: int, centred: bool) -> tuple[tuple[int, ...], Projection]:
    """The distinct tokens of a text, the neighbours of `chosen`, some of every other's; and all of them on a plane."""
    own = list(dict.fromkeys(ids))
    close = neighbours(model, chosen, centred).ids
    rest = [other for id in own if id != chosen for other in neighbours(model, id, centred).ids[:NEAR]]
    shown = tuple(dict.fromkeys([*own, *close, *rest]))
    return shown, project(_directions(model, centred)[0][list(shown)])


def names(model: ModelRef, ids: tuple[int, ...], beside: tuple[int, ...] = ()) -> list[str]:
    """What the tokens read, told apart from each other and from those `beside`."""
    found = (
        model_cache.checkpoint(model).tokenizer_of("encoder").tokens([*ids, *(id for id in beside if id not in ids)])
    )
    return labels.told_apart(found)[: len(ids)]


def seconds(subject: Subject) -> tuple[str, str]:
    """A second and a third sentence to hold against the first: of the examples, or the one that shares most with it."""
    for occasion in occasions(subject.model):
        if occasion.first == subject.text.strip():
            return occasion.second, occasion.third
    return _fitting(subject.model, subject.text), ""


@cached
def occasions(model: ModelRef) -> tuple[Occasion, ...]:
    """The examples that the model can read: not where it takes few tokens, or came without a tokenizer."""
    return tuple(o for o in OCCASIONS if all(model_cache.reads(model, text) for text in (o.first, o.second, o.third)))


@cached
def _fitting(model: ModelRef, text: str) -> str:
    """The sentence that shares most words with the text; where none can be read, the text's own words turned round."""
    tokenizer = model_cache.checkpoint(model).tokenizer_of("encoder")
    others = [other for other in OTHERS if other != text.strip() and model_cache.reads(model, other)]
    if not others:
        turned = " ".join(reversed(text.split()))
        return turned if turned != text.strip() and model_cache.reads(model, turned) else ""

    def words(sentence: str) -> set[int]:
        return {token.id for token in tokenizer.encode(sentence, special=False) if token.text[:1].isalnum()}

    own = words(text)
    return max(others, key=lambda other: len(own & words(other)))


def _reading(model: ModelRef, text: str) -> Trace:
    # Only what the encoder makes of it is compared, and that knows nothing of the target: any short one will do.
    target = text.split()[0] if model_cache.reads_target(model) else ""
    return Subject(model, text, target).trace


@cached
def shared(model: ModelRef, first: str, second: str) -> tuple[tuple[int, int], ...]:
    """Places of the same token in two texts."""
    from vizformer.analysis.vectors.contextual import shared

    return shared(_reading(model, first), _reading(model, second))


@cached
def contexts(model: ModelRef, first: str, second: str, i: int, j: int) -> Contexts:
    from vizformer.analysis.vectors.contextual import contexts

    return contexts(model_cache.checkpoint(model), _reading(model, first), _reading(model, second), i, j)


@cached
def word_vectors() -> WordVectors:
    """The bundled table of static word vectors."""
    return read_word_vectors(asset("lessons", "tokens", "word_vectors.safetensors"))


@cached
def senses(model: ModelRef) -> tuple[tuple[Occasion, float], ...]:
    """Of each example that the model can read: the cosine of the token's two vectors after the last layer."""
    found = []
    for occasion in occasions(model):
        tokens = model_cache.checkpoint(model).tokenizer_of("encoder").encode(occasion.first)
        for i, j in shared(model, occasion.first, occasion.second):
            if tokens[i].text.strip() == occasion.token:
                found.append((occasion, float(contexts(model, occasion.first, occasion.second, i, j).same[-1])))
                break
    return tuple(found)


@cached
def sense_gaps(model: ModelRef) -> dict[str, SenseGap]:
    """Of each word in frames whose sentences the model can read; none where it is too large to read them all."""
    if sum(parameter.numel() for parameter in model_cache.checkpoint(model).model.parameters()) > AFFORDABLE:
        return {}
    return {
        token: sense_gap(lambda text: _reading(model, text), frames)
        for token, frames in FRAMES.items()
        if all(model_cache.reads(model, one.text) for written in frames for one in minimal_pair(written))
    }


@cached
def norms(model: ModelRef, ids: tuple[int, ...]) -> Norms:
    return embeddings.norms(model_cache.checkpoint(model), np.array(ids))


def added(model: ModelRef, ids: tuple[int, ...]) -> dict[str, Given]:
    """What is added up before the first layer, by the names that code has for it."""
    return dict(input_parts(model_cache.checkpoint(model), ids))


@cached
def written(model: ModelRef, text: str, scaled: bool) -> str:
    """What the model makes of the text with or without the factor sqrt(d_model), the first tokens of it."""
    return with_scale(model_cache.checkpoint(model), scaled).generate(text, max_new=TRIED).text


def embedding_table(model: ModelRef) -> Tensor:
    """The table of embeddings that the text is read with [vocab_size, d_model]."""
    return embeddings.table(model_cache.checkpoint(model))
