"""What weights alone do not say: a form of questions, whose answers become part of the model's link."""

from typing import Any

import streamlit as st

from vizformer.checkpoints import Question, Report
from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.model_report import open_model, report_words
from vizformer.web.words import errors
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_text, show_warning, translate


def read(model: ModelRef) -> Report | None:
    """The report; where the folder cannot be understood at all, the reason in its place."""
    try:
        with st.spinner(_("Reading the files …"), show_time=False):
            return model_cache.report(sources.stamped(model))
    except VizformerError as error:
        questions, known = report_words.open_questions(error)
        if questions:
            st.subheader(_("Questions about the weights"), anchor=False)
            show_text(
                "This file contains weights alone, which fit several models. Your answers open it; they are part of "
                "the link."
            )
            ask(model, questions, known)
        else:
            st.subheader(_("This model does not open"), anchor=False)
            errors.show(error.message)
            if model.answers or model.mapped:
                st.button(_("Without these assumptions"), on_click=assume, args=(model, {}))
        return None


def absent(model: ModelRef) -> None:
    """Why the model of a link is not here; one of a hub can be fetched."""
    if open_model.offer(model):
        return
    try:
        sources.folder(model)
    except VizformerError as error:
        errors.show(error.message)


@guarded()
def ask(model: ModelRef, questions: tuple[Question, ...], known: dict[str, object]) -> None:
    """A form of what is open; the answers become part of the model's name, and so of the link."""
    questions = tuple(q for q in questions if not q.stands_for)  # of a known code there is no other answer
    with st.form(f"assume.{model}", border=False):
        answers: dict[str, Any] = {}
        for number, question in enumerate(questions):
            if number % 2 == 0:  # row by row: the order is the same on a phone
                columns = st.columns(2)
            with columns[number % 2]:
                answers[question.name] = field(model, question, known.get(question.name))
        sent = presses.submit(_("Open under these assumptions"), key="questions.open", type="primary")
    if not sent:
        return
    chosen = {name: answer for name, answer in answers.items() if answer is not None}
    if any(
        q.name not in chosen and (q.usual is None or q.insists) and not q.optional and q.decides(chosen)
        for q in questions
    ):
        show_warning("Some questions are still open.")
        return
    given = {q.name: chosen[q.name] for q in questions if q.name in chosen and (q.insists or chosen[q.name] != q.usual)}
    assume(model, given)
    st.rerun()


def assume(model: ModelRef, answers: dict[str, object]) -> None:
    state.update(model=model.under(answers))


def field(model: ModelRef, question: Question, known: object) -> object:
    """The widget for one question; None where it is not answered."""
    key, label = f"assume.{model}.{question.name}", translate(question.text)
    if question.whole:
        return st.number_input(
            label,
            int(question.lowest),
            int(question.highest),
            known,
            step=1,
            key=key,  # type: ignore[call-overload]
            placeholder=_("none"),
        )
    choices = question.choices or tuple(sorted({*question.likely, *([] if known is None else [float(str(known))])}))
    usual = question.usual if question.insists else None

    said = {value: report_words.answer(question.name, value) for value in choices}
    if usual in said:
        said[usual] = _("{answer} (usual)", answer=said[usual])
    return st.selectbox(
        label,
        choices,
        index=choices.index(known) if known in choices else None,
        key=key,
        format_func=said.__getitem__,
        placeholder=_("Choose"),
    )
