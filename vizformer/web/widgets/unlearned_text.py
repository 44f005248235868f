"""A text that a bundled model has not learned: said from a measurement, with the nearest sentence that works."""

import json
from functools import cache

import streamlit as st

from vizformer.analysis.attribution import learned_texts
from vizformer.analysis.attribution.learned_texts import Bounds, Familiarity, Sign
from vizformer.assets import asset
from vizformer.text.scripts import script
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import asked_of
from vizformer.web.link import state
from vizformer.web.link.beginnings import in_language
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, language

measured = asked_of("subject", lambda one: (one.checkpoint, one.trace, one.text), learned_texts.familiarity, 3)


@cache
def _bounds(name: str) -> dict[str, Bounds]:
    """The familiarity bounds of a bundled model, by script; empty where they were not measured."""
    file = asset("models", name, "familiar.json")
    return learned_texts.read_bounds(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


@guarded()
def notice(subject: Subject) -> None:
    """Says that the model has hardly learned such text, by what, and the way out; nothing of models from elsewhere."""
    known = _bounds(subject.model.name) if subject.model.source == "bundled" else {}
    if not known or subject.edited:
        return
    bounds = learned_texts.bounds_for(subject.text, known)
    found = measured(subject)
    sign = learned_texts.strange(found, bounds, written=not subject.target.strip())
    if sign is None:
        return
    offered = known.get(script(subject.text)) or known[script(in_language(language()[:2]).text)]
    sentence = learned_texts.nearest(subject.text, offered.sentences)
    with st.container(horizontal=True, key="other-language"):
        st.info(said(sign, found, bounds))
        label = _("Use the sentence “{text}”", text=sentence)
        st.button(label, key="unlearned.use", on_click=_use, args=(sentence,))


def _use(sentence: str) -> None:
    state.update(text=sentence, target="", edits="")


def said(sign: Sign, found: Familiarity, bounds: Bounds) -> str:
    """What was measured, and what held-out texts have."""
    share = labels.percent(bounds.share)
    if sign == "unknown":
        return _(
            "This model has not learned texts like this, so its result means little: {value} of the tokens are "
            "unknown to the vocabulary; {share} of held-out texts have at most {most}.",
            value=labels.percent(found.unknown),
            share=share,
            most=labels.percent(bounds.unknown),
        )
    if sign == "pieces":
        return _(
            "This model has not learned texts like this, so its result means little: the tokenizer makes {value} "
            "tokens a character; {share} of held-out texts have at most {most}.",
            value=f"{found.pieces:.2f}",
            share=share,
            most=f"{bounds.pieces:.2f}",
        )
    return _(
        "This model has not learned texts like this, so its result means little: the mean log-probability of "
        "a token is {value}; the median of held-out texts is {typical}, and {share} of them are above "
        "{least}.",
        value=f"{found.log_prob:.2f}".replace("-", "−"),
        typical=f"{bounds.typical:.2f}".replace("-", "−"),
        share=share,
        least=f"{bounds.log_prob:.2f}".replace("-", "−"),
    )
