"""What the files of a model hold, with every tensor and its fate; whether transformers agrees, and how models come here."""

from collections import Counter

import streamlit as st

from vizformer.checkpoints import Report
from vizformer.checkpoints.agreement_check import is_possible
from vizformer.checkpoints.tensors.memory import DoesNotFitError, size
from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, server_folder, sources
from vizformer.web.catalogue.torch_setup import DTYPES, device
from vizformer.web.frame import sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import USUAL_DTYPE, ModelRef
from vizformer.web.pages.model_report import report_words
from vizformer.web.widgets import data_table
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.watched_work import watched
from vizformer.web.words import errors, model_words
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, show_markdown, show_text, translate

ROW, MOST = 35, 12  # pixels of a row; rows that are shown before the table scrolls


@guarded()
def problems(report: Report) -> None:
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
def draw_summary(report: Report) -> None:
    st.subheader(_("The model"), anchor=False)
    with st.container(horizontal=True):
        for name, value in (
            (_("Parameters"), f"{report.n_parameters:,}"),
            (_("Weights on disk"), size(report.n_bytes)),
            (_("Tensors used"), f"{len(report.with_fate('used'))} / {len(report.tensors)}"),
        ):
            st.metric(name, value, width="content")
    st.html(report_words.facts_table(report_words.facts(report)))


@guarded()
def assumptions(report: Report) -> None:
    """What the files do not say, or what was decided differently."""
    st.subheader(_("Assumed"), anchor=False)
    for message in report.assumptions:
        st.markdown(f"- {translate(message, plain)}")
    if claim := report_words.under_assumptions(report):
        st.caption(claim)


@guarded()
def example(title: str, report: Report) -> None:
    """A model that is open, before the reader opens one: what most of it is made of."""
    show_parts(title, report.n_parameters, report_words.parts(report))
    st.page_link(sitemap.REPORT.file, label=_("All contents of its files: Model report"))


def show_parts(title: str, n_parameters: int, parts: list[tuple[str, int, float]]) -> None:
    show_markdown(
        "**{model}** is open: {n} parameters, by part. A model of yours is shown in the same way, on every page.",
        model=title,
        n=f"{n_parameters:,}",
    )
    st.html(report_words.parts_table(parts))


@guarded()
def components(report: Report) -> None:
    st.subheader(_("Parameters by part"), anchor=False)
    st.html(report_words.parts_table(report_words.parts(report)))


@guarded()
def tensors(report: Report) -> None:
    """Every tensor; what needs attention stands first."""
    st.subheader(_("Every tensor"), anchor=False)
    counts = Counter[str](tensor.fate for tensor in report.tensors)
    st.text(
        " · ".join(f"{translate(words)}: {counts[fate]}" for fate, words in report_words.FATES.items() if counts[fate])
    )
    height = ROW * (1 + min(len(report.tensors), MOST)) + 2
    data_table.show(report_words.tensors(report), hide_index=True, height=height)


@laboratory
def against_transformers(model: ModelRef, text: str) -> None:
    """A badge: the same numbers as `transformers`, where that package is installed."""
    if not is_possible():
        return
    found = watched(
        model_cache.agreement,
        (model, text),
        quick=False,
        runs=1,
        begin=_("Compare with transformers, for your sentence"),
        key="report.compare",
        said=lambda *__: _("Running both …"),
        takes=_("transformers is installed here, so you can compare its numbers with those of the pages."),
    )
    if found is None:
        return
    said = model_words.agreement(found)
    if found.holds:
        st.success(said)
    else:
        st.error(said)


@guarded()
def draw_own_models() -> None:
    """How another model comes into the list."""
    with st.expander(_("Your own models")):
        if server_folder.root() is None:
            show_text(
                "Start VizFormer with a folder whose subfolders are models in Hugging Face layout (config.json, "
                "weights, tokenizer), or that contains files of weights. Every page then lists each of them above."
            )
        else:
            show_text(
                "This server offers the models of one folder: the list above shows every subfolder with a model and "
                "every file of weights. A new one appears when you reload the page."
            )
        st.code("vizformer --models DIR\nVIZFORMER_MODELS=DIR make run", language="bash")
        show_text(
            "A model of your own code runs as it is: name its file, and a function there that returns the module and its "
            "tokenizer."
        )
        st.code("vizformer --model my_model.py:load", language="bash")
        show_text("These families open: {families}.", families=", ".join(report_words.families()))
        show_text(
            "State dicts without a config.json open too, under assumptions that you choose, where their tensors have the "
            "names of these: {layouts}. Other weights do not say what is computed with them: save the model with its "
            "program, as a folder of Hugging Face (save_pretrained), or say it in Python: "
            "vf.load(path, config=..., mapping=...).",
            layouts=", ".join(report_words.layouts()),
        )


def choose(model: ModelRef, report: Report) -> None:
    """The control for the precision, what each takes of memory, and the way out where it is too much."""
    stored = {tensor.dtype for tensor in report.with_fate("used")}
    as_stored = next(iter(stored)) if len(stored) == 1 else ""
    now, key = model.dtype, f"computing.{model.files}"
    if st.session_state.get(key) not in DTYPES or st.session_state.get(f"{key}.seen") != now:
        st.session_state[key] = st.session_state[f"{key}.seen"] = now if now in DTYPES else USUAL_DTYPE
    control, words = st.columns([1, 2], vertical_alignment="bottom")
    with control:
        st.selectbox(
            _("Computes in"),
            DTYPES,
            key=key,
            on_change=_take,
            args=(model, key),
            format_func={
                name: _("{dtype} (as in the file)", dtype=name) if name == as_stored else name for name in DTYPES
            }.__getitem__,
            help=_(
                "float32 is the most exact. bfloat16 and float16 take half the memory and keep 2 to 3 digits; the "
                "proofs then allow a few units in the last one. float16 reaches only to 65504."
            ),
        )
    try:
        needed = model_cache.need(sources.stamped(model))
    except DoesNotFitError as error:
        errors.show(error.message)
        for other in error.fitting:
            st.button(_("Compute in {dtype}", dtype=other), key=f"{key}.{other}", on_click=_set, args=(model, other))
        return
    except VizformerError as error:
        errors.show(error.message)
        st.button(
            _("Compute in {dtype}", dtype=USUAL_DTYPE),
            key=f"{key}.{USUAL_DTYPE}",
            on_click=_set,
            args=(model, USUAL_DTYPE),
        )
        return
    with words:
        st.caption(errors.plain(model_words.memory(needed, device())))


def _take(model: ModelRef, key: str) -> None:
    _set(model, st.session_state[key])


def _set(model: ModelRef, dtype: str) -> None:
    state.update(model=model.within(dtype))
