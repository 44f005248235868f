"""The numbers of lessons and parts.  Texts say them as `@block`, the lesson's, and `@block.norm`, that of its part: 7.2."""

import re

from vizformer.web.frame.sitemap import COURSE, Entry
from vizformer.web.link.languages import SOURCE
from vizformer.web.words import lesson_words
from vizformer.web.words.i18n import translate

_NAMED = re.compile(r"@([a-z]+)(?:\.([a-z]+))?")


def number(lesson: str, part: str = "") -> str:
    """The number of a lesson, by its address, or of a part of it."""
    of_lesson = str([entry.url for entry in COURSE].index(lesson) + 1)
    return f"{of_lesson}.{[*lesson_words.parts(lesson, SOURCE)].index(part) + 1}" if part else of_lesson


def numbered(text: str) -> str:
    """A text with the numbers in the place of the names."""
    return _NAMED.sub(lambda found: number(found[1], found[2] or ""), text)


def titled(lesson: Entry) -> str:
    """A lesson's number and title, in the reader's language."""
    return f"{number(lesson.url)} · {translate(lesson.title)}"
