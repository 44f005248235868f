"""Words beside a map of heads: what its rows are called, on which token the head rests, that none finds a pronoun's noun."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal, get_args

import streamlit as st

from vizformer import analysis
from vizformer.analysis import Choice, Kind, kinds, site_name
from vizformer.analysis.heads import measures, pronouns
from vizformer.analysis.heads.pronouns import ReferenceShift, minimal_pair
from vizformer.model import Trace
from vizformer.text import Token
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.frame import sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words import counts, labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _
from vizformer.word_tables import data_of

# What the rows of attention maps are called: a row of a decoder says which token it is there to choose.
#
# "a → cat": the row of "a", which chooses "cat".  Without it rows seem to look at the wrong place: in cross-attention the
# row of "cat" looks at the end of the source, since it chooses what follows "cat".

ARROW = " → "

_SPACES = ("Ġ", "▁")  # as vocabularies write the space before a word


@cached
def choices(subject: Subject) -> tuple[Choice, ...]:
    """What each row of the decoder chooses; empty without a decoder, or a head that predicts."""
    if not model_cache.predicts(subject.model):
        return ()
    return analysis.choices(subject.checkpoint, subject.trace)


def queries(subject: Subject, kind: str) -> list[str]:
    stack = labels.stacks(kind)[0]
    return choosing(labels.texts(subject.trace.tokens[stack]), choices(subject) if stack == "decoder" else ())


def numbered(subject: Subject, kind: str) -> list[str]:
    """The names of the query rows with their positions, for lists in which a token may occur twice."""
    return [f"{index} · {name}" for index, name in enumerate(queries(subject, kind))]


def choosing(texts: Sequence[str], chosen: Sequence[Choice]) -> list[str]:
    """Labels of tokens, each with the token that its row chooses, where that is known."""
    known = [ARROW + choice.next.text for choice in chosen][: len(texts)]
    return [text + then for text, then in zip(texts, [*known, *[""] * (len(texts) - len(known))], strict=True)]


def following(tokens: Sequence[Token], kind: str) -> list[str]:
    """Labels of rows where the text itself says what each is trained to choose: the token after it."""
    texts = labels.texts(tokens)
    if labels.stacks(kind)[0] != "decoder":
        return texts
    return [*(first + ARROW + second for first, second in pairwise(texts)), *texts[-1:]]


def said(subject: Subject, kind: str, query: int) -> str:
    """A sentence about the row that is looked at: what it is there to choose; empty where rows choose nothing.

    Markdown; what was typed is escaped.
    """
    found = choices(subject) if labels.stacks(kind)[0] == "decoder" else ()
    if not 0 <= query < len(found):
        return ""
    token, choice = subject.trace.tokens["decoder"][query], found[query]
    values = {"query": query, "token": plain(token.text), "next": plain(choice.next.text)}
    if choice.own.id == choice.next.id:
        return _("Rows predict the next token: row {query}, after “{token}”, predicts “{next}”.", **values)
    return _(
        "Rows predict the next token: after “{token}”, row {query}, the text continues with “{next}”; the "
        "model itself predicts “{own}”.",
        **values,
        own=plain(choice.own.text),
    )


def caption(subject: Subject, kind: str, query: int) -> None:
    if sentence := said(subject, kind, query):
        st.caption(sentence)


def tokens_with_spaces(subject: Subject, stack: str) -> list[str]:
    """The tokens of a stack, each with the space or the line break that stands before it in the text."""
    tokens = subject.trace.tokens[stack]
    source = subject.text if stack == "encoder" or "encoder" not in subject.trace.tokens else subject.target
    running, end, broken = [], 0, False
    for token in tokens:
        own = source[token.start : token.end]
        before = source[end : token.start] + (own if own.strip() else "") if token.end else ""
        gap = before[: len(before) - len(before.lstrip())]
        if not token.end and token.piece[:1] in _SPACES:  # in a text that the model wrote
            gap = " "
        running.append(("\n" if broken else gap) + token.text)
        end, broken = token.end or end, bool(own) and not own.strip() and "\n" in own  # a token that is a line's end
    return running


# What is measured of heads and said beside their picture: that one rests on a token, that none finds what "it" means.

# Sentences of Multi-head attention in which one word decides whom a pronoun means (see `analysis.heads.pronouns`).

Pronoun = Literal["he", "he_first", "it", "it_noun", "ta_form", "ta_meaning"]

_SENTENCES = data_of(__file__)
PAIRS: dict[Pronoun, tuple[str, ...]] = {kind: tuple(_SENTENCES[kind]) for kind in get_args(Pronoun)}
"""The first word in braces means the first noun in brackets, the second word the second noun.

In "it_noun" are nouns that the translator saw in no sentence of this kind (`assets/prompts/reference.zh-en.txt` has the same
sentences).  In "he" and "ta_form" man and woman come first equally often: a head cannot do well by place.  In "he_first" the
man always comes first, which is the mistake that the lesson shows.
"""


AFFORDABLE = 100_000_000  # parameters of a model that reads two dozen sentences while a reader waits
LONGEST = 512  # tokens of a map that is looked at as a whole
RARE, MOST = 0.05, 0.75  # chance below which it is hardly luck; sentences in which the meant noun has to be found
_WORDS: Mapping[Pronoun, str] = {
    "it": r"\b[Ii]t\b",
    "he": r"\b(?:[Hh]e|[Ss]he)\b",
    "ta_meaning": "它(?!们)",
    "ta_form": "(?<!其)[他她](?!们)",
}
rest = of_trace(measures.resting_head)


@cached
def reference_shift(model: ModelRef, pronoun: Pronoun) -> ReferenceShift:
    # Only what the first stack makes of a text is measured, and an encoder knows nothing of the target.
    def trace(text: str) -> Trace:
        return Subject(model, text, text.split()[0] if model_cache.reads_target(model) else "").trace

    return pronouns.reference_shift(trace, PAIRS[pronoun])


def readable(model: ModelRef) -> tuple[Pronoun, ...]:
    """The pronouns whose sentences the model can read; none where it is too large to read them all."""
    return tuple(pronoun for pronoun in PAIRS if is_readable(model, pronoun))


@cached
def is_readable(model: ModelRef, pronoun: Pronoun) -> bool:
    return model_cache.n_parameters(model) <= AFFORDABLE and all(
        model_cache.reads(model, one.text) for written in PAIRS[pronoun] for one in minimal_pair(written)
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
        if (word := re.search(words, subject.text)) is None or not is_readable(subject.model, kind):
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
    for at, subject in enumerate({one.model: one for one in reversed(subjects)}.values()):
        if (found := pronoun(subject)) is not None:
            with st.container(horizontal=True, vertical_alignment="center", key=f"pronoun.{at}"):
                st.caption(plain(found[1]), width="content")
                there = state.lead(part="reference", dials=f"heads.pronoun:{found[0]}")
                st.page_link(sitemap.HEADS.file, label=_("How this is measured"), query_params=there)
