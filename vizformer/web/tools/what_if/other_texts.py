"""The other texts from which means and outputs come: bundled ones, or the reader's own; and whether they fit."""

from vizformer.analysis.corpus_heads import Corpus
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.what_if import computations
from vizformer.web.widgets import own_texts
from vizformer.web.widgets.choices import one_of
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_note, show_warning

MOST_CHARACTERS = 6_000  # of the reader's own: about as many as the bundled ones that are read
TOO_MANY_UNKNOWN = 0.05


def choose(subject: Subject) -> Corpus | None:
    """The reader's own texts; None for the bundled ones, also while there are no others."""
    names = {"bundled": _("texts of the bundled collection"), "own": _("My own texts")}
    texts = box() if one_of(_("The other texts"), "whatif.texts", names) == "own" else None
    notes(subject, texts, computations.MEAN_TEXTS)
    return texts


def box() -> Corpus | None:
    found = own_texts.box("what_if.texts", MOST_CHARACTERS)
    if found is None:
        show_note("Until then the bundled collection is used.")
    return found


def notes(subject: Subject, texts: Corpus | None, count: int) -> None:
    """Says how much of the texts is read, and where the model's vocabulary does not have their words."""
    show_note("Only the first {n} texts are read. One that is too long for the model is halved until it fits.", n=count)
    share = computations.unknown_share(Subject(subject.model, "", ""), texts, count)
    if share > TOO_MANY_UNKNOWN:
        show_warning(
            "{share} of the tokens of these texts are unknown to the model's vocabulary, so measurements on them "
            "mean little. Give texts of its own kind.",
            share=labels.percent(share),
        )


def in_python(subject: Subject, texts: Corpus | None, count: int) -> tuple[list[str], str]:
    """The imports, and what runs the model over the texts."""
    imports = ["from vizformer.analysis.causes.other_texts import read_other_texts"]
    if texts is None:
        imports.insert(0, "from vizformer.analysis.corpus_heads import bundled_corpus")
        passages = f"bundled_corpus({computations.corpus_of(subject)!r}).passages"
    else:
        imports[:0] = ["from pathlib import Path", "from vizformer.analysis.corpus_heads import read_texts"]
        passages = 'read_texts(Path("your_texts.txt")).passages'
    return imports, f"read_other_texts(checkpoint, {passages}, {count})"
