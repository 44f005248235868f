"""Model report: what a model's files hold, what became of every tensor, and why a folder does not open."""

from collections import Counter
from typing import TYPE_CHECKING

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, server_folder, shelf, sources
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.model_report import open_model, precision_choice, report_words
from vizformer.web.words import errors
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, translate

if TYPE_CHECKING:
    from vizformer.checkpoints import Question, Report

ROW, MOST = 35, 12  # pixels of a row; rows that are shown before the table scrolls


def page() -> None:
    open_model.arrive()
    models = shelf.models()
    view = state.fit(model=models)
    st.selectbox(_("Model"), models, format_func=shelf.titles(models).__getitem__, width=420, **state.bind("model"))
    open_model.progress()
    open_model.box()
    if view.model.is_from_elsewhere and not sources.is_there(view.model):
        absent(view.model)
    elif (report := read(view.model)) is not None:
        if report.questions:
            with st.expander(_("Other assumptions")):
                ask(view.model, report.questions, dict(report.answers))
        if report.problems:
            problems(report)
        elif view.model.is_from_elsewhere:
            computes(view.model, report)
        summary(report)
        if report.format == "hugging-face" and not report.problems:
            against_transformers(sources.stamped(view.model), view.text)
        if report.assumptions:
            assumptions(report)
        components(report)
        tensors(report)
    own_models()


def read(model: ModelRef) -> "Report | None":
    """The report; where the folder cannot be understood at all, the reason in its place."""
    try:
        with st.spinner(_("Reading the files …"), show_time=False):
            return model_cache.report(sources.stamped(model))
    except VizformerError as error:
        questions, known = report_words.open_questions(error)
        if questions:
            st.subheader(_("What the weights do not say"), anchor=False)
            st.text(
                _(
                    "This file holds weights alone, and they fit several models. With your answers it opens; they are "
                    "part of the link."
                )
            )
            ask(model, questions, known)
        else:
            st.subheader(_("This model does not open"), anchor=False)
            errors.show(error.message)
            if model.answers:
                st.button(_("Without these assumptions"), on_click=_assume, args=(model, {}))
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
def ask(model: ModelRef, questions: "tuple[Question, ...]", known: dict[str, object]) -> None:
    """A form of what is open; the answers become part of the model's name, and so of the link."""
    with st.form(f"assume.{model}", border=False):
        answers = {}
        for number, question in enumerate(questions):
            if number % 2 == 0:  # row by row: the order is the same on a phone
                columns = st.columns(2)
            with columns[number % 2]:
                answers[question.name] = field(model, question, known.get(question.name))
        sent = st.form_submit_button(_("Open under these assumptions"), type="primary")
    if not sent:
        return
    if any(answers[q.name] is None and q.usual is None and not q.optional for q in questions):
        st.warning(_("Some questions are still open."))
        return
    given = {q.name: answers[q.name] for q in questions if answers[q.name] not in (None, q.usual)}
    _assume(model, given)
    st.rerun()


def _assume(model: ModelRef, answers: dict[str, object]) -> None:
    state.update(model=model.under(answers))


def field(model: ModelRef, question: "Question", known: object) -> object:
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
    choices = question.choices or tuple(sorted({*report_words.EPSILONS, float(str(known))}))
    return st.selectbox(
        label,
        choices,
        index=choices.index(known) if known in choices else None,
        key=key,
        format_func=lambda value: report_words.answer(question.name, value),
        placeholder=_("Choose"),
    )


@guarded()
def problems(report: "Report") -> None:
    """What is wrong with the tensors, and what to do about it."""
    st.subheader(_("This model does not open"), anchor=False)
    with st.container(border=True):
        for message in report_words.problems(report):
            st.markdown(f"- {translate(message, plain)}")
    if report.format == "state-dict":
        said = _(
            "Weights without a config.json open only where every tensor has its place in {layout} and holds numbers.",
            layout=plain(report.family),
        )
    else:
        said = _(
            "The weights and config.json belong to different models, or a file is damaged: copy the folder again "
            "from the model's source."
        )
    st.caption(said)


@guarded()
def summary(report: "Report") -> None:
    st.subheader(_("The model"), anchor=False)
    parameters, stored, used = st.columns(3)
    parameters.metric(_("Parameters"), f"{report.n_parameters:,}")
    stored.metric(_("Weights on disk"), report_words.size(report.n_bytes))
    used.metric(_("Tensors used"), f"{len(report.with_fate('used'))} / {len(report.tensors)}")
    st.html(report_words.facts_table(report_words.facts(report)))


@guarded()
def computes(model: ModelRef, report: "Report") -> None:
    """In which precision, where, and what that takes."""
    precision_choice.choose(model, report)


@st.fragment
@guarded()
def against_transformers(model: ModelRef, text: str) -> None:
    """A badge: the same numbers as `transformers`, where that package is installed."""
    if not report_words.can_compare():
        return
    asked = f"report.agreement.{model}.{text}"
    if not st.session_state.get(asked):
        if not st.button(_("Compare with transformers, for your sentence"), key="report.compare"):
            return
        st.session_state[asked] = True
    with st.spinner(_("Running both …"), show_time=False):
        found = model_cache.agreement(model, text)
    said = report_words.agreement(found)
    if found.holds:
        st.success(said)
    else:
        st.error(said)


@guarded()
def assumptions(report: "Report") -> None:
    """What the files do not say, or what was decided differently."""
    st.subheader(_("Assumed"), anchor=False)
    for message in report.assumptions:
        st.markdown(f"- {translate(message, plain)}")
    if claim := report_words.under_assumptions(report):
        st.caption(claim)


@guarded()
def components(report: "Report") -> None:
    st.subheader(_("Parameters by part"), anchor=False)
    st.html(report_words.parts_table(report_words.parts(report)))


@guarded()
def tensors(report: "Report") -> None:
    """Every tensor; what needs attention stands first."""
    st.subheader(_("Every tensor"), anchor=False)
    counts = Counter[str](tensor.fate for tensor in report.tensors)
    st.text(
        " · ".join(f"{translate(words)}: {counts[fate]}" for fate, words in report_words.FATES.items() if counts[fate])
    )
    height = ROW * (1 + min(len(report.tensors), MOST)) + 2
    st.dataframe(report_words.tensors(report), hide_index=True, height=height)


@guarded()
def own_models() -> None:
    """How another model comes into the list."""
    with st.expander(_("Your own models")):
        if server_folder.root() is None:
            st.text(
                _(
                    "Start VizFormer with a folder whose subfolders are models in Hugging Face layout (config.json, "
                    "weights, tokenizer), or that holds files of weights. Each then stands in the list above, on every "
                    "page."
                )
            )
        else:
            st.text(
                _(
                    "This server offers the models of one folder: every subfolder with a model and every file of weights "
                    "stands in the list above. A new one appears when the page is drawn again."
                )
            )
        st.code("vizformer --models DIR\nVIZFORMER_MODELS=DIR make run", language="bash")
        st.text(_("These families open: {families}.", families=", ".join(report_words.families())))
        st.text(
            _(
                "State dicts without a config.json open too, under assumptions that you choose: {layouts}.",
                layouts=", ".join(report_words.layouts()),
            )
        )


page()
