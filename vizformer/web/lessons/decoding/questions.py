"""The questions of the lesson Writing a text: those about what a model writes are asked where it writes."""

from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.decoding import cache, computations, free_running, shift, stopping, ways
from vizformer.web.widgets.model_suggestions import writes
from vizformer.web.widgets.questions import CellChoice, Choice, Number, Registry


def _shift(subject: Subject) -> Choice | None:
    return shift.shift_question(subject) if writes(subject.model) and computations.forced_rows(subject) else None


def _answer(subject: Subject) -> CellChoice | None:
    return shift.answer_question(subject) if writes(subject.model) else None


def _forcing(subject: Subject) -> Choice | None:
    if not writes(subject.model):
        return None
    last = len(computations.right_rows(subject)) - 1
    step = min(1, last)
    return free_running.forcing_question(step, last - step)


def _ratio(subject: Subject) -> Number | None:
    return ways.ratio_question(subject, computations.first_token(subject, 1.0)) if writes(subject.model) else None


def _temperature(subject: Subject) -> Choice | None:
    if not writes(subject.model):
        return None
    token, __, warmed = computations.first_token(subject, 1.0)[0]
    return ways.temperature_question(token.text, warmed)


QUESTIONS: Registry = {
    "shift": _shift,
    "answer": _answer,
    "forcing": _forcing,
    "ratio": _ratio,
    "temperature": _temperature,
    "end": lambda subject: stopping.end_question(),
    "cube": lambda subject: cache.cube_question(),
}
