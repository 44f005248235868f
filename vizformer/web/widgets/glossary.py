"""The glossary: its terms as a list, and as a table of both languages."""

from collections.abc import Mapping, Sequence

import streamlit as st

from vizformer.web.link.languages import LANGUAGES
from vizformer.web.words.i18n import _, language
from vizformer.web.words.terms import terms


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
