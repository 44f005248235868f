"""The glossary: every term of the course, in both languages, with the lessons that teach it; notations; and what to read."""

import streamlit as st

from vizformer.web.frame import sitemap
from vizformer.web.frame.bar import WANTED
from vizformer.web.pages import bibliography
from vizformer.web.widgets import glossary
from vizformer.web.widgets.choices import one_of
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words.i18n import _, language, show_info, show_markdown, show_note, translate
from vizformer.web.words.terms import matches, read_terms

_LESSON = "glossary.lesson"


@laboratory
def page() -> None:
    parts = {
        "terms": _("Terms"),
        sitemap.NOTATIONS: translate(sitemap.NOTATION_LIST),
        sitemap.READING: translate(sitemap.READING_LIST),
    }
    drawn = {"terms": terms, sitemap.NOTATIONS: notations, sitemap.READING: reading}
    drawn[one_of(_("Part"), sitemap.LISTED, parts, labelled=False)]()


def terms() -> None:
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


def notations() -> None:
    """What papers and courses write in several ways."""
    show_markdown(
        "Papers and courses write the same thing in several ways. This table says which symbols mean the same."
    )
    glossary.notations()


def reading() -> None:
    """Papers and tutorials, by title and author."""
    show_markdown(
        "Read the first paper beside the lessons. The app works without these texts and without the internet."
    )
    titles = {"paper": _("Papers"), "tutorial": _("Tutorials and courses")}
    for kind, title in titles.items():
        st.subheader(title, anchor=False)
        bibliography.table([item for item in bibliography.items(language()) if item.kind == kind])
    bibliography.beyond()


page()
