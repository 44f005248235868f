"""All stations for a sentence, and where each leads deeper."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import streamlit as st

from vizformer.components import stations as component
from vizformer.components.stations import Ask, Deeper, Exercise, Packed, Station, Step, Turn
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import progress
from vizformer.web.frame.sitemap import PATH
from vizformer.web.link import beginnings, state
from vizformer.web.tools.start.path import attention_stations, first_stations, last_stations
from vizformer.web.widgets import lesson, plain_heads, source_language
from vizformer.web.widgets.whole_model.beside import draw_line, leads_to, pressed
from vizformer.web.widgets.whole_model.sentence import Sentence
from vizformer.web.words import lesson_words, minutes
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, language
from vizformer.web.words.lesson_words import notebook
from vizformer.web.words.terms import marked

MADE = (
    first_stations.machine,
    first_stations.tokens,
    first_stations.rows,
    first_stations.places,
    attention_stations.query,
    attention_stations.softmax,
    attention_stations.heads,
    attention_stations.mask,
    first_stations.turned,  # of queries and keys, which are known by now
    last_stations.layer,
    last_stations.cross,
    last_stations.writing,
    last_stations.loss,
)
EXERCISES: Mapping[str, tuple[str, ...]] = {
    "places": ("positions",),
    "softmax": ("softmax",),
    "heads": ("head", "split_join"),
    "layer": ("add_norm", "feedforward", "encoder_layer"),
    "cross": ("cross_attention", "decoder_layer"),
    "writing": ("decoding",),
    "loss": ("loss", "training"),
}
"""The exercises of each station, by their names in the notebook."""
_LINE = "path-model"
LONGEST_TEXT = 200  # characters
_OF_WRITING = ("machine", "mask", "writing", "loss")  # stations of the decoder alone
_CAPTION = 60  # characters of a text that is named
LOOK, CHOOSE, TICK, MOST_TICKS = 8, 12, 3, 8  # seconds: a new picture, a choice, a tick of a dial
_SAID = re.compile(r"## (?P<number>\d+)\. (?P<title>.*)\n\n(?P<text>.*)\n\n```\n(?P<symbols>.*)\n```", re.DOTALL)


def all_stations(about: Sentence) -> tuple[Station, ...]:
    """The stations that this model has, in the reader's language: a model without an encoder does not look at one."""
    others = in_language(about, language())
    made = (make(others.get(make.__name__, about)) for make in MADE)
    return tuple(
        replace(
            one,
            about=_said(others[one.name]) if one.name in others else _pronoun(one.name, about),
            deeper=_second_half(one.name, about),
            steps=_with_terms(one.steps),
            minutes=_minutes(one),
            exercises=of_station(one.name, language(), about.subject.text),
        )
        for one in made
        if one is not None
    )


def _minutes(station: Station) -> float:
    """The minutes that the pictures of a station take, with its question and the repeated question."""
    seconds = 0.0
    for step in station.steps:
        seconds += minutes.reading(step.words) + LOOK
        if isinstance(step, Ask):
            asked = (
                minutes.reading(*(option.text for option in step.options), step.options[step.right].because) + CHOOSE
            )
            seconds += (1 + bool(step.again)) * asked + minutes.reading(step.again)
        if isinstance(step, Turn):
            seconds += TICK * min(len(step.ticks), MOST_TICKS)
    return seconds / 60


def _with_terms(steps: Sequence[Step]) -> Sequence[Step]:
    seen: set[str] = set()
    return [
        step if isinstance(step, Ask) else replace(step, words=marked(step.words, language(), seen=seen))
        for step in steps
    ]


def in_language(about: Sentence, code: str) -> dict[str, Sentence]:
    """What stations are about instead, so that they ask for words of the reader's language: by their names.

    A translator of both directions writes in the language that its reader did not type.  Of a sentence in the reader's own
    language the stations of the decoder are about the model that continues it, and that of cross-attention is about the
    translation of a sentence into it.
    """
    subject, own = about.subject, source_language.written_in(about.subject.text)
    if own is None or not code.startswith(own) or subject.edited or not source_language.reads_both(subject.model):
        return {}
    other = beginnings.in_language("en" if own == "zh" else "zh")
    continued = Sentence(Subject(beginnings.CONTINUED.model, subject.text, ""))
    return {
        **dict.fromkeys(_OF_WRITING, continued),
        "cross": Sentence(Subject(subject.model, other.text, beginnings.in_language(own).text)),
    }


def _said(about: Sentence) -> str:
    """Names the model and the sentence of a station that does not use the reader's own."""
    subject = about.subject
    text = subject.text if len(subject.text) <= _CAPTION else subject.text[:_CAPTION] + "…"
    if about.stack == "decoder":
        return _("Here the model {name} continues “{text}”.", name=subject.title, text=text)
    return _("Here “{text}” is translated to “{target}”.", text=text, target=subject.target)


def _pronoun(station: str, about: Sentence) -> str:
    """A note at the station of the heads that none of them finds the noun of a pronoun; else empty."""
    found = plain_heads.pronoun(about.subject) if station == "heads" else None
    return found[1] if found else ""


def _second_half(station: str, about: Sentence) -> Deeper:
    """The part of a lesson that is the second half of a station."""
    entry, changes = leads_to(station, about)
    place = entry.url, changes["part"]
    return Deeper(lesson_words.say(*place, "title"), minutes.of_part(*place, language()))


@cached
def packed(subject: Subject, code: str) -> Packed:
    """All of it as it is sent, in the language `code`, which is the reader's."""
    return component.pack(all_stations(Sentence(subject)), text=repr(subject))


@st.fragment
@guarded()
def draw_path(subject: Subject) -> None:
    """The component, and what follows from what the reader does in it."""
    content, at = packed(subject, language()), state.view().part
    if at in content.names:
        _stop_at(at)
    else:  # a part of a lesson, from which the reader comes back
        at = progress.station()
    line = st.container()
    gone = pressed(subject, at or content.names[0], key=_LINE)
    if gone in content.names:
        at = gone
        _stop_at(at)
        state.update(part=at)
    told = component.mount(content, at=at, key="path")
    if told is not None:
        at, deeper = told
        _stop_at(at)
        if deeper:
            entry, changes = leads_to(at, Sentence(subject))
            state.update(**changes)
            st.switch_page(entry.file)
        state.update(part=at)
    with line:
        draw_line(subject, at or content.names[0], key=_LINE)


def _stop_at(name: str) -> None:
    """Notes where the reader is; a lesson that is opened next asks for no part of that name."""
    progress.stop_at(name)
    st.session_state[lesson.LAST] = PATH.url


def of_station(name: str, code: str, text: str) -> tuple[Exercise, ...]:
    """The exercises of a station in the language `code`, checked on `text` unless it is too long for a line of code."""
    found = [_exercises(code)[one] for one in EXERCISES.get(name, ())]
    if len(text) > LONGEST_TEXT:
        return tuple(found)
    on = f"text={json.dumps(text, ensure_ascii=False)})"
    return tuple(replace(one, code=re.sub(r'text="[^"]*"\)$', lambda _: on, one.code)) for one in found)


@cache
def _exercises(code: str) -> dict[str, Exercise]:
    cells = json.loads(notebook(code).read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    made = {}
    for said, stub, check in zip(texts, texts[1:], texts[2:], strict=False):
        if (told := _SAID.fullmatch(said)) and (named := re.match(r'vf\.exercise\("(\w+)"', check)):
            written = f"{texts[1]}\n\n\n{stub}\n\n\n{check}"
            made[named[1]] = Exercise(f"{told['number']} · {told['title']}", told["text"], told["symbols"], written)
    return made
