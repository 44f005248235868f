"""Cached computations of the page What if."""

from dataclasses import dataclass
from typing import Literal

from vizformer.analysis import Prediction, next_tokens
from vizformer.analysis.causes import ablation, other_texts
from vizformer.analysis.causes.ablation import Effect, Means, Part, edit_without, parts_of
from vizformer.analysis.causes.other_texts import read_other_texts
from vizformer.analysis.causes.part_outputs import mean_outputs
from vizformer.analysis.causes.tokens_left_out import Stack, TokenEffects, Way, token_sweep
from vizformer.analysis.corpus_heads import Corpus, Passage, bundled_corpus
from vizformer.model import Trace
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject

MEAN_TEXTS = 12  # over which outputs are averaged


@dataclass(frozen=True)
class Mean:
    """The mean over other texts: the reader's own, or bundled ones."""

    texts: Corpus | None = None


Instead = Literal["zero"] | Mean
"""The value that replaces the output of a part: zero, or a kind of mean."""


def parts(subject: Subject) -> tuple[Part, ...]:
    return parts_of(subject.trace)


def corpus_of(subject: Subject) -> str:
    """Which of the bundled corpora the means are taken over."""
    return "zh" if subject.shape.architecture == "encoder-decoder" else "en"


@cached
def unknown_share(model: Subject, texts: Corpus | None, count: int) -> float:
    """The share of unknown tokens in the other texts."""
    return other_texts.unknown_share(model.checkpoint, _passages(model, texts)[:count])


@cached
def means(subject: Subject, texts: Corpus | None = None) -> Means:
    """The mean outputs of every head and sublayer over other texts that the model can read."""
    return mean_outputs(subject.checkpoint, others(subject, texts))


def _passages(subject: Subject, texts: Corpus | None) -> tuple[Passage, ...]:
    return (texts or bundled_corpus(corpus_of(subject))).passages


def others(subject: Subject, texts: Corpus | None) -> list[Trace]:
    """Runs over the first of some other texts: the reader's own, or bundled ones."""
    return read_other_texts(subject.checkpoint, _passages(subject, texts), MEAN_TEXTS)


def _means(subject: Subject, instead: Instead) -> Means | None:
    return means(subject.unedited, instead.texts) if isinstance(instead, Mean) else None


@cached
def sweep(
    subject: Subject, row: int, token: int, instead: Instead, chosen: tuple[Part, ...] | None = None
) -> tuple[Effect, ...]:
    """The effects of all parts, or of `chosen` ones with the change of the loss, which needs the logits of every row."""
    given = dict(parts=chosen, loss=chosen is not None, heard=HEARD.get())
    mean = _means(subject, instead)
    return ablation.sweep(subject.checkpoint, subject.trace, row, token, mean, **given)  # type: ignore[arg-type]


@cached
def without(subject: Subject, chosen: tuple[Part, ...], instead: Instead, row: int) -> tuple[Prediction, ...]:
    """The most probable tokens at a row without some parts."""
    checkpoint, trace = subject.checkpoint, subject.trace
    return next_tokens(checkpoint, ablation.without(checkpoint, trace, chosen, _means(subject, instead)), row)


@cached
def effect(subject: Subject, chosen: tuple[Part, ...], instead: Instead, row: int, token: int) -> Effect:
    """The effect of taking out some parts together."""
    checkpoint, trace = subject.checkpoint, subject.trace
    other = ablation.without(checkpoint, trace, chosen, _means(subject, instead))
    return ablation.effect(trace, chosen[0], other.logits, row, token)


@cached
def written(subject: Subject, chosen: tuple[Part, ...], instead: Instead) -> str:
    """The translation, or some tokens that go on the text, written without these parts."""
    edit = edit_without(chosen, _means(subject, instead)) if chosen else None
    most = 40 if subject.shape.architecture == "encoder-decoder" else 12
    return subject.checkpoint.generate(subject.text, max_new=most, edit=edit).text


@cached
def tokens(subject: Subject, stack: Stack, row: int, token: int, way: Way) -> TokenEffects:
    """Every token of a stack's input taken out."""
    return token_sweep(subject.checkpoint, subject.trace, stack, row, token, way, heard=HEARD.get())
