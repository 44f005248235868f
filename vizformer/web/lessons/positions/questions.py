"""The questions of the lesson Positions."""

from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions import (
    clock,
    computations,
    distance,
    order,
    past_trained_length,
    place_function,
    schemes,
    waves,
)
from vizformer.web.widgets.questions import Choice, Registry

WIDTH, STEPS = 64, 3  # of the code of the rotation; positions led on


def _moved(subject: Subject) -> Choice | None:
    last = len(computations.words_only(subject)[: computations.MOST]) - 1
    return place_function.moved_question(subject, last, 0)


QUESTIONS: Registry = {
    "turn": lambda subject: waves.turn_question(),
    "rotation": lambda subject: clock.rotation_question(WIDTH, STEPS),
    "product": lambda subject: distance.product_question(),
    "shuffle": order.shuffle_question,
    "moved": _moved,
    "penalty": schemes.penalty_question,
    "longer": lambda subject: past_trained_length.longer_question(subject.text),
}
