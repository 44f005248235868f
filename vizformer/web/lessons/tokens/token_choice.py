"""Which token of the sentence the laboratories of the lesson Tokens and embeddings look at."""

from collections.abc import Sequence

import streamlit as st

from vizformer.text import Token
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import lesson
from vizformer.web.words import labels


def choose_token(subject: Subject, label: str) -> int:
    """A position of the sentence."""
    tokens = subject.tokens
    named = labels.numbered(tokens)
    places = range(len(tokens))
    first = tokens.index(rarest(tokens)[0])  # to begin with
    st.selectbox(label, places, format_func=named.__getitem__, **lesson.setting("tokens.at", first, places))
    return lesson.value("tokens.at", first, places)


def rarest(tokens: Sequence[Token]) -> list[Token]:
    """Words first, those that were learned last before the others: they have the largest ids."""
    return sorted(tokens, key=lambda token: (not token.special, token.text[:1].isalnum(), token.id), reverse=True)
