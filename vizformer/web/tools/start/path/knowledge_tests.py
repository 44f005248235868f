"""The two forms of the test before and after the path: fifteen concepts, a question each in both."""

import random
from typing import Literal

from vizformer.components.stations import TestQuestion, Tests
from vizformer.web.link.languages import SOURCE
from vizformer.web.words import lesson_words

_CHOICES = ("right", "first", "second", "third")
_FORMS: tuple[Literal["a", "b"], ...] = ("a", "b")


def forms() -> Tests:
    """Both forms in the reader's language, their options in an order that is the same for everybody."""
    concepts = lesson_words.parts("path_tests", SOURCE)
    return {form: [_question(concept, form) for concept in concepts] for form in _FORMS}


def _question(concept: str, form: str) -> TestQuestion:
    def say(name: str) -> str:
        return lesson_words.say("path_tests", concept, name)

    order = list(_CHOICES)
    random.Random(f"{concept} {form}").shuffle(order)
    options = [say(f"{form}.{choice}") for choice in order]
    return TestQuestion(say("title"), say(f"{form}.question"), options, order.index("right"), say("why"))
