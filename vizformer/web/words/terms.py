"""The terms of the glossary, with symbol, shape and a sentence, in every language (assets/lessons/glossary.toml)."""

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from vizformer.assets import asset
from vizformer.web.link.languages import LANGUAGES, SOURCE


@dataclass(frozen=True)
class Term:
    """An entry: its name and sentence (Markdown) in one language, its symbol and shape (LaTeX), where it is taught.

    `part` is the part of the first of these lessons in which it is seen; empty where none shows it at once. `also` are
    other names by which it is looked for, in any language.
    """

    key: str
    name: str
    text: str
    symbol: str
    shape: str
    lessons: tuple[str, ...]
    part: str = ""
    also: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """Symbol and shape as Markdown, e.g. "$x \\in \\mathbb{R}^{n}$"."""
        within = rf"{self.symbol} \in \mathbb{{R}}^{{{self.shape}}}" if self.shape else self.symbol
        return f"${within}$" if within else ""


@cache
def _file() -> dict[str, dict[str, Any]]:
    with asset("lessons", "glossary.toml").open("rb") as file:
        return tomllib.load(file)


@cache
def read_terms(code: str) -> dict[str, Term]:
    """Key -> term in the language `code`, in alphabetical order of the English names."""
    found = {}
    for key, entry in sorted(_file().items(), key=lambda item: item[1][SOURCE]["name"].lower()):
        words = entry.get(code, entry[SOURCE])
        found[key] = Term(
            key,
            words["name"],
            words["text"],
            entry.get("symbol", ""),
            entry.get("shape", ""),
            tuple(entry["lessons"]),
            entry.get("part", ""),
            tuple(entry.get("also", ())),
        )
    return found


def matches(key: str, wanted: str) -> bool:
    """Whether a term has `wanted` in one of its names, in any language."""
    low = wanted.strip().lower()
    found = [read_terms(code)[key] for code in LANGUAGES]
    return any(low in name.lower() for term in found for name in (term.name, *term.also))


@dataclass(frozen=True)
class Notation:
    """A quantity in one language, how this app writes it and how course texts do (Markdown), and what to watch for."""

    name: str
    here: str
    elsewhere: str
    note: str


@cache
def read_notations(code: str) -> tuple[Notation, ...]:
    """What texts write in several ways, in the language `code` (assets/lessons/notations.toml)."""
    with asset("lessons", "notations.toml").open("rb") as file:
        listed = tomllib.load(file)["notation"]
    return tuple(
        Notation(words["name"], entry["here"], entry["elsewhere"], words["note"])
        for entry in listed
        for words in (entry.get(code, entry[SOURCE]),)
    )
