"""Cached computations of the page What if."""

from typing import TYPE_CHECKING, Literal, get_args

from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject

if TYPE_CHECKING:
    from vizformer.analysis import Kind, Prediction
    from vizformer.analysis.ablation import Effect, MassAndEffect, Means, Part
    from vizformer.model import Trace

Instead = Literal["zero", "mean"]
INSTEAD: tuple[Instead, ...] = get_args(Instead)
MEAN_TEXTS = 12  # of the bundled ones, over which heads are averaged


def parts(subject: Subject) -> "tuple[Part, ...]":
    from vizformer.analysis.ablation import parts_of

    return parts_of(subject.trace)


def corpus_of(subject: Subject) -> str:
    """Which of the bundled corpora the means are taken over."""
    return "zh" if subject.config.architecture == "encoder-decoder" else "en"


@cached
def means(subject: Subject) -> "Means":
    """What every head puts out on average, over some of the bundled texts that the model can read."""
    from vizformer.analysis.ablation import mean_outputs
    from vizformer.analysis.corpus_heads import bundled_corpus
    from vizformer.errors import VizformerError

    checkpoint, traces = subject.checkpoint, list["Trace"]()
    for passage in bundled_corpus(corpus_of(subject)).passages:
        try:
            traces.append(checkpoint.trace(passage.text, target=passage.target or None))
        except VizformerError:
            continue
        if len(traces) == MEAN_TEXTS:
            break
    return mean_outputs(traces)


@cached
def sweep(subject: Subject, row: int, token: int, instead: Instead) -> "tuple[Effect, ...]":
    from vizformer.analysis.ablation import sweep

    given = means(subject.unedited) if instead == "mean" else None
    return sweep(subject.checkpoint, subject.trace, row, token, given, heard=HEARD.get())


@cached
def without(subject: Subject, chosen: "tuple[Part, ...]", instead: Instead, row: int) -> "tuple[Prediction, ...]":
    """The most probable tokens at a row without some parts."""
    from vizformer.analysis import next_tokens
    from vizformer.analysis.ablation import without

    given = means(subject.unedited) if instead == "mean" else None
    return next_tokens(subject.checkpoint, without(subject.checkpoint, subject.trace, chosen, given), row)


@cached
def effect(subject: Subject, chosen: "tuple[Part, ...]", instead: Instead, row: int, token: int) -> "Effect":
    """What taking out some parts together changes."""
    from vizformer.analysis.ablation import effect, without

    given = means(subject.unedited) if instead == "mean" else None
    other = without(subject.checkpoint, subject.trace, chosen, given)
    return effect(subject.trace, chosen[0], subject.trace.logits, other.logits, row, token)


@cached
def written(subject: Subject, chosen: "tuple[Part, ...]", instead: Instead) -> str:
    """The translation, or some tokens that go on the text, written without these parts."""
    from vizformer.analysis.ablation import edit_without

    edit = edit_without(chosen, means(subject.unedited) if instead == "mean" else None) if chosen else None
    most = 40 if subject.config.architecture == "encoder-decoder" else 12
    return subject.checkpoint.generate(subject.text, max_new=most, edit=edit).text


@cached
def mass_and_effect(
    subject: Subject, row: int, token: int, instead: Instead, kind: "Kind", query: int, key: int
) -> "tuple[MassAndEffect, ...]":
    from vizformer.analysis.ablation import mass_and_effect

    return mass_and_effect(subject.trace, sweep(subject, row, token, instead), kind, query, key)
