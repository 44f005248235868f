"""What the laboratories share: the text that the model writes, and what stands in its place where it writes none."""

import streamlit as st

from vizformer.generation import Candidates, leading_candidates
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject, written
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.lab import Laboratory

MOST_NEW = 12  # tokens that the model writes here: many texts at once, and a class of readers


@cached
def greedy(subject: Subject) -> Candidates:
    """What each token of the greedy text is chosen from; the page's own translation is that text, written already."""
    if subject.writes_its_target:
        return written(subject).first(MOST_NEW)
    return leading_candidates(subject.checkpoint.stream(subject.text, max_new=MOST_NEW))


def writes(subject: Subject) -> bool:
    return model_suggestions.writes(subject.model)


def say_unless_writes(lab: Laboratory, subject: Subject) -> bool:
    """Whether the model writes; where it does not, says why and offers one that does."""
    if not writes(subject):
        st.info(lab.text("silent", form="encoder" if subject.config.architecture == "encoder-only" else "headless"))
        model_suggestions.offer(model_suggestions.writes, "decoding")
    return writes(subject)
