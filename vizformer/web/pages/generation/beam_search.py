"""Beam search: the tree of the search, and what it found."""

import streamlit as st

from vizformer.components import sortable, tree
from vizformer.figures.tables import Table
from vizformer.generation import Hypothesis
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.link.generation_settings import Settings
from vizformer.web.pages.generation import computations
from vizformer.web.widgets import data_table
from vizformer.web.widgets.chart import Picture, caption, take_away
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words.i18n import _, show_note, show_text, words


@laboratory
def beam(subject: Subject, settings: Settings) -> None:
    with st.spinner(_("Searching …"), show_time=False):
        search = computations.beam(subject.unedited, settings)
        plain = computations.text(subject.unedited, Settings(new=settings.new), "")
    if subject.edited:
        show_note("Beam search ignores the numbers set by hand.")
    show_note(
        "Each step keeps the most probable texts, at most {width}, and continues them. The tree shows "
        "the {looked} best continuations of each step.",
        width=settings.width,
        looked=2 * settings.width,
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
    tree.mount(nodes, key="beam")
    take_away(
        Picture(
            "beam",
            caption(_("Beam search")),
            page=lambda: tree.to_html(nodes),
            told=lambda: _told(nodes, search.found[0] if search.found else None),
            code=lambda: computations.of_beam(subject, settings),
        ),
        key="beam",
    )
    st.subheader(_("What was found"), anchor=False)
    columns = {
        _("text"): [text or _("(nothing)") for text, __ in search.found],
        "log p": [found.log_probability for __, found in search.found],
        _("score"): [found.score for __, found in search.found],
    }
    if judged := search.read_back:
        columns |= {
            _("log p back"): [judged[text].back for text, __ in search.found],
            _("sum of both"): [judged[text].score for text, __ in search.found],
        }
    data_table.show(columns, hide_index=True)
    new = subject.checkpoint.tokenizer.decode(list(plain.steps.ids)).strip()
    show_text("Greedy writes: {text}", text=new or _("(nothing)"))
    if judged:
        _read_back(subject, max(judged.values(), key=lambda one: one.score).text, greedy=new)


def _read_back(subject: Subject, best: str, *, greedy: str) -> None:
    """Which text is the best both ways, and its attention one press away."""
    show_text("The best by both directions: {text}", text=best or _("(nothing)"))
    show_note(
        "Back: log p of your sentence, given the text, by the same model. A text that omits something may be "
        "probable, but the sentence is then improbable given the text."
    )
    label = _("Look at the attention of this translation")
    if best and best != greedy and presses.button(label, key="generation.read_back"):
        state.update(target=best)
        st.switch_page(sitemap.ATTENTION.file)


def _told(nodes: list[tree.Node], best: tuple[str, Hypothesis] | None) -> tuple[str, Table]:
    """The best result in a sentence, and the tree as a table."""
    texts = words(tree.ENGLISH)
    columns = (_("number"), _("continues"), _("new token"), _("token"), "log p", _("score"), _("outcome"))
    rows = [
        (
            index,
            "" if node["parent"] is None else node["parent"],
            node["step"],
            node["text"],
            node["total"],
            node["score"],
            texts["best" if node["best"] else node["fate"]],
        )
        for index, node in enumerate(nodes)
    ]
    said = _("Nothing was found.")
    if best is not None:
        said = _("Best result: “{text}”, log p = {total}.", text=best[0], total=f"{best[1].log_probability:.4f}")
    return said, Table(columns, rows[: sortable.LARGEST], len(rows))
