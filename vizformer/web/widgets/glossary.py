"""The glossary: its terms as a list, and as a table of both languages; what texts write in several ways."""

import re
from collections.abc import Mapping, Sequence

import streamlit as st

from vizformer.web.link.languages import LANGUAGES
from vizformer.web.words.i18n import _, language
from vizformer.web.words.terms import read_notations, read_terms


def entries(keys: Sequence[str]) -> None:
    """Draws some terms one below the other."""
    known = read_terms(language())
    chosen = (known[key] for key in keys)
    st.markdown("\n\n".join(_("**{name}** {symbol}: {text}", name=t.name, symbol=t.mark, text=t.text) for t in chosen))


def table(keys: Sequence[str], titles: Mapping[str, str]) -> None:
    """Draws some terms, a row each, with what they are called in the other language and where they are taught.

    The formulas in it are why this is a table of Markdown.
    """
    known = read_terms(language())
    codes = [code for code in LANGUAGES if code != language()]
    others = [read_terms(code) for code in codes]
    head = (_("Term"), " · ".join(LANGUAGES[code] for code in codes), _("Symbol"), _("What it is"), _("Taught in"))
    rows = []
    for key in keys:
        term = known[key]
        also = " · ".join(other[key].name for other in others if other[key].name != term.name)
        lessons = " · ".join(titles[url] for url in term.lessons)
        rows.append((f"**{term.name}**", also, term.mark, term.text, lessons))
    _rows(head, rows)


def notations() -> None:
    """Draws what course texts call the same thing, a row each."""
    head = (_("What it is"), _("In this app"), _("Elsewhere"), _("Note"))
    _rows(head, [(f"**{one.name}**", one.here, one.elsewhere, one.note) for one in read_notations(language())])


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = (head, ("---",) * len(head), *rows)
    with st.container(key="glossary"):
        st.markdown("\n".join(f"| {' | '.join(map(_in_a_cell, line))} |" for line in lines))


def _in_a_cell(text: str) -> str:
    """Markdown without the sign that ends a cell of a table."""
    return re.sub(r"\$.*?\$", lambda found: found[0].replace("|", r"\vert "), text).replace("|", r"\|")
