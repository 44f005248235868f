"""What is measured of heads and said beside their picture: that one rests on a token, that none finds what "it" means."""

import re
from collections.abc import Mapping

import streamlit as st

from vizformer.analysis import Kind, kinds, site_name
from vizformer.analysis.heads import pronouns, resting
from vizformer.analysis.heads.minimal_pairs import minimal_pair
from vizformer.analysis.heads.pronouns import ReferenceShift
from vizformer.model import Trace
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.frame import sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets.pronoun_sentences import PAIRS, Pronoun
from vizformer.web.words import counts, labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _

AFFORDABLE = 100_000_000  # parameters of a model that reads two dozen sentences while a reader waits
LONGEST = 512  # tokens of a map that is looked at as a whole
RARE, MOST = 0.05, 0.75  # chance below which it is hardly luck; sentences in which the meant noun has to be found
_WORDS: Mapping[Pronoun, str] = {
    "it": r"\b[Ii]t\b",
    "he": r"\b(?:[Hh]e|[Ss]he)\b",
    "ta_meaning": "它(?!们)",
    "ta_form": "(?<!其)[他她](?!们)",
}
rest = of_trace(resting.resting_head)


@cached
def reference_shift(model: ModelRef, pronoun: Pronoun) -> ReferenceShift:
    # Only what the first stack makes of a text is measured, and an encoder knows nothing of the target.
    def trace(text: str) -> Trace:
        return Subject(model, text, text.split()[0] if model_cache.reads_target(model) else "").trace

    return pronouns.reference_shift(trace, PAIRS[pronoun])


@cached
def readable(model: ModelRef) -> tuple[Pronoun, ...]:
    """The pronouns whose sentences the model can read; none where it is too large to read them all."""
    if sum(parameter.numel() for parameter in model_cache.checkpoint(model).model.parameters()) > AFFORDABLE:
        return ()
    return tuple(
        pronoun
        for pronoun, pairs in PAIRS.items()
        if all(model_cache.reads(model, one.text) for written in pairs for one in minimal_pair(written))
    )


def is_shown(found: ReferenceShift) -> bool:
    """Whether the best head finds the meant noun, and not by luck."""
    return found.chance <= RARE and found.found >= MOST * 2 * len(found.sentences)


@guarded()
def say(subject: Subject, kind: Kind, layer: int, head: int) -> None:
    """Says of the head that is shown on which token it rests, and of a pronoun in the text that no head finds its noun."""
    if found := resting_on(subject, kind, layer, head):
        st.caption(found)
    if kind == kinds(subject.trace)[0]:
        say_pronoun(subject)


def resting_on(subject: Subject, kind: Kind, layer: int, head: int) -> str:
    """A sentence that names the token on which a head rests (Markdown); empty where it does not rest."""
    keys = subject.trace.tokens[labels.stacks(kind)[1]]
    if len(keys) > LONGEST or (found := rest(subject, site_name(kind, layer), head)) is None:
        return ""
    return _(
        "This head rests: over all rows it gives “{key}” {share} of its attention on average. Such a head says "
        "little about the sentence.",
        key=plain(keys[found.key].text),
        share=labels.percent(found.share),
    )


def pronoun(subject: Subject) -> tuple[Pronoun, str] | None:
    """The first pronoun in the text whose noun no head of a bundled model finds, and the sentence that says so."""
    if subject.model.is_from_elsewhere:  # its two dozen sentences are read in the lesson
        return None
    for kind, words in _WORDS.items():
        if (word := re.search(words, subject.text)) is None or kind not in readable(subject.model):
            continue
        found = reference_shift(subject.model, kind)
        if is_shown(found):
            return None
        return kind, _(
            "No head of {model} attends from “{word}” to the noun that it means: in pairs of sentences that differ in one "
            "word, the best of {heads} gives the right noun the larger weight in {found} of {n}; half would be chance.",
            model=subject.title,
            word=word[0],
            heads=counts.heads(found.shifts[0].size),
            found=found.found,
            n=2 * len(found.sentences),
        )
    return None


@guarded()
def say_pronoun(*subjects: Subject) -> None:
    """Says of a pronoun in each text that no head finds its noun, and where that is measured; once for each model."""
    for subject in {one.model: one for one in reversed(subjects)}.values():
        if (found := pronoun(subject)) is not None:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption(plain(found[1]), width="content")
                there = state.lead(part="reference", dials=f"heads.pronoun:{found[0]}")
                st.page_link(sitemap.HEADS.file, label=_("How this is measured"), query_params=there)
