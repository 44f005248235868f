"""The words of a lesson: assets/lessons/<language>/<lesson>.toml, with a table for each part.

    [leak]                                  # a part, named as in links; the parts stand in their order
    title = "Leakage"                       # what a text is about, is said to translators in a comment before it
    text = '''Markdown, with $formulas$'''  # what stands beside the laboratory
    try = ['''One thing to try.''']
    wrong = ['''A misconception, and what is right.''', '''Another one.''']
    moved.some = "Moved: {moved} of {n} outputs."
    more = ["{n} more token", "{n} more tokens"]  # the forms for numbers {n}, as many as the language has
    moved.all = "All moved."                # several wordings, of which the value `form` chooses one
    stack = { label = "Stack", encoder = "Encoder", decoder = "Decoder" }  # a control, and its options
    [leak.asks.leak]                        # a question, named as in links
    question = "How many outputs move?"
    why = "Said with the answer."
    again = "The question in other words, for whoever missed it."
    wrong.all = "{answered} is the whole map."  # the misconception of a wrong choice, or of a number

What several parts say stands before the first of them.  Numbers of lessons are names, "lesson @block" (`frame.sitemap`).
What a translation lacks is said in English.
"""

import re
import tomllib
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from vizformer.assets import asset
from vizformer.web.link.languages import SOURCE, plurals
from vizformer.web.words.i18n import language

WORDS, CHARACTERS = 180, 300  # of captions, read in a minute
STUDIED = 2 / 3  # of that rate: the text of a lesson
WORK = 60  # seconds: a question of a lesson, or one thing to try
_CHINESE = r"[\u3400-\u9fff]"


@cache
def tables(lesson: str, code: str) -> dict[str, Any]:
    """All words of a lesson in one language; empty where it has none."""
    path = asset("lessons", code, f"{lesson}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def parts(lesson: str, code: str) -> dict[str, dict[str, Any]]:
    return {name: words for name, words in tables(lesson, code).items() if "title" in words}


@lru_cache(maxsize=4096)
def _found(lesson: str, name: str, code: str) -> tuple[Any, str]:
    """A text of a lesson by its path, "part.name" or "name", and the language that it is in."""
    found: Any = tables(lesson, code)
    for step in name.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    if found is None and code != SOURCE:
        return _found(lesson, name, SOURCE)
    return found, code


def say(lesson: str, part: str, name: str, numbered: Callable[[str], str] = str, /, **values: object) -> str:
    """A text of a part, or of all parts, in the reader's language, with its placeholders filled.

    Before that, `numbered` puts the numbers of lessons into it.

    Raises:
        KeyError: the lesson has no such text.
    """
    spoken = language()
    found, code = _found(lesson, f"{part}.{name}", spoken)
    if found is None:
        found, code = _found(lesson, name, spoken)
    if isinstance(found, dict):
        found = found.get(values.get("form"))
    if isinstance(found, list):
        found = found[int(plurals(code)[1](int(str(values["n"]))))]
    if not isinstance(found, str):
        raise KeyError(f"{lesson}: {part}.{name}")
    found = numbered(found)
    return found.format(**values) if values else found


def asked(lesson: str) -> tuple[str, ...]:
    return tuple(name for words in parts(lesson, SOURCE).values() for name in words.get("asks", ()))


def notebook(code: str) -> Path:
    """The file in the language `code`; in English where there is none."""
    path = asset("exercises", code, "exercises.ipynb")
    return path if path.is_file() else asset("exercises", SOURCE, "exercises.ipynb")


# How long reading takes: an estimate from words, questions and things to try, by which the path and the lessons say
# theirs.
#
# Captions are read at 180 words a minute: adults read 175 to 300 of English prose, 238 on average (Brysbaert 2019,
# "How many words do we read per minute?"), and who learns, or reads in a second language, is at the slow end. The
# text of a lesson has formulas in it and numbers beside it: two thirds of that. 300 Chinese characters are as many
# words. All but Brysbaert are assumptions; nobody was timed.
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
    words = parts(lesson, code).get(part) or parts(lesson, SOURCE)[part]
    asks: list[dict[str, Any]] = [*words.get("asks", {}).values()]
    tries = words.get("try", ())
    said = [text for ask in asks for text in (ask.get("question"), ask.get("why")) if isinstance(text, str)]
    read = reading(words["text"], *tries, *words.get("wrong", ()), *said) / STUDIED
    return (read + WORK * (len(tries) + len(asks))) / 60


def of_lesson(lesson: str, code: str) -> int:
    """Minutes of all its parts, to the nearest five."""
    return 5 * round(sum(of_part(lesson, part, code) for part in parts(lesson, SOURCE)) / 5)
