"""Model report: what a model's files hold, what became of every tensor, and why a folder does not open."""

from collections import Counter
from typing import TYPE_CHECKING

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.web import errors, folders, models, reports, state
from vizformer.web.errors import guarded, plain
from vizformer.web.i18n import _, translate

if TYPE_CHECKING:
    from vizformer.checkpoints import Report

ROW, MOST = 35, 12  # pixels of a row; rows that are shown before the table scrolls


def page() -> None:
    shelf = models.shelf()
    view = state.fit(model=shelf)
    st.selectbox(_("Model"), shelf, format_func=models.title, width=420, **state.bind("model"))
    report = read(view.model)
    if report is not None:
        if report.problems:
            problems(report)
        summary(report)
        if report.assumptions:
            assumptions(report)
        components(report)
        tensors(report)
    own_models()


def read(model: str) -> "Report | None":
    """The report; where the folder cannot be understood at all, the reason in its place."""
    try:
        with st.spinner(_("Reading the files …"), show_time=False):
            return models.report(folders.key(model))
    except VizformerError as error:
        st.subheader(_("This folder does not open"), anchor=False)
        errors.show(error.message)
        return None


@guarded()
def problems(report: "Report") -> None:
    """What is wrong with the tensors, and what to do about it."""
    st.subheader(_("This folder does not open"), anchor=False)
    with st.container(border=True):
        for message in reports.problems(report):
            st.markdown(f"- {translate(message, plain)}")
    st.caption(
        _("The weights and config.json belong to different models, or a file is damaged: copy the folder again from "
          "the model's source.")
    )  # fmt: skip


@guarded()
def summary(report: "Report") -> None:
    st.subheader(_("The model"), anchor=False)
    parameters, stored, used = st.columns(3)
    parameters.metric(_("Parameters"), f"{report.n_parameters:,}")
    stored.metric(_("Weights on disk"), reports.size(report.n_bytes))
    used.metric(_("Tensors used"), f"{len(report.with_fate('used'))} / {len(report.tensors)}")
    st.html(reports.facts_table(reports.facts(report)))


@guarded()
def assumptions(report: "Report") -> None:
    """What the files do not say, or what was decided differently."""
    st.subheader(_("Assumed"), anchor=False)
    for message in report.assumptions:
        st.markdown(f"- {translate(message, plain)}")


@guarded()
def components(report: "Report") -> None:
    st.subheader(_("Parameters by part"), anchor=False)
    st.html(reports.parts_table(reports.parts(report)))


@guarded()
def tensors(report: "Report") -> None:
    """Every tensor; what needs attention stands first."""
    st.subheader(_("Every tensor"), anchor=False)
    counts = Counter[str](tensor.fate for tensor in report.tensors)
    st.text(" · ".join(f"{translate(words)}: {counts[fate]}" for fate, words in reports.FATES.items() if counts[fate]))
    height = ROW * (1 + min(len(report.tensors), MOST)) + 2
    st.dataframe(reports.tensors(report), hide_index=True, height=height)


@guarded()
def own_models() -> None:
    """How another model comes into the list."""
    with st.expander(_("Your own models")):
        if folders.root() is None:
            st.text(
                _("Start VizFormer with a folder whose subfolders are models in Hugging Face layout (config.json, "
                  "weights, tokenizer). Each then stands in the list above, on every page.")
            )  # fmt: skip
        else:
            st.text(
                _("This server offers the models of one folder: every subfolder with a config.json stands in the list "
                  "above. A new one appears when the page is drawn again.")
            )  # fmt: skip
        st.code("vizformer --models DIR\nVIZFORMER_MODELS=DIR make run", language="bash")
        st.text(_("These families open: {families}.", families=", ".join(reports.families())))


page()
