"""What the rows of attention maps are called: a row of a decoder says which token it is there to choose.

"a → cat": the row of "a", which chooses "cat".  Without it rows seem to look at the wrong place: in cross-attention the
row of "cat" looks at the end of the source, since it chooses what follows "cat".
"""

from collections.abc import Sequence
from itertools import pairwise

import streamlit as st

from vizformer import analysis
from vizformer.analysis import Choice
from vizformer.text import Token
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _

ARROW = " → "


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
