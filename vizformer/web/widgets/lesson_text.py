"""What stands beside the laboratory of a part of a lesson, as Markdown (see `words.lesson_words`)."""

from dataclasses import dataclass
from functools import cache

from vizformer.web.frame.numbering import numbered
from vizformer.web.link.languages import SOURCE
from vizformer.web.words import lesson_words
from vizformer.web.words.i18n import language
from vizformer.web.words.terms import marked


@dataclass(frozen=True)
class Prose:
    """The text of a part, its terms marked (`words.terms`), what there is to try, and what is often got wrong."""

    text: str = ""
    tries: tuple[str, ...] = ()
    wrongs: tuple[str, ...] = ()


def prose(lesson: str, part: str) -> Prose:
    """The words of a part in the reader's language; empty where there are none."""
    return lesson_prose(lesson, language()).get(part, Prose())


@cache
def lesson_prose(lesson: str, code: str) -> dict[str, Prose]:
    """Part -> words of a lesson in the language `code`, in English where there is no translation."""
    tables = lesson_words.parts(lesson, code) or lesson_words.parts(lesson, SOURCE)
    return {
        part: Prose(
            marked(numbered(words["text"].strip()), code, lesson),
            *(tuple(map(numbered, words.get(key, ()))) for key in ("try", "wrong")),
        )
        for part, words in tables.items()
        if "text" in words  # (a station of the path has none)
    }
