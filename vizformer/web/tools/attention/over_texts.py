"""What the head that is shown does over a few short texts, and what taking it out costs: a sentence that comes later.

Only for models that a reader opened: whoever looks at one for the first time wants to know which heads are worth a look.
The picture comes first: nothing is begun before the page was looked at for a while.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import streamlit as st

from vizformer.analysis import Kind
from vizformer.analysis.corpus_heads.habits import EVERY, LEAST, Habits
from vizformer.web.catalogue.bounded_cache import Cached
from vizformer.web.catalogue.heads_over_texts import LOOKING, Texts, cost, look, texts
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.attention.heads_of_kind import Heads
from vizformer.web.widgets.watched_work import reader
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _

POLL = 1.0  # seconds between two looks, and before it begins
_WANTED, _FAILED = "attention.over_texts", "attention.over_texts.failed"

Place = tuple[int, int]
Work = tuple[Cached[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class _Wanted:
    """What a reader looks at, since when, and what was begun for it."""

    about: tuple[ModelRef, Kind, Place]
    since: float
    work: Work | None = None


def is_looked_at(heads: Heads) -> bool:
    """Whether the heads are measured over texts."""
    both, view = heads.subject.config.architecture == "encoder-decoder", state.view()
    mine = heads.subject.model.is_from_elsewhere and not heads.subject.edited and view.over == "one"
    return mine and (heads.kind == "encoder" or (heads.kind == "decoder" and not both))


def strip(heads: Heads) -> dict[str, Any] | None:
    """The strongest head of each habit, for the small maps; those of the sentence alone until more is known."""
    model, kind = heads.subject.model, heads.kind
    if not is_looked_at(heads):
        return None
    found = look(model, kind) if look.holds(model, kind) else None
    if found is None:
        return {"texts": 0, "resting": 0, "heads": []}
    strongest = [asdict(one) for one in found.habits.strongest()]
    return {"texts": len(found.habits.shares), "resting": found.habits.resting, "heads": strongest}


@guarded()
def tell(heads: Heads) -> None:
    """The sentence of the head that is shown; what is missing of it is begun, and watched."""
    if not is_looked_at(heads):
        return
    model, kind, place = heads.subject.model, heads.kind, (state.view().layer, state.view().head)
    work = missing(model, kind, place)
    failed = st.session_state.get(_FAILED)
    if failed is not None and failed[0] == work:
        raise failed[1]
    if work is None:
        leave()
        show(model, kind, place)
    else:
        st.fragment(guarded()(_watch), run_every=POLL)(model, kind, place, look.holds(model, kind))


def missing(model: ModelRef, kind: Kind, place: Place) -> Work | None:
    """What is to be computed next; None where all is there that there will be."""
    if texts.holds(model) and texts(model).refused is not None:
        return None
    if not look.holds(model, kind):
        return look, (model, kind)
    if texts(model).way is None or cost.holds(model, kind, *place):
        return None
    return cost, (model, kind, *place)


def leave() -> None:
    """What this reader wanted is not wanted any more."""
    wanted = st.session_state.pop(_WANTED, None)
    if wanted is not None and wanted.work is not None:
        function, call = wanted.work
        LOOKING.leave(function, call, reader())


def _watch(model: ModelRef, kind: Kind, place: Place, known: bool) -> None:
    """What is known by now; drawn again and again until all is there."""
    work, about = missing(model, kind, place), (model, kind, place)
    if work is None or (not known and look.holds(model, kind)):  # the small maps show it too
        st.rerun()
    show(model, kind, place)
    wanted: _Wanted | None = st.session_state.get(_WANTED)
    if wanted is None or wanted.about != about:
        leave()
        st.session_state[_WANTED] = _Wanted(about, time.monotonic())
        return
    try:
        going = LOOKING.look(*work, reader())
    except Exception as error:  # (said here, it would be gone with the next look)
        st.session_state[_FAILED] = work, error
        st.rerun()
    if going is None and time.monotonic() - wanted.since >= 0.9 * POLL:
        LOOKING.begin(*work, reader())
        st.session_state[_WANTED] = replace(wanted, work=work)


def show(model: ModelRef, kind: Kind, place: Place) -> None:
    """The sentence, as far as it is known."""
    given = texts(model) if texts.holds(model) else None
    found = look(model, kind) if look.holds(model, kind) else None
    if given is not None and given.refused == "unreadable":
        st.caption(_("Not measured over other texts: this model cannot read the bundled ones."))
    elif given is not None and given.refused == "large":
        st.caption(_("Not measured over other texts: with a model of this size that would take long."))
    elif given is None or found is None:
        st.caption(_("Measuring over other texts …"))
    else:
        said = [does(found.habits, place)]
        if given.way is not None:
            known = cost.holds(model, kind, *place)
            said.append(costs(given, cost(model, kind, *place)) if known else _("What it costs is being measured …"))
        st.caption(" ".join(said), help=terms(given))


def does(habits: Habits, place: Place) -> str:
    """What a head gives most of its attention to."""
    found = habits.of(*place)
    names = {
        "previous": _("the token before"),
        "own": _("the token itself"),
        "next": _("the token after"),
        "delimiter": _("punctuation"),
        "duplicate": _("earlier tokens like the query"),
        "induction": _("what followed an earlier token like the query"),
        "rest": _("the first and the last token"),
    }
    values = {"n": len(habits.shares), "target": names[found.target], "share": f"{found.mean:.2f}"}
    values |= {"low": f"{found.low:.2f}", "high": f"{found.high:.2f}"}
    if found.mean < LEAST:
        return _("Over {n} texts this head has none of the usual habits (at most {share}, to {target}).", **values)
    return _("Over {n} texts this head gives {share} of its attention to {target} ({low} to {high}).", **values)


def costs(given: Texts, found: Sequence[float]) -> str:
    """What changes without the head."""
    signed = "{:.3f}" if given.way == "vector" else "{:+.3f}"
    mean, low, high = (
        signed.format(value).replace("-", "−") for value in (sum(found) / len(found), min(found), max(found))
    )
    values = {"mean": mean, "low": low, "high": high}
    if given.way == "vector":
        return _("Without it the vector of a text turns by {mean} (1 − cosine; {low} to {high}).", **values)
    if given.way == "masked":
        return _("Without it the loss of a hidden token changes by {mean} nats ({low} to {high}).", **values)
    return _("Without it the loss of the next token changes by {mean} nats ({low} to {high}).", **values)


def terms(given: Texts) -> str:
    """What was measured on what."""
    language = _("English: passages of a children's book") if given.language == "en" else ""
    said = [
        _(
            "{n} short texts of the page “What each head does” ({language}), {tokens} tokens in all. A share is a mean over "
            "the tokens that have something to look at; in brackets stand the text with the least and that with the most. "
            "“Without it”: the output of the head is set to 0.",
            n=len(given.tokens),
            language=language or _("Chinese: sentences, with translations"),
            tokens=sum(map(len, given.tokens)),
        )
    ]
    if given.way == "masked":
        said.append(_("Every {n}th token of a text is hidden by [MASK].", n=EVERY))
    elif given.way == "vector":
        said.append(_("The rows of a text become one vector as the model's files say: {way}.", way=given.pooling))
    return " ".join(said)
