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

What several parts say stands before the first of them.  Numbers of lessons are names, "lesson @block" (`frame.numbering`).
What a translation lacks is said in English.
"""

import tomllib
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from vizformer.assets import asset
from vizformer.web.link.languages import SOURCE, plurals
from vizformer.web.words.i18n import language


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
