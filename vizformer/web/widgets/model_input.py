"""The boxes for sentence, target and model: they stand in the bar of every page that reads them."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.checkpoints import UnansweredError
from vizformer.errors import VizformerError
from vizformer.messages import N_
from vizformer.web.catalogue import long_forward, model_cache, model_list, openings, precision, sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import bar, sitemap
from vizformer.web.link import packed_text, state, text_store
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import View
from vizformer.web.widgets import long_text, model_assumptions, model_suggestions, source_language, unlearned_text
from vizformer.web.widgets.number_editor import set_by_hand
from vizformer.web.words import errors, model_words
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_note, show_warning, translate

_LAST_GOOD = "vizformer.subject"


def subject_box(
    usable: Callable[[ModelRef], bool] | None = None, *, place: DeltaGenerator | None = None
) -> Subject | None:
    """Draws the boxes for sentence, target and model, and returns what can be shown.

    A page that only some models can fill says which are `usable`: it opens on one where the link names none.  The box of the
    sentence stands in `place` where there is one, else in the bar with the others; a page that has a place for it shows
    what is written itself, and has no box of the target.

    If the text cannot be read, one sentence says why, and the last subject that could be read stays on the page.
    None where there has not been one.
    """
    model_suggestions.fit(usable)
    view, reads_target, itself = boxes(place)
    model_assumptions.line(view.model)
    if state.clipped("text") or state.clipped("target"):
        show_note(
            "The text is too long for the link. This server keeps it for {hours} hours after the last visit, and "
            "the link opens it until then. Afterwards, and on other servers, the link shows its first {n} "
            "characters.",
            hours=text_store.HOURS,
            n=packed_text.AS_IT_IS,
        )
    # From here on with the stamp of the files: caches must not confuse two versions of a folder.
    given = view.text if itself and not view.target.strip() else view.target
    wanted = Subject(sources.stamped(view.model), view.text, given if reads_target else "", view.edits)
    if wanted.model.is_from_elsewhere:
        model_cache.want(wanted.model)
        with suppress(VizformerError):  # (which is said below)
            wait_for(wanted.model, _leave)
            model_suggestions.fit_text(wanted.model)
    state.draw()
    set_by_hand("edits")
    if wanted.edited and not readable(wanted):  # set for another text, or wrong from the start
        show_note("The numbers set by hand do not fit here and are ignored. Undo or reset them.")
        wanted = wanted.unedited
    if not readable(wanted):
        last: Subject | None = st.session_state.get(_LAST_GOOD)
        if last is not None:
            show_note("The page still shows the last readable sentence.")
        return last
    st.session_state[_LAST_GOOD] = wanted
    source_language.gloss(wanted.text)
    if not source_language.notice(wanted.model, wanted.text, usable):
        unlearned_text.notice(wanted)
    if (point := wanted.trace.first_not_finite()) is not None:
        show_warning(
            "From {point} on some of the model's numbers are not finite: a number set by hand is too large, the "
            "weights are damaged, the training diverged, or the precision is too low. All later numbers mean "
            "nothing.",
            point=point,
        )
    return wanted


def boxes(place: DeltaGenerator | None = None) -> tuple[View, bool, bool]:
    """Draws the boxes alone: what the view is, whether its model reads a target, and whether that is the sentence itself."""
    models = model_list.models()
    view = state.fit(model=models)
    reads_target = model_cache.reads_target(view.model) if view.model in models else False
    # Where a model cannot begin a text by itself, the decoder reads the sentence, as BART's does.
    itself = reads_target and not model_suggestions.writes(view.model)
    _boxes(models, place, reads_target=reads_target, itself=itself)
    return view, reads_target, itself


def model_box(models: Sequence[ModelRef]) -> None:
    """The box of the model, in the bar: for pages that need no sentence."""
    titles = model_suggestions.described(models)
    with bar.boxes(), st.container(key="bar-model"):
        st.selectbox(
            _("Model"), models, format_func=titles.__getitem__, label_visibility="collapsed", **state.bind("model")
        )


def _boxes(models: Sequence[ModelRef], place: DeltaGenerator | None, *, reads_target: bool, itself: bool) -> None:
    with place or bar.boxes():
        st.text_input(
            _("Sentence"),
            placeholder=_("Type a sentence and press Enter"),
            label_visibility="collapsed",
            **state.bind("text"),
        )
        long_text.button()
    with bar.boxes():
        if reads_target and place is None:
            written = _("what the model writes") if state.view().model.is_from_elsewhere else _("its own translation")
            st.text_input(
                _("Target"),
                placeholder=_("Target: {empty}", empty=_("the sentence itself") if itself else written),
                label_visibility="collapsed",
                **state.bind("target"),
            )
    model_box(models)
    with bar.boxes(), st.container(key="bar-own", width="content"):
        st.page_link(sitemap.OPEN.file, label=_("Open your own"))


def _follow(subject: Subject, place: DeltaGenerator, go_back: Callable[[], None]) -> None:
    """Shows how far a long forward is, if it takes a while, until its trace is there; whoever cancels goes back."""
    bars: list[DeltaGenerator] = []

    def hear(done: int, total: int) -> None:
        if not bars:
            with place.container():
                left, right = st.columns([5, 1], vertical_alignment="center")
                bars.append(left.progress(0.0))
                right.button(_("Cancel"), on_click=go_back, key="bar.cancel")
        bars[0].progress(done / total, _("Running the model: attention {done} of {total} …", done=done, total=total))

    try:
        long_forward.FORWARDS.follow_trace(subject, hear)
    except Exception:  # (what ends the run of a page is none)
        place.empty()
        raise
    place.empty()


def _go_back() -> None:
    """Back to what could be read before, or to the beginning."""
    last: Subject | None = st.session_state.get(_LAST_GOOD)
    if last is None:
        state.update(text=View().text, target="", edits="")
    else:
        model = replace(last.model, stamp="")  # a link never has one
        state.update(model=model, text=last.text, target=last.target, edits=last.edited)


def _leave() -> None:
    """Back to the model of before, or to the one of the beginning."""
    last: Subject | None = st.session_state.get(_LAST_GOOD)
    if last is not None and last.model.base != state.view().model.base:
        _go_back()
    else:
        begun = state.beginning()
        state.update(model=begun.model, text=begun.text, target="", edits="")


def readable(subject: Subject, go_back: Callable[[], None] | None = None) -> bool:
    """Whether the model can read the subject; says what is wrong where it cannot.

    Args:
        go_back: called when the reader stops the reading of a large model, or the forward of a long text; default: to the
            model, and to the last sentence that could be read.
    """
    try:
        if subject.model.is_from_elsewhere:
            wait_for(subject.model, go_back or _leave)
        running = _("Running the model …")
        place = st.empty()  # also for short texts: what stands below keeps its place on the page
        with st.spinner(running, show_time=False):
            long = long_forward.is_long(subject)
        if long:
            _follow(subject, place, go_back or _go_back)
        with st.spinner(running, show_time=False):
            subject.trace  # noqa: B018  (computes and caches it, or says what is wrong)
    except UnansweredError:  # what it says is for who calls vf.load: a page has a form for the answers
        errors.show(N_("These weights fit several models: answer the open questions on the page Model report."))
        st.page_link(sitemap.REPORT.file, label=translate(sitemap.REPORT.title))
        return False
    except VizformerError as error:
        errors.show_error(error)
        if subject.model.is_from_elsewhere:
            st.page_link(sitemap.REPORT.file, label=_("More on the page Model report"))
        return False
    return True


def wait_for(model: ModelRef, go_back: Callable[[], None]) -> None:
    """Returns when the weights of the model are in memory; `go_back` is called when the reader stops the reading."""
    place = st.empty()  # also for small models: what stands below keeps its place on the page
    if not openings.is_large(model):
        return
    needed = model_cache.need(model)
    key = "opening" if model.base == state.view().model.base else "opening-beside"  # of two models that are compared
    with place.container(key=key, border=True):  # (the cover of a page that is not finished goes away for it)
        st.markdown(f"**{plain(sources.title(model))}**  \n{plain(model_words.headline(model_cache.glance(model)))}")
        st.caption(plain(model_words.memory(needed, precision.device())))
        left, right = st.columns([5, 1], vertical_alignment="center")
        bar = left.progress(0.0, _("Reading the weights …"))
        right.button(_("Stop"), on_click=go_back, key=f"{key}.stop", width="stretch")
    first: list[tuple[float, int]] = []  # when this page looked first, and how much was read by then

    def hear(done: int, total: int) -> None:
        now, share, said = time.monotonic(), done / total, _("Reading the weights …")
        begun, before = first[0] if first else (now, done)
        first[:] = [(begun, before)]
        if done > before:
            seconds = (now - begun) * (total - done) / (done - before)
            said = _("Reading the weights: {share}, about {n} s more", share=f"{share:.0%}", n=f"{seconds:.0f}")
        bar.progress(share, said)

    try:
        openings.follow(model, hear)
    except Exception:  # (what ends the run of a page is none: the next one draws the box in the same place)
        place.empty()
        raise
    place.empty()
