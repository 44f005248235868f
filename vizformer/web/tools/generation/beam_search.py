"""Beam search: the tree of the search, and what it found."""

import streamlit as st

from vizformer.components import tree
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.generation_settings import Settings
from vizformer.web.tools.generation import computed
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.widgets.take_away import Picture, caption, take_away
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


@laboratory
def beam(subject: Subject, settings: Settings) -> None:
    """The tree of the search, and what it found beside the greedy text."""
    with st.spinner(_("Searching …"), show_time=False):
        search = computed.beam(subject.unedited, settings)
        plain = computed.text(subject.unedited, Settings(new=settings.new), "")
    if subject.edited:
        st.caption(_("Beam search runs without the numbers set by hand."))
    st.caption(
        _(
            "In each step the {width} most probable texts are kept and continued. The tree shows the {looked} best "
            "continuations of each step.",
            width=settings.width,
            looked=2 * settings.width,
        )
    )
    best = set(search.tree.path(search.found[0][1].ids)) if search.found else set()
    nodes: list[tree.Node] = [
        {
            "step": node.step,
            "parent": node.parent,
            "text": search.names[node.id],
            "total": node.log_probability,
            "score": node.score,
            "fate": node.fate,
            "best": index in best,
        }
        for index, node in enumerate(search.tree.nodes)
    ]
    texts = words(tree.ENGLISH)
    tree.mount(nodes, words=texts, key="beam")
    take_away(Picture("beam", caption(_("Beam search")), page=lambda: tree.to_html(nodes, words=texts)), key="beam")
    st.subheader(_("What was found"), anchor=False)
    rows = [(text, found.log_probability, found.score) for text, found in search.found]
    st.dataframe(
        {
            _("text"): [text or _("(nothing)") for text, *__ in rows],
            "log p": [log_p for __, log_p, ___ in rows],
            _("score"): [score for *__, score in rows],
        },
        hide_index=True,
    )
    new = subject.checkpoint.tokenizer.decode(list(plain.steps.ids)).strip()
    st.text(_("Greedy writes: {text}", text=new or _("(nothing)")))
