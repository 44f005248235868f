"""What stands above the heads: what the model wrote, what was checked of it, the picture, and aids to read it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer import figures
from vizformer.analysis import kinds
from vizformer.checkpoints.agreement_check import is_possible
from vizformer.errors import VizformerError
from vizformer.messages import Message
from vizformer.web.catalogue import head_pictures, model_cache, subject_cache
from vizformer.web.catalogue.bounded_cache import Cached
from vizformer.web.catalogue.long_work import LongWork
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.inside_streamlit import get_script_run_ctx
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import LEVELS, OVERS, PICTURES, WITHOUTS, Kind
from vizformer.web.widgets import chart, model_suggestions, position_choice
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.position_choice import ask_why
from vizformer.web.widgets.watched_work import reader
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, show_info, show_note, translate

POLL = 2.0  # seconds
COMPARING = LongWork(away=5 * POLL, at_once=1)  # a process with two copies of a model; who has left does not want it
LONGEST = 24  # characters of the text that was compared
_TEXT = "vizformer.trust"  # model -> the text that it opened on, which is compared


def above(subject: Subject) -> None:
    """The translation, the kind of attention and the picture in one line, so that the heads are in sight at once."""
    known = kinds(subject.trace)
    state.fit(kind=known)
    elsewhere = subject.model.is_from_elsewhere
    if len(known) == 1:  # nothing to choose, nor anything that was translated
        place: AbstractContextManager[object] = nullcontext()
        if elsewhere:
            place, checked = st.columns([2, 5], vertical_alignment="bottom")
            with checked:
                line(subject)
        with place, st.container(key="bar-place-picture"):
            picture()
        return
    words_of, which, how = st.columns([4, 9, 4], vertical_alignment="center")
    with words_of:
        translation(subject)
    with which, st.container(key="bar-place-kind"):
        kind(known)
    with how, st.container(key="bar-place-picture"):
        picture()
    if elsewhere:
        line(subject)


@guarded()
def translation(subject: Subject) -> None:
    """What the model made of the sentence (or the target that it was given), in words."""
    if (made := subject.translation) is None:
        return
    given, bundled = bool(subject.target.strip()), not subject.model.is_from_elsewhere
    if given:
        caption = _("Given target") if model_suggestions.writes(subject.model) else _("What the decoder reads")
    else:  # a model that was opened may just as well have been trained to repair or to sum up
        caption = _("The model's translation") if bundled else _("What the model writes")
    with st.container(horizontal=True, vertical_alignment="center", key="cut-off" if subject.is_cut_off else None):
        st.caption(caption, width="content")
        st.text(made or _("(nothing: the model ended at once)"), width="content")
    if subject.is_cut_off:
        cut = _("Cut off: the model wrote no end mark.")
        known = _("Cut off: the model wrote no end mark. It works best with short everyday sentences.")
        st.caption(known if bundled else cut)


@guarded()
def kind(known: Sequence[Kind]) -> None:
    st.segmented_control(
        _("Kind of attention"), known, format_func=labels.kind_button, required=True, **state.bind("kind")
    )


@guarded()
def picture() -> None:
    names = {"map": _("Map"), "lines": _("Lines"), "text": _("Text")}
    st.segmented_control(_("Picture"), PICTURES, format_func=names.__getitem__, required=True, **state.bind("picture"))


@guarded()
def line(subject: Subject) -> None:
    """Draws the checks of a model from elsewhere, and its agreement with transformers on the text that it opened on."""
    model = subject.model
    if model_cache.is_recorded(model):
        _recorded(model)
        return
    text = st.session_state.setdefault(_TEXT, {}).setdefault(model, subject.text)
    if model_cache.glance(model).format != "hugging-face":
        _say(model, _("Files of this kind are compared with no other program."))
    elif not is_possible():
        _say(model, _("Not compared with transformers, which is not installed here."))
    elif model_cache.agreement.holds(model, text):
        _say(model, _compared(model, text))
    elif isinstance(failed := st.session_state.get(f"vizformer.trust.{model}"), Message):
        _say(model, _("Not compared with transformers: {reason}", reason=plain(translate(failed))))
    else:
        begun = partial(_say, model, _("Comparing with transformers …"))
        st.fragment(guarded()(_watch), run_every=POLL)(model_cache.agreement, (model, text), begun)


def _recorded(model: ModelRef) -> None:
    """Whether what is recorded of the model's own code is all there is to say, once that has been tried."""
    if model_cache.checks.holds(model):
        _beside_report(_tried(model))
    elif isinstance(failed := st.session_state.get(f"vizformer.trust.{model}"), Message):
        _beside_report(_("Recorded from the model's own code, not checked: {reason}", reason=plain(translate(failed))))
    else:
        begun = partial(_beside_report, _("Recorded from the model's own code; the recording is being checked …"))
        st.fragment(guarded()(_watch), run_every=POLL)(model_cache.checks, (model,), begun)


def _tried(model: ModelRef) -> str:
    try:
        found = model_cache.checks(model)
    except VizformerError as error:
        return _("Recorded from the model's own code, not checked: {reason}", reason=plain(translate(error.message)))
    if found.exact and found.whole and found.tokenwise:
        return _(
            "Recorded from the model's own code: exact and complete (tested with {n} tokens).",
            n=", ".join(map(str, found.lengths)),
        )
    wrong = "; ".join(translate(one, plain) for one in found.said)
    return "**" + _("Recorded from the model's own code, but not complete: {wrong}.", wrong=wrong) + "**"


def _watch(work: Cached[..., Any], call: tuple[Any, ...], begun: Callable[[], None]) -> None:
    """Begins work when the page has been looked at for a while, and looks whether it is there; `begun` says so."""
    key = f"vizformer.trust.{call[0]}"
    state = st.session_state.get(key)
    if state is None:
        if _has_time_passed():  # the first run is the page's own: its picture comes first
            st.session_state[key] = "begun"
            COMPARING.begin(work, call, reader())
    else:
        try:
            going = COMPARING.look(work, call, reader())
        except VizformerError as error:
            st.session_state[key] = error.message
            st.rerun()
        if going is None:
            del st.session_state[key]  # (it begins again, should it have been left)
            st.rerun()
    begun()


def _has_time_passed() -> bool:
    """Whether only this part runs, as it does by itself after a while."""
    context = get_script_run_ctx()
    return context is not None and bool(context.fragment_ids_this_run)


def _compared(model: ModelRef, text: str) -> str:
    try:
        found = model_cache.agreement(model, text)
    except VizformerError as error:
        return _("Not compared with transformers: {reason}", reason=plain(translate(error.message)))
    values = dict(
        version=found.version,
        text=plain(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"),
        apart=f"{found.largest:.0e}",
    )
    if found.holds:
        return _("As in transformers {version} to {apart}, on “{text}”.", **values)
    return "**" + _("Not as in transformers {version}: {apart} apart, on “{text}”.", **values) + "**"


def _say(model: ModelRef, compared: str) -> None:
    report = model_cache.glance(model)
    checked = _(
        "{n} of {total} tensors used, no NaN or infinity.", n=len(report.with_fate("used")), total=len(report.tensors)
    )
    _beside_report(f"{checked} {compared}")


def _beside_report(said: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="trust"):
        st.caption(said, width="stretch")
        st.page_link(sitemap.REPORT.file, label=translate(sitemap.REPORT.title), width="content")


@laboratory
def draw_next_token(subject: Subject) -> None:
    if not model_cache.predicts(subject.model):
        show_note(
            "This model's files contain no output layer that predicts tokens, so there is no prediction to show, "
            "only its attention and its arithmetic."
        )
        return
    stack = position_choice.stack(subject)
    st.subheader(_("What comes next?") if stack == "decoder" else _("Which token belongs here?"), anchor=False)
    position = position_choice.choose(subject, key="next")
    best = subject_cache.predictions(subject, position)
    chart.show(
        figures.next_token_bars(
            labels.told_apart([p.token for p in best]),
            np.array([p.probability for p in best], dtype=np.float32),
            title=_("Most probable after position {position}", position=position)
            if stack == "decoder"
            else _("Most probable at position {position}", position=position),
        ),
        key="next.bars",
    )
    ask_why(best[0].token.text, position, key="next.why")


# Ways of reading many weights: heads put together, keys left out, whole words; and what each of them does, in words.

SHOWN = 6  # keys that are named


def choose(subject: Subject, kind: Kind, why: str) -> DeltaGenerator:
    """The choices, folded away, and beside them why this head is shown and what is chosen; the place for more of it."""
    left, right = st.columns([3, 13], vertical_alignment="center")
    beside = right.container(gap="xxsmall") if subject.model.is_from_elsewhere else right
    guarded()(_choose)(subject, kind, why, left, beside)
    return beside


def _choose(subject: Subject, kind: Kind, why: str, left: DeltaGenerator, right: DeltaGenerator) -> None:
    overs = [over for over in OVERS if kind != "cross" or over != "rollout"]
    state.fit(over=overs)
    with left.popover(_("Reading aids"), width="stretch"):
        names = {
            "one": _("one head"),
            "mean": _("mean over the heads of a layer"),
            "max": _("largest weight among the heads of a layer"),
            "rollout": _("rollout through the layers"),
        }
        st.radio(_("Heads"), overs, format_func=names.__getitem__, **state.bind("over"))
        names = {
            "none": _("none"),
            "first": _("the first token"),
            "marks": _("marks: special tokens and punctuation"),
            "sinks": _("the sinks that are found"),
        }
        st.radio(_("Keys left out"), WITHOUTS, format_func=names.__getitem__, **state.bind("without"))
        names = {"tokens": _("Tokens"), "words": _("Words")}
        st.radio(_("Rows and columns"), LEVELS, format_func=names.__getitem__, **state.bind("level"))
    if said := [*([why] if why and state.view().over == "one" else []), *_said(subject, kind)]:
        right.caption("  \n".join(said))


def names_together(over: str) -> dict[str, str]:
    """The labels of the map for all heads of a layer together, and for their small maps."""
    names = {
        "mean": (_("Layer {layer}, mean over its heads"), _("All layers (mean)")),
        "max": (_("Layer {layer}, largest weight of its heads"), _("All layers (largest weight)")),
        "rollout": (_("Rollout up to layer {layer}"), _("All layers (rollout)")),
    }
    name, title = names[over]
    return {"head_name": name, "grid_title": title, "head_short": ""}


def _said(subject: Subject, kind: Kind) -> Iterator[str]:
    view = state.view()
    if view.over == "mean":
        yield _("Mean over the heads: each row that sees a key sums to 1.")
    elif view.over == "max":
        yield _("The largest weight of any head, cell by cell: rows sum to 1 or more.")
    elif view.over == "rollout":
        yield _(
            "Rollout (Abnar & Zuidema 2020): each layer is half the mean of its heads and half the identity; a "
            "row gives the share of each input token."
        )
    if view.over != "one" and view.picture == "lines":
        yield _("Combined heads are shown as a map.")
    if view.without != "none":
        yield _left_out(subject, kind)
    if view.level == "words" and view.picture == "map":
        yield _(
            "Whole words: the sum over the pieces of a key word, the mean over the pieces of a query word. A click "
            "opens a word."
        )


def _left_out(subject: Subject, kind: Kind) -> str:
    without = state.view().without
    keys = subject_cache.left_out(subject, kind, without)
    if not keys:
        return (
            _("No key is a sink here: none gets more than 0.3 of the attention of a tenth of the heads.")
            if without == "sinks"
            else _("There is no such key here.")
        )
    tokens = subject.trace.tokens[labels.stacks(kind)[1]]
    names = ", ".join(f"{key} “{plain(tokens[key].text)}”" for key in keys[:SHOWN]) + (
        " …" if len(keys) > SHOWN else ""
    )
    return _(
        "Keys left out: {keys}. The rest of each row is divided by its sum. The model itself saw these keys.",
        keys=names,
    )


def fits(subject: Subject, kind: Kind) -> bool:
    """Whether the heads can be put together; says so where the text is too long for it."""
    longest = max(len(subject.trace.tokens[stack]) for stack in labels.stacks(kind))
    if longest <= head_pictures.MOST_TOGETHER:
        return True
    show_info(
        "Heads are combined for texts of at most {most} tokens; this one has {n}. Longer ones take minutes "
        "and too much memory of a shared server. Choose one head.",
        most=f"{head_pictures.MOST_TOGETHER:,}",
        n=f"{longest:,}",
    )
    return False
