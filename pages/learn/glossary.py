"""The glossary: every term of the course, in both languages, with the lessons that teach it."""

import streamlit as st

from vizformer.web.frame import sitemap
from vizformer.web.frame.search import WANTED
from vizformer.web.widgets import glossary
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words.i18n import _, language, show_info, show_note, translate
from vizformer.web.words.terms import matches, read_terms

_LESSON = "glossary.lesson"


@laboratory
def page() -> None:
    found = read_terms(language())
    search, which = st.columns([2, 1], vertical_alignment="bottom")
    wanted = search.text_input(_("Find a term"), placeholder=_("part of a word, in English or Chinese"), key=WANTED)
    titles = {"": _("All lessons"), **{entry.url: translate(entry.title) for entry in sitemap.COURSE}}
    lesson = which.selectbox(_("Taught in"), list(titles), format_func=titles.__getitem__, key=_LESSON)
    keys = [key for key, term in found.items() if (not lesson or lesson in term.lessons) and matches(key, wanted)]
    if not keys:
        show_info("No term matches. Try a shorter part of the word, or all lessons.")
        return
    show_note("{shown} of {all} terms", shown=len(keys), all=len(found))
    glossary.table(keys, titles)
    st.subheader(_("Where they are taught"), anchor=False)
    with st.container(horizontal=True):
        for entry in sitemap.COURSE:
            st.page_link(entry.file, label=translate(entry.title))


page()
