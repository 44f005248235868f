"""The terms of the glossary, with symbol, shape and a sentence, in every language (assets/lessons/glossary.toml)."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from vizformer.assets import asset
from vizformer.web.link.languages import LANGUAGES, SOURCE


@dataclass(frozen=True)
class Term:
    """An entry: its name and sentence (Markdown) in one language, its symbol and shape (LaTeX), where it is taught.

    `part` is the part of the first of these lessons in which it is seen; empty where none shows it at once. `also` are
    other names by which it is looked for, in any language.  A name that is `everyday` English or Chinese as well ("value")
    is taken for the term only in the lessons that teach it.
    """

    key: str
    name: str
    text: str
    symbol: str
    shape: str
    lessons: tuple[str, ...]
    part: str = ""
    also: tuple[str, ...] = ()
    everyday: bool = False

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
            entry.get("everyday", False),
        )
    return found


def matches(key: str, wanted: str) -> bool:
    """Whether a term has `wanted` in one of its names, in any language."""
    low = wanted.strip().lower()
    found = [read_terms(code)[key] for code in LANGUAGES]
    return any(low in name.lower() for term in found for name in (term.name, *term.also))


MOST = 3  # terms that are marked in a paragraph
_ADDRESS = "#term-"
# Formulas, code, links, tags, what somebody typed or says, places for values, headings and rows of tables.
_AS_IT_STANDS = (
    r"\$\$.*?\$\$|\$[^$]*\$|```.*?```|`[^`]*`|!?\[[^\]]*\]\([^)]*\)|<[^>]*>|“[^”]*”|\"[^\"]*\"|\{[^}]*\}|^[#|][^\n]*"
)


@cache
def _written(code: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """What finds the names of terms in a text; their keys by the names in small letters.

    They are in bold or not; those of one Han character, which is part of too many words, in bold alone.
    """
    keys: dict[str, str] = {}
    for key, term in read_terms(code).items():
        for name in (term.name, *term.also):
            keys |= {form.lower(): key for form in _forms(name) if form.lower() not in keys}
    names = "|".join(re.escape(name) for name in sorted(keys, key=len, reverse=True) if len(name) > 1)
    names += rf"|(?<=\*\*)[{''.join(name for name in keys if len(name) == 1)}](?=\*\*)"
    written = rf"(?<![A-Za-z\d*-])(?P<stars>\*{{0,2}})(?P<name>{names})(?P=stars)(?![A-Za-z\d*-])"
    return re.compile(f"{_AS_IT_STANDS}|{written}", re.IGNORECASE | re.DOTALL | re.MULTILINE), keys


def _forms(name: str) -> Iterator[str]:
    """How a name is written: without what stands in brackets behind it, the abbreviation there, and their plurals."""
    base, __, behind = re.sub(r"[（(]", "(", name).rstrip(")）").partition("(")
    for form in (base.strip(), behind if behind.isalpha() and behind.isascii() and not behind.islower() else ""):
        if form:
            yield form
            if form.isascii():
                yield re.sub(r"(?<=[^aeou])y$", "ie", form) + "s"


def marked(text: str, code: str, lesson: str = "", seen: set[str] | None = None) -> str:
    """Markdown in which a term of the glossary leads to "#term-<key>" where it stands for the first time.

    At most `MOST` in a paragraph, those with the longest names; none in formulas, code, links, quotations and headings.
    assets/terms.js says the sentence of a term to whoever points at it.

    Args:
        text: Of ours, without values; {places} for them may be in it.
        code: Its language.
        lesson: The one it is from, if any.
        seen: The keys of terms that texts before it on the page had; those of this one are put into it.
    """
    pattern, keys = _written(code)
    terms, seen, paragraphs = read_terms(code), set() if seen is None else seen, []
    for paragraph in text.split("\n\n"):
        first: dict[str, re.Match[str]] = {}
        for found in pattern.finditer(paragraph):
            key = keys[found["name"].lower()] if found["name"] else ""
            if key and key not in seen and (lesson in terms[key].lessons or not terms[key].everyday):
                first.setdefault(key, found)
        chosen = sorted(first, key=lambda key: -len(first[key]["name"]))[:MOST]
        seen.update(chosen)
        for key in sorted(chosen, key=lambda key: -first[key].start()):
            start, end = first[key].span()
            paragraph = f"{paragraph[:start]}[{paragraph[start:end]}]({_ADDRESS}{key}){paragraph[end:]}"
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def unmarked(text: str) -> str:
    """Removes the links that `marked` has put around terms."""
    return re.sub(rf"\[([^\[\]]*)\]\({_ADDRESS}[^)]*\)", r"\1", text)


_SIGNS = {
    **{r"\infty": "∞", r"\times": "×", r"\cdot": "·", r"\epsilon": "ε", r"\omega": "ω", r"\ell": "ℓ", r"\sum": "Σ"},
    **{r"\dots": "…", r"\lceil": "⌈", r"\rceil": "⌉", r"\sqrt": "√", r"^\top": "ᵀ", "n^2": "n²", r"\,": " ", "-": "−"},
}


def in_letters(text: str) -> str:
    """The sentence of a term without Markdown, its formulas in letters: "a row times W_V"."""

    def letters(formula: re.Match[str]) -> str:
        written = formula[1]
        for command, sign in _SIGNS.items():
            written = written.replace(command, sign)
        return re.sub(r"\\[a-z]+|[{}]", "", re.sub(r"\\(?=exp|ln|log)", "", written))

    return re.sub(r"\$([^$]*)\$", letters, re.sub(r"[`*]", "", text))


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
