"""The words of a lesson: Markdown per language in assets/lessons/<language>/<lesson>.md.

# waves                      a part of the lesson, named as in its page
Text, with $formulas$ ...
## try                       one thing to try
## wrong                     a misconception, and what is right
## wrong                     (there may be several)

or, where its laboratories are `widgets.lab`, in <lesson>.toml (see `words.lesson_words`).
"""

import re
from dataclasses import dataclass
from functools import cache

from vizformer.assets import asset
from vizformer.web.link.languages import SOURCE
from vizformer.web.words import lesson_words
from vizformer.web.words.i18n import language

_HEADING = re.compile(r"^(#{1,2}) +([a-z]+) *$", re.MULTILINE)


@dataclass(frozen=True)
class Prose:
    """What stands beside the laboratory of one part, as Markdown."""

    text: str = ""
    tries: tuple[str, ...] = ()
    wrongs: tuple[str, ...] = ()


def prose(lesson: str, part: str) -> Prose:
    """The words of a part in the reader's language; empty where there are none."""
    return lesson_prose(lesson, language()).get(part, Prose())


@cache
def lesson_prose(lesson: str, code: str) -> dict[str, Prose]:
    """Part -> words of a lesson in the language `code`, in English where there is no translation."""
    if tables := lesson_words.parts(lesson, code):
        return {
            part: Prose(of["text"].strip(), *(tuple(of.get(key, ())) for key in ("try", "wrong")))
            for part, of in tables.items()
        }
    path = asset("lessons", code, f"{lesson}.md")
    if not path.is_file():
        return lesson_prose(lesson, SOURCE) if code != SOURCE else {}
    pieces = _HEADING.split(path.read_text(encoding="utf-8"))
    found: dict[str, dict[str, list[str]]] = {}
    part = ""
    for level, name, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        if level == "#":
            part, name = name, "text"
        found.setdefault(part, {}).setdefault(name, []).append(text.strip())
    return {
        name: Prose("\n\n".join(of.get("text", ())), tuple(of.get("try", ())), tuple(of.get("wrong", ())))
        for name, of in found.items()
    }
