"""The assumptions that were made where a model's files say nothing: shown beside every picture of the model."""

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.frame import sitemap
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _

SHOWN = 6  # of them, above the pictures; captions of files and the page Model report have all


def assumed(model: ModelRef) -> list[str]:
    """What is assumed of a model, as `vizformer.load` is told it; nothing of one that says itself what it is."""
    try:
        found = model_cache.assumed(sources.stamped(model))
    except VizformerError:
        return []  # the page says what is wrong with it
    return [f"{name} = {value}" for name, value in found.items()]


def caption(model: ModelRef) -> str:
    """The assumptions as part of a picture's caption; empty where nothing is assumed."""
    said = assumed(model)
    return _("computed under these assumptions: {assumptions}", assumptions=", ".join(said)) if said else ""


def line(model: ModelRef) -> None:
    """One line above the pictures, with the way to the form."""
    said = assumed(model)
    if not said:
        return
    shown = ", ".join(said[:SHOWN])
    if more := len(said) - SHOWN:
        shown = _("{some} and {n} more", some=shown, n=more) if more > 0 else shown
    with st.container(horizontal=True, vertical_alignment="center"):
        said_of = _(
            "{model} is computed under these assumptions: {assumptions}.",
            model=plain(sources.title(model)),
            assumptions=plain(shown),
        )
        st.caption(said_of, width="stretch")
        st.page_link(sitemap.REPORT.file, label=_("Change the assumptions"), width="content")
