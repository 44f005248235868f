"""Which token of the sentence the laboratories of the lesson Tokens and embeddings look at."""

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import lesson
from vizformer.web.words import labels


def choose_token(subject: Subject, label: str) -> int:
    """A position of the sentence."""
    tokens = subject.tokens
    named = labels.numbered(tokens)
    places = range(len(tokens))
    # To begin with: the rarest word, which was learned last and so has the largest id.
    first = max(places, key=lambda i: (not tokens[i].special, tokens[i].text[:1].isalnum(), tokens[i].id))
    st.selectbox(label, places, format_func=named.__getitem__, **lesson.setting("tokens.at", first, places))
    return lesson.value("tokens.at", first, places)
