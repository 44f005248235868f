"""One part of a lesson in one file: its numbers, its drawing and its questions; its words are beside the lesson's prose.

    lab = Laboratory("masks", "leak")            # of the lesson masks; words: [leak] in assets/lessons/*/masks.toml

    @lab.draws
    def draw_leakage(subject: Subject) -> None:
        with controls():
            stack = lab.buttons("stack", stacks)  # in links: masks.stack; labels: stack.label, stack.encoder, ...
        chart.show(...)
        lab.note("moved", moved=3, n=5)
        lesson.ask(leak(subject))

    @lab.asks("leak")
    def leak(subject: Subject) -> Choice:         # counted, printed on worksheets, asked to classes as masks/leak
        return Choice(choices=choices, answer=1, **lab.asked("leak", subject, n=5))

`lessons/masks/__init__` lists the laboratories of its lesson.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar, cast

import streamlit as st

from vizformer.analysis.other_programs.copied_errors import EXERCISES
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame.sitemap import numbered
from vizformer.web.widgets import lesson
from vizformer.web.widgets.choices import line
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.misconceptions import Mistake
from vizformer.web.widgets.questions import Choice, Question, Registry
from vizformer.web.widgets.slides import noted
from vizformer.web.words import lesson_words
from vizformer.web.words.i18n import language, quoted

controls = line  # the settings of a laboratory, above its picture
Option = TypeVar("Option", bound=str | int | float)
Number = TypeVar("Number", int, float)
Ask = TypeVar("Ask", bound=Callable[..., Question | None])


def aside(said: str) -> None:
    """Shows a sentence, small, where there is one."""
    if said:
        st.caption(said)


def questions(parts: Sequence["Laboratory"]) -> Registry:
    """The questions of a lesson, in the order of its parts."""
    return {name: question for part in parts for name, question in part.questions.items()}


class Laboratory:
    """A part of a lesson: what draws it, a fragment, and what makes its questions, by their names."""

    def __init__(self, lesson: str, key: str, *, wide: bool = False) -> None:
        self.lesson, self.key, self.wide = lesson, key, wide
        self.draw: Callable[[Subject], None]
        self.questions: dict[str, Callable[[Subject], Question | None]] = {}

    @property
    def name(self) -> str:
        return self.text("title")

    def draws(self, draw: Callable[[Subject], None]) -> Callable[[Subject], None]:
        """Has this function draw the laboratory."""
        self.draw = laboratory(draw)
        return self.draw

    def asks(self, name: str) -> Callable[[Ask], Ask]:
        """Has a function make the question `name` of a sentence and, where nothing else is given, what is set at first."""

        def kept(question: Ask) -> Ask:
            self.questions[name] = question
            return question

        return kept

    def asked(self, name: str, /, *about: object, wrong: Any = (), **values: object) -> dict[str, Any]:
        """What a question consists of besides its answer: names, words, what it is about, and its misconceptions.

        wrong: misconceptions by their names in the words, with the number or the index of the choice of each (of two
            with one number the first counts); or what `mistake` makes, in a list.
        """
        said = {key: self.text(f"asks.{name}.{key}", **values) for key in ("question", "why", "again")}
        if isinstance(wrong, Mapping):
            named = {given: one for one, given in [*wrong.items()][::-1]}
            wrong = [self.mistake(name, one, given, **values) for given, one in [*named.items()][::-1]]
        return {"lesson": self.lesson, "name": name, "about": " ".join(map(str, about)), "mistakes": wrong, **said}

    def mistake(self, name: str, misconception: str, given: float, /, **values: object) -> Mistake:
        """A misconception of the question `name`; in its words, {answered} is the answer that it gives."""
        path = f"asks.{name}.wrong.{misconception}"
        return Mistake(given, lambda answered: self.text(path, **{**values, "answered": answered}), misconception)

    def choice(self, name: str, names: Sequence[str], right: str, /, *about: object, **values: object) -> Choice:
        """A question whose choices, of which one is right, are in its words by these names, as are its misconceptions."""
        choices = [self.text(f"asks.{name}.choices.{one}", **values) for one in names]
        wrong = {one: index for index, one in enumerate(names) if one != right}
        return Choice(choices=choices, answer=names.index(right), **self.asked(name, *about, wrong=wrong, **values))

    def options(
        self,
        name: str,
        right: Any,
        wrong: Mapping[str, Any],
        /,
        *about: object,
        written: Callable[[Any], str] = str,
        **values: object,
    ) -> Choice:
        """A question whose choices are the right value and those of misconceptions, each once, in order."""
        named = {value: key for key, value in [*wrong.items()][::-1] if value != right}
        ordered = sorted({right, *named})
        mistakes = {named[value]: index for index, value in enumerate(ordered) if value != right}
        said = self.asked(name, *about, wrong=mistakes, **values)
        return Choice(choices=[written(value) for value in ordered], answer=ordered.index(right), **said)

    # --- words ---

    def text(self, name: str, /, **values: object) -> str:
        return lesson_words.say(self.lesson, self.key, name, numbered, **values)

    def texts(self, name: str, keys: Sequence[Any]) -> dict[Any, str]:
        return {key: self.text(f"{name}.{key}") for key in keys}

    def columns(self, *names: str, **values: object) -> list[str]:
        """The headings of a table, from its texts `columns`."""
        return [self.text(f"columns.{name}", **values) for name in names]

    def say(self, name: str, /, **values: object) -> None:
        """Shows a text as it is."""
        st.text(self.text(name, **values))

    def note(self, name: str, /, **values: object) -> None:
        """Shows a text that may have Markdown, its terms marked, small; what its values say is shown as it stands."""
        given = {key: value if key == "form" else quoted(value) for key, value in values.items()}
        st.caption(
            lesson_words.say(
                self.lesson, self.key, name, lambda text: noted(text, self.lesson, self.key, language()), **given
            )
        )

    # --- controls, which stand in the link under "lesson.name" ---

    def setting(self, name: str, default: Any, options: Collection[Any] | None = None) -> dict[str, Any]:
        """The arguments that bind another widget to the setting `name`."""
        return lesson.setting(f"{self.lesson}.{name}", default, options)

    def buttons(
        self, name: str, options: Sequence[Option] | Mapping[Option, str], default: Option | None = None, **more: Any
    ) -> Option:
        """One of a few, whose names are in the words or come along; of one alone nothing is drawn."""
        names = options if isinstance(options, Mapping) else self.texts(name, options)
        if len(names) == 1:
            (only,) = names
            return cast("Option", only)
        kept = self.setting(name, next(iter(names)) if default is None else default, names)
        label = self.text(f"{name}.label")
        chosen: Option = st.segmented_control(
            label, list(names), format_func=names.__getitem__, required=True, **kept, **more
        )
        return chosen

    def box(self, name: str, names: Mapping[Option, str] | Sequence[str], default: Option, **more: Any) -> Option:
        """One of a list whose names come from the sentence; of a mere list of names, the number of one."""
        called: Mapping[Any, str] = names if isinstance(names, Mapping) else dict(enumerate(names))
        kept = self.setting(name, default, list(called))
        chosen: Option = st.selectbox(self.text(name), list(called), format_func=called.__getitem__, **kept, **more)
        return chosen

    def slider(self, name: str, low: Number, high: Number, default: Number, step: Number | int = 1) -> Number:
        options = [round(low + step * i, 9) for i in range(round((high - low) / step) + 1)]  # as links write them: 0.3
        chosen: Number = st.slider(self.text(name), low, high, step=step, **self.setting(name, default, options))
        return chosen

    def steps(
        self, name: str, options: Sequence[Number], default: Number, written: Callable[[Number], str] = "{:g}".format
    ) -> Number:
        """One of several numbers that lie unevenly."""
        kept = self.setting(name, default, options)
        chosen: Number = st.select_slider(self.text(name), options, format_func=written, **kept)
        return chosen

    def toggle(self, name: str, default: bool = False, **values: object) -> bool:
        """Yes or no; `values` are for the placeholders of its text."""
        chosen: bool = st.toggle(self.text(name, **values), **self.setting(name, default))
        return chosen


def wrong_line(lab: Laboratory, program: str, name: str = "line") -> Choice:
    """The lines are the choices; the words of the question `name` say of each right one why it is right."""
    exercise = EXERCISES[program]
    wrong = {f"line{index + 1}": index for index in range(len(exercise.lines)) if index != exercise.wrong}
    said = lab.asked(name, wrong=wrong, right=exercise.right.strip(), error=exercise.error)
    return Choice(choices=exercise.lines, answer=exercise.wrong, code=True, **said)
