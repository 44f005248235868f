"""An exercise: `is_causal` with a KV cache."""

import streamlit as st

from vizformer.components import matrix
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.errors import computations, exercise, place
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _


@laboratory
def cache(subject: Subject) -> None:
    """z of the last token, from one key and from all of them."""
    kind = place.writes(subject)
    layer, head = place.head(subject, kind)
    tokens = subject.trace.tokens[kind]
    found = exercise.find(cache_question(), computations.head_given(subject, kind, layer, head))
    if not found:
        return
    place.boxes(subject, kind)
    contrast = computations.cache(subject, kind, layer, head)
    exercise.proof(contrast)
    exercise.side_by_side(contrast, rows=[tokens[-1].text])
    value = computations.first_value(subject, kind, layer, head)
    st.html(matrix.to_html(value, caption=_("v of the first token"), digits=3))
    if bool((abs(contrast.wrong[0] - value) < 1e-6).all()):
        st.caption(
            _(
                "The wrong z is the first token's value, number by number: “{token}” looks at “{first}” with weight 1.",
                token=plain(tokens[-1].text),
                first=plain(tokens[0].text),
            )
        )


def cache_question() -> lesson.Choice:
    """The exercise: which line is wrong?"""
    return exercise.question(
        "cache",
        _(
            "One new token, and the keys and values of all tokens before it in a cache. Without the cache the same "
            "attention gives another z. Which line is wrong?"
        ),
        _(
            "is_causal lays the mask into the top left corner: query 0 sees key 0. Here query 0 is the newest token, and "
            "of all keys it sees the first one alone. The new token may see everything in the cache, so it needs no mask; "
            "several new tokens need one that is aligned to the end."
        ),
    )
