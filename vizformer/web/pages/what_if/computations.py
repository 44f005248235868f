"""Cached computations of the page What if."""

from dataclasses import dataclass
from typing import Literal

from vizformer.analysis import Prediction, next_tokens
from vizformer.analysis.causes import ablation, part_outputs
from vizformer.analysis.causes.ablation import (
    Effect,
    Means,
    Part,
    Stack,
    TokenEffects,
    Way,
    edit_without,
    parts_of,
    token_sweep,
)
from vizformer.analysis.causes.part_outputs import mean_outputs, read_other_texts
from vizformer.analysis.corpus_heads import Corpus, Passage, bundled_corpus
from vizformer.model import Trace
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import model_input
from vizformer.web.widgets.choices import one_of
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_note, show_warning

MEAN_TEXTS = 12  # over which outputs are averaged

MOST_CHARACTERS = 6_000  # of the reader's own: about as many as the bundled ones that are read
TOO_MANY_UNKNOWN = 0.05


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
    return part_outputs.unknown_share(model.checkpoint, _passages(model, texts)[:count])


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


# The other texts from which means and outputs come: bundled ones, or the reader's own; and whether they fit.
def choose(subject: Subject) -> Corpus | None:
    """The reader's own texts; None for the bundled ones, also while there are no others."""
    names = {"bundled": _("texts of the bundled collection"), "own": _("My own texts")}
    texts = box() if one_of(_("The other texts"), "whatif.texts", names) == "own" else None
    notes(subject, texts, MEAN_TEXTS)
    return texts


def box() -> Corpus | None:
    found = model_input.box("what_if.texts", MOST_CHARACTERS)
    if found is None:
        show_note("Until then the bundled collection is used.")
    return found


def notes(subject: Subject, texts: Corpus | None, count: int) -> None:
    """Says how much of the texts is read, and where the model's vocabulary does not have their words."""
    show_note("Only the first {n} texts are read. One that is too long for the model is halved until it fits.", n=count)
    share = unknown_share(Subject(subject.model, "", ""), texts, count)
    if share > TOO_MANY_UNKNOWN:
        show_warning(
            "{share} of the tokens of these texts are unknown to the model's vocabulary, so measurements on them "
            "mean little. Give texts of its own kind.",
            share=labels.percent(share),
        )


def in_python(subject: Subject, texts: Corpus | None, count: int) -> tuple[list[str], str]:
    """The imports, and what runs the model over the texts."""
    imports = ["from vizformer.analysis.causes.part_outputs import read_other_texts"]
    if texts is None:
        imports.insert(0, "from vizformer.analysis.corpus_heads import bundled_corpus")
        passages = f"bundled_corpus({corpus_of(subject)!r}).passages"
    else:
        imports[:0] = ["from pathlib import Path", "from vizformer.analysis.corpus_heads import read_texts"]
        passages = 'read_texts(Path("your_texts.txt")).passages'
    return imports, f"read_other_texts(checkpoint, {passages}, {count})"
