"""The glossary: terms with their symbol, shape and a sentence, in both languages (assets/lessons/glossary.toml)."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st

from vizformer.assets import asset
from vizformer.web.link.languages import LANGUAGES, SOURCE
from vizformer.web.words.i18n import _, language


@dataclass(frozen=True)
class Term:
    """An entry: its name and sentence (Markdown) in one language, its symbol and shape (LaTeX), where it is taught."""

    key: str
    name: str
    text: str
    symbol: str
    shape: str
    lessons: tuple[str, ...]

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
def terms(code: str) -> dict[str, Term]:
    """Key -> term in the language `code`, in alphabetical order of the English names."""
    found = {}
    for key, entry in sorted(_file().items(), key=lambda item: item[1][SOURCE]["name"].lower()):
        words = entry.get(code, entry[SOURCE])
        found[key] = Term(
            key, words["name"], words["text"], entry.get("symbol", ""), entry.get("shape", ""), tuple(entry["lessons"])
        )
    return found


def matches(key: str, wanted: str) -> bool:
    """Whether a term has `wanted` in its name, in any language."""
    low = wanted.strip().lower()
    return any(low in terms(code)[key].name.lower() for code in LANGUAGES)


def entries(keys: Sequence[str]) -> None:
    """Draws some terms one below the other."""
    known = terms(language())
    chosen = (known[key] for key in keys)
    st.markdown("\n\n".join(_("**{name}** {symbol}: {text}", name=t.name, symbol=t.mark, text=t.text) for t in chosen))


def table(keys: Sequence[str], titles: Mapping[str, str]) -> None:
    """Draws some terms with what they are called in the other language and where they are taught."""
    known = terms(language())
    others = [terms(code) for code in LANGUAGES if code != language()]
    for key in keys:
        term = known[key]
        with st.container(border=True):
            name, text = st.columns([1, 3])
            also = " · ".join(other[key].name for other in others if other[key].name != term.name)
            name.markdown(f"**{term.name}**  \n{also}\n\n{term.mark}")
            text.markdown(term.text)
            text.caption(_("Taught in: {lessons}", lessons=" · ".join(titles[url] for url in term.lessons)))
