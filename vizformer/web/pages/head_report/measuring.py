"""Which model and which texts, and the measuring itself: it waits, runs, stops and goes on."""

import secrets

import streamlit as st

from vizformer.analysis.corpus_heads import Corpus, one_text
from vizformer.analysis.corpus_heads.worker import Request
from vizformer.checkpoints import own_code
from vizformer.web.catalogue import model_cache, named_code, sources, torch_setup
from vizformer.web.frame import presses, sitemap
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.head_report import computations, head_reports
from vizformer.web.turns import visitor
from vizformer.web.widgets import model_input
from vizformer.web.widgets.choices import box
from vizformer.web.words import counts
from vizformer.web.words.i18n import _, show_error, show_info, show_note, show_text

MOST_CHARACTERS = 200_000  # of the reader's own texts
OWN = "own"
_WATCHER, _LEFT = "head_report.watcher", "head_report.left"


def texts(model: ModelRef) -> Corpus | None:
    """The texts that are chosen; None where there are none yet.

    A model that translates begins with pairs.
    """
    usual = "zh" if model_cache.reads_target(model) else "en"
    names = {
        "en": _("English: passages of a children's book"),
        "zh": _("Chinese: sentences, with translations"),
        OWN: _("My own texts"),
    }
    chosen = box(_("Texts to measure on"), "headreport.texts", names, usual, width=320)
    if chosen == OWN:
        return model_input.box("head_report.texts", MOST_CHARACTERS)
    return computations.bundled(chosen)


def begin(model: ModelRef, corpus: Corpus, name: str) -> None:
    """Draws the button that starts or continues the measurement."""
    show_text(
        "The model reads {texts}, and VizFormer measures where every head attends. That takes seconds to "
        "minutes, in a separate process.",
        texts=counts.texts(len(corpus.passages)),
    )
    show_note("Only the first {n} tokens of each text are read.", n=one_text.MOST_TOKENS)
    if presses.button(_("Measure all heads"), type="primary", key="head_report.measure"):
        submit(model, corpus, name)
        st.rerun()


def submit(model: ModelRef, corpus: Corpus, name: str) -> None:
    come_back()
    code = named_code.code(model) if model_cache.is_code(model) else None
    request = Request(
        str(sources.folder(model)) if code is None else model.name,
        model.given,
        model.dtype,
        torch_setup.device(),
        corpus.name,
        tuple(f"{one.text}\t{one.target}" if one.target else one.text for one in corpus.passages),
        "" if code is None else own_code.digest(code),
    )
    mine = visitor()
    head_reports.reports().submit(name, request, mine.name, mine.address)


def status(name: str, was: head_reports.Phase) -> None:
    """Draws the progress of the measurement and the button that ends it, again every second while it runs."""
    now = head_reports.reports().look(name, watcher())
    if now is None or now.phase != was:
        st.rerun()
    if now.phase == "waiting":
        show_info("Waiting: {n} before this one. It begins by itself; keep this page open.", n=now.ahead)
    else:
        said = _("{done} of {n} texts", done=f"{now.done:,}", n=f"{now.texts:,}")
        st.progress(now.done / max(now.texts, 1), text=said)
    st.button(_("Stop"), key="head_report.stop", on_click=leave, args=(name,))


def watcher() -> str:
    """Who watches, as a name that nobody else has."""
    if _WATCHER not in st.session_state:
        st.session_state[_WATCHER] = secrets.token_hex(8)
    return str(st.session_state[_WATCHER])


def look(name: str) -> head_reports.State | None:
    """The state of a report; a reader who has stopped watching it does not keep it running by asking."""
    return head_reports.reports().look(name, None if has_left(name) else watcher())


def has_left(name: str) -> bool:
    """Whether this reader has stopped watching the report."""
    return st.session_state.get(_LEFT) == name


def leave(name: str) -> None:
    st.session_state[_LEFT] = name
    head_reports.reports().stop(name, watcher())


def come_back() -> None:
    """Notes that this reader watches the report again."""
    st.session_state[_LEFT] = None


def left(now: head_reports.State) -> None:
    """Draws the state of a report for a reader who has stopped watching it, while others still wait for it."""
    done, n = f"{now.done:,}", f"{now.texts:,}"
    show_info("Stopped for you. Others wait for the same report, so it goes on: {done} of {n} texts.", done=done, n=n)
    st.button(_("Watch again"), key="head_report.watch", on_click=come_back)


def ended(model: ModelRef, corpus: Corpus, name: str, now: head_reports.State) -> None:
    """Why there is no report, and what can be done."""
    if now.phase == "stopped":
        show_info("Stopped after {done} of {n} texts. It goes on from there.", done=f"{now.done:,}", n=f"{now.texts:,}")
        label = _("Continue")
    elif now.phase == "unreadable":
        show_error("The model does not open, or it can read none of these texts. Choose other texts or another model.")
        st.page_link(sitemap.REPORT.file, label=_("More on the page Model report"))
        label = _("Try again")
    else:
        show_error("The measurement failed, and it is not your mistake. The log of this server gives the reason.")
        label = _("Try again")
    if presses.button(label, key="head_report.again"):
        submit(model, corpus, name)
        st.rerun()
