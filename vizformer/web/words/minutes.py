"""How long reading takes: an estimate from words, questions and things to try, by which the path and the lessons say theirs.

Captions are read at 180 words a minute: adults read 175 to 300 of English prose, 238 on average (Brysbaert 2019, "How many
words do we read per minute?"), and who learns, or reads in a second language, is at the slow end.  The text of a lesson has
formulas in it and numbers beside it: two thirds of that.  300 Chinese characters are as many words.  All but Brysbaert are
assumptions; nobody was timed.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from vizformer.web.link.languages import SOURCE
from vizformer.web.words import lesson_words

WORDS, CHARACTERS = 180, 300  # of captions, read in a minute
STUDIED = 2 / 3  # of that rate: the text of a lesson
WORK = 60  # seconds: a question of a lesson, or one thing to try
_CHINESE = r"[\u3400-\u9fff]"


def counted(texts: Iterable[str]) -> tuple[int, int]:
    """Words and Chinese characters of texts; what is no letter and no number is none."""
    text = " ".join(texts)
    return len(re.findall(r"\S*\w\S*", re.sub(_CHINESE, " ", text))), len(re.findall(_CHINESE, text))


@lru_cache(maxsize=1024)  # every run of a lesson asks for all of its texts
def reading(*texts: str) -> float:
    """The seconds that it takes to read some texts."""
    words, characters = counted(texts)
    return 60 * (words / WORDS + characters / CHARACTERS)


def of_part(lesson: str, part: str, code: str) -> float:
    """Minutes of a part of a lesson: its text, what to try, what is often got wrong, and all its questions."""
    words = lesson_words.parts(lesson, code).get(part) or lesson_words.parts(lesson, SOURCE)[part]
    asks: list[dict[str, Any]] = [*words.get("asks", {}).values()]
    tries = words.get("try", ())
    said = [text for ask in asks for text in (ask.get("question"), ask.get("why")) if isinstance(text, str)]
    read = reading(words["text"], *tries, *words.get("wrong", ()), *said) / STUDIED
    return (read + WORK * (len(tries) + len(asks))) / 60


def of_lesson(lesson: str, code: str) -> int:
    """Minutes of all its parts, to the nearest five."""
    return 5 * round(sum(of_part(lesson, part, code) for part in lesson_words.parts(lesson, SOURCE)) / 5)
