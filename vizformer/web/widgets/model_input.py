"""The boxes for sentence, target and model: they stand in the bar of every page that reads them."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.analysis.corpus_heads.corpus import MOST_CHARACTERS, Corpus
from vizformer.checkpoints import UnansweredError
from vizformer.checkpoints.any_checkpoint import check_characters
from vizformer.errors import VizformerError
from vizformer.messages import N_
from vizformer.web.catalogue import followed_work, model_cache, model_list, sources, torch_setup
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject, trace
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.frame import bar, presses, sitemap
from vizformer.web.link import packed_text, state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import View
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.number_editor import set_by_hand
from vizformer.web.words import errors, model_words
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_info, show_note, show_warning, translate

# A box for a text that is longer than a line: typed, pasted, or taken from a text file.

MOST_FILE_MB = 1
ENCODINGS = ("utf-8-sig", "gb18030")  # what editors write, also older ones in China
_BOX, _FILE = "long_text.box", "long_text.file"

EMPTIED = " "  # of the view: nothing stands for the sentence that the page proposes


def button() -> None:
    if presses.button("⤢", help=_("A longer text, or a text file"), key="long_text.open"):
        st.session_state[_BOX] = state.view().text
        st.dialog(_("A longer text"), width="large")(_content)()  # made only while the box over the page is open


def _content() -> None:
    st.html(style(_("Choose a file")))
    st.file_uploader(
        _("A text file of at most {n} MB: drop it here", n=MOST_FILE_MB),
        type=["txt", "md"],
        key=_FILE,
        on_change=_take_file,
        max_upload_size=MOST_FILE_MB,
    )
    if st.session_state.get(f"{_FILE}.refused"):
        errors.show(N_("This file is no text in UTF-8 or GB18030. Save it as plain text in UTF-8."))
    text = st.text_area(_("Text"), height=320, key=_BOX) or ""
    left, right = st.columns([3, 1], vertical_alignment="center")
    with left:
        fits = _count(text)
    if presses.button(_("Read this text"), at=right, type="primary", disabled=not fits, key="long_text.read"):
        state.update(text=text)
        st.rerun()


def _take_file() -> None:
    """Puts the text of the chosen file into the box."""
    file = st.session_state.get(_FILE)
    st.session_state[f"{_FILE}.refused"] = False
    if file is None:
        return
    for encoding in ENCODINGS:
        try:
            found = file.getvalue().decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in found:
            st.session_state[_BOX] = found[: MOST_FILE_MB * 2**20]
            return
    st.session_state[f"{_FILE}.refused"] = True


def _count(text: str) -> bool:
    """Says how many tokens the text has and how many the model reads; whether it reads all of them."""
    view = state.view()
    try:
        n = len(model_cache.checkpoint(view.model).encode(text))
    except VizformerError as error:
        errors.show(error.message)
        return False
    most = model_cache.shape(view.model).max_positions
    show_note("{n} tokens; this model reads at most {most}.", n=f"{n:,}", most=f"{most:,}")
    return True


def box(key: str, most_characters: int) -> Corpus | None:
    """The texts that stand in it; None where there are none yet, or too many, which it says."""
    written = st.text_area(
        _("One text in each line; for a model that translates: text, tab, translation"),
        key=key,
        persist_state="session",
    )
    try:
        check_characters(written or "", most_characters)
    except VizformerError as error:
        errors.show(error.message)
        return None
    corpus = _corpus(written or "")
    if corpus is None:
        show_info("Write or paste some texts, one in each line; a dozen are enough to begin.")
    elif corpus.cut:
        show_warning(
            "Texts of more than {most} characters are cut there ({n} of yours). Put the rest into another line.",
            most=f"{MOST_CHARACTERS:,}",
            n=corpus.cut,
        )
    return corpus


@cached
def _corpus(texts: str) -> Corpus | None:
    prepare_torch()
    try:
        return Corpus.of(texts.splitlines(), "own")
    except VizformerError:
        return None


def ask_other_sentence(label: str, field: str, default: str, basis: str, on: DeltaGenerator | None = None) -> str:
    """Asks for a sentence beside that of the page.

    With another `basis` the box begins anew, as with another sentence of the page.
    """
    known = f"other.{field}.basis"
    before, st.session_state[known] = st.session_state.get(known), basis
    if before not in (None, basis):
        state.update(**{field: ""})
    now, key = getattr(state.view(), field) or default, f"view.{field}"
    state.show(key, now)
    kept: dict[str, Any] = {"key": key, "on_change": _take, "args": (field, key, default), "persist_state": "session"}
    text: str = (on or st).text_input(model_suggestions.with_meaning(label, now), **kept)
    return text.strip()


def _take(field: str, key: str, default: str) -> None:
    typed = st.session_state[key]
    if isinstance(typed, str):
        state.update(**{field: "" if typed.strip() == default.strip() else typed or EMPTIED})


def style(label: str) -> str:
    """Streamlit writes its own words into `st.file_uploader`, in English, and rounds half a gigabyte up to one."""
    place, words = '[data-testid="stFileUploaderDropzone"]', json.dumps(label, ensure_ascii=False)
    return (
        f'<style>{place} [data-testid="stFileUploaderDropzoneInstructions"] {{ display: none }}'
        f"{place} > span button p {{ font-size: 0 }}"
        f"{place} > span button p::after {{ content: {words}; font-size: 0.875rem }}</style>"
    )


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
    model_suggestions.line(view.model)
    if state.clipped("text") or state.clipped("target"):
        show_note(
            "The text is too long for the link. This server keeps it for {hours} hours after the last visit, and "
            "the link opens it until then. Afterwards, and on other servers, the link shows its first {n} "
            "characters.",
            hours=packed_text.HOURS,
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
    state.note_drawn()
    if wanted.edited:
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
    model_suggestions.gloss(wanted.text)
    if not model_suggestions.notice(wanted.model, wanted.text, usable):
        model_suggestions.unlearned_notice(wanted)
    if (point := wanted.trace.first_not_finite()) is not None:
        show_warning(
            "From {point} on some of the model's numbers are not finite: a number set by hand is too large, the "
            "weights are damaged, the training diverged, or the precision is too low. All later numbers mean "
            "nothing.",
            point=point,
        )
    return wanted


def seen() -> Subject:
    """What this session's pages have shown last; before that, what its view says."""
    view = state.view()
    last: Subject | None = st.session_state.get(_LAST_GOOD)
    return last or Subject(sources.stamped(view.model), view.text, "")


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
        button()
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
        followed_work.FORWARDS.follow_trace(subject, hear)
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
        place = st.empty()  # also for short texts: what stands below keeps its place on the page
        if not trace.holds(subject):  # (a spinner is a thread)
            with st.spinner(_("Running the model …"), show_time=False):
                if not (long := subject.is_long):
                    subject.trace  # noqa: B018  (computes and caches it, or says what is wrong)
            if long:
                _follow(subject, place, go_back or _go_back)
        subject.trace  # noqa: B018
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
    if not followed_work.is_large(model):
        return
    needed = model_cache.need(model)
    key = "opening" if model.base == state.view().model.base else "opening-beside"  # of two models that are compared
    with place.container(key=key, border=True):  # (the cover of a page that is not finished goes away for it)
        st.markdown(f"**{plain(sources.title(model))}**  \n{plain(model_words.headline(model_cache.glance(model)))}")
        st.caption(plain(model_words.memory(needed, torch_setup.device())))
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
        followed_work.follow(model, hear)
    except Exception:  # (what ends the run of a page is none: the next one draws the box in the same place)
        place.empty()
        raise
    place.empty()
