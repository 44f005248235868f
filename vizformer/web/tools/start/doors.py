"""Three doors: to the course, with what the reader has done of it; to the tools; to a model of the reader's own."""

import streamlit as st

from vizformer.web.frame import presses, progress, sitemap
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_note, show_text, translate


@guarded()
def draw_doors() -> None:
    learn, explore, own = st.columns(3, gap="medium")
    with learn, st.container(border=True):
        _learn()
    with explore, st.container(border=True):
        st.subheader(_("Explore"), anchor=False)
        show_text("Every number, for any sentence: look around by yourself.")
        for entry in (sitemap.ATTENTION, sitemap.GENERATION, sitemap.BLANKS):
            st.page_link(entry.file, label=translate(entry.title))
            st.caption(translate(entry.summary))
    with own, st.container(border=True):
        st.subheader(_("Open your own model"), anchor=False)
        st.text(translate(sitemap.OPEN.summary))
        st.page_link(sitemap.OPEN.file, label=translate(sitemap.OPEN.title))
        st.page_link(sitemap.TRAIN.file, label=_("Or train a tiny one"))
        st.caption(translate(sitemap.TRAIN.summary))


def _learn() -> None:
    st.subheader(_("Learn"), anchor=False)
    st.text(translate(sitemap.PATH.summary))
    if presses.button(_("Walk the path →"), type="primary", key="start.path"):
        st.switch_page(sitemap.PATH.file)
    done = {entry.url: progress.answered(entry.url) for entry in COURSE}
    going_on = next((entry for entry in COURSE if done[entry.url] < len(progress.QUESTIONS[entry.url])), COURSE[0])
    title = translate(going_on.title)
    begun = any(done.values())
    label = _("Continue with: {title} →", title=title) if begun else _("Begin with: {title} →", title=title)
    if presses.button(label, key="start.learn"):
        st.switch_page(going_on.file)
    questions = sum(map(len, progress.QUESTIONS.values()))
    show_note("{answered} of {questions} questions answered", answered=sum(done.values()), questions=questions)
    st.page_link(sitemap.LEARN.file, label=_("All lessons"))
