"""Ways of reading many weights: heads put together, keys left out, whole words; and what each of them does, in words."""

from collections.abc import Iterator

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.web.catalogue import head_pictures, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.view import LEVELS, OVERS, WITHOUTS, Kind
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, show_info

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
