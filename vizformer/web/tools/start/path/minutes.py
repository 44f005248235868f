"""How long the path takes: an estimate from its words, pictures, predictions and questions.

Read are 180 words a minute: adults read 175 to 300 of English prose, 238 on average (Brysbaert 2019, "How many words do we
read per minute?"), and who learns, or reads in a second language, is at the slow end.  300 Chinese characters are as many
words.  The seconds below are assumptions; nobody was timed.
"""

import re
from collections.abc import Iterable
from typing import Any

from vizformer.components.stations import Ask, Station, Turn
from vizformer.web.link.languages import SOURCE
from vizformer.web.words import lesson_words

WORDS, CHARACTERS = 180, 300  # read in a minute
LOOK, CHOOSE, TICK, MOST_TICKS = 8, 12, 3, 8  # seconds: a new picture, a choice, a tick of a dial
WORK, TRY = 30, 45  # seconds: a question of a lesson, one thing to try
_CHINESE = r"[\u3400-\u9fff]"


def counted(texts: Iterable[str]) -> tuple[int, int]:
    """Words and Chinese characters of texts; what is no letter and no number is none."""
    text = " ".join(texts)
    return len(re.findall(r"\S*\w\S*", re.sub(_CHINESE, " ", text))), len(re.findall(_CHINESE, text))


def reading(*texts: str) -> float:
    """Seconds."""
    words, characters = counted(texts)
    return 60 * (words / WORDS + characters / CHARACTERS)


def of_station(station: Station) -> float:
    """Minutes of its pictures, with its question and the question that comes back."""
    seconds = 0.0
    for step in station.steps:
        seconds += reading(step.words) + LOOK
        if isinstance(step, Ask):
            answer = reading(step.options[step.right].because) + CHOOSE
            options = reading(*(option.text for option in step.options))
            seconds += (1 + bool(step.again)) * (options + answer) + reading(step.again)
        if isinstance(step, Turn):
            seconds += TICK * min(len(step.ticks), MOST_TICKS)
    return seconds / 60


def of_part(lesson: str, part: str, code: str) -> float:
    """Minutes of a part of a lesson: its text, what to try, what is often got wrong, and one question."""
    words = lesson_words.parts(lesson, code).get(part) or lesson_words.parts(lesson, SOURCE)[part]
    asked: dict[str, Any] = next(iter(words.get("asks", {}).values()), {})
    tries, wrong = words.get("try", ()), words.get("wrong", ())
    said = [text for text in (asked.get("question"), asked.get("why")) if isinstance(text, str)]
    seconds = reading(words["text"], *tries, *wrong, *said) + LOOK + TRY * len(tries) + WORK * bool(asked)
    return float(seconds) / 60
