"""What stands in the place of the pictures while a large model is read: what it is, what it takes, how far it is."""

import time
from collections.abc import Callable

import streamlit as st

from vizformer.web.catalogue import model_cache, openings, precision, sources
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words import model_words
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _


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
