"""A layer by hand: every matrix of a whole layer, for the typed sentence or for the lectures' toy."""

from typing import TYPE_CHECKING

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, subject_cache, toy_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.widgets import row_names
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.widgets.number_editor import set_by_hand, toy_editor, what_changed
from vizformer.web.widgets.step_view import overview, walk
from vizformer.web.words import errors, labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from vizformer.explain import Step


def page() -> None:
    names = {"sentence": _("Your sentence"), "toy": _("The lectures' toy: 3 rows of 4 numbers")}
    st.segmented_control(
        _("Material"), list(names), format_func=names.__getitem__, required=True, **state.bind("material")
    )
    if state.view().material == "toy":
        toy()
    elif (subject := subject_box()) is not None:
        place(subject)
        sentence(subject)


def stack_of_site() -> str:
    return "encoder" if state.view().site == "encoder" else "decoder"


def choose_stack(known: list[str]) -> str:
    """Encoder or decoder; the link keeps it as the site of the other pages."""
    titles = {"encoder": _("Encoder"), "decoder": _("Decoder")}
    if stack_of_site() not in known:
        state.update(site=known[0])
    if st.session_state.get("layer.stack") != stack_of_site():
        st.session_state["layer.stack"] = stack_of_site()
    st.segmented_control(
        _("Stack"), known, format_func=titles.__getitem__, required=True, key="layer.stack", on_change=_take_stack
    )
    return stack_of_site()


def _take_stack() -> None:
    state.update(site=st.session_state["layer.stack"], layer=0, step=0)


@guarded()
def place(subject: Subject) -> None:
    """Which layer of which stack."""
    which, number = st.columns([2, 1])
    with which:
        stack = choose_stack([name for name in ("encoder", "decoder") if name in subject.trace.tokens])
    config = model_cache.checkpoint(subject.model).model.config
    n_layers = config.n_encoder_layers if stack == "encoder" else config.n_decoder_layers
    state.fit(layer=n_layers)
    number.selectbox(_("Layer"), range(n_layers), **state.bind("layer"))


@st.fragment
@guarded()
def sentence(subject: Subject) -> None:
    """The chosen layer for the typed sentence; after the last one, the prediction."""
    stack, layer = stack_of_site(), state.view().layer
    steps, candidates = subject_cache.layer(subject, stack, layer)
    tokens = {name: labels.texts(found) for name, found in subject.trace.tokens.items()}
    queries = row_names.queries(subject, stack)

    def names(step: "Step") -> dict[str, list[str]]:
        keys = tokens["encoder"] if step.key.startswith("cross.") else tokens[stack]
        return {"queries": queries, "keys": keys, "candidates": candidates}

    what_changed(subject)
    before = subject_cache.layer(subject.unedited, stack, layer)[0] if subject.edited else None
    walk(steps, names, before)


@st.fragment
@guarded()
def toy() -> None:
    """The toy's encoder or decoder layer, on one screen and step by step."""
    stack = choose_stack(["encoder", "decoder"])
    edited = state.view().toy
    set_by_hand("toy")  # first: whatever is wrong with the numbers, the way back is on the page
    try:
        steps = toy_cache.toy_layer(stack, edited)
    except VizformerError as error:
        errors.show(error.message)
        st.caption(_("The numbers set by hand do not fit here and are left out. Undo or reset them."))
        edited = ""
        steps = toy_cache.toy_layer(stack)
    st.caption(
        _(
            "What torch.manual_seed(42), torch.randn(3, 1, 4) and nn.TransformerEncoderLayer(d_model=4, nhead=2, "
            "dim_feedforward=8, dropout=0.0) give; the decoder layer follows from the same random numbers."
        )
    )
    toy_editor(stack)
    overview(steps, lambda step: {})
    walk(steps, lambda step: {}, toy_cache.toy_layer(stack) if edited else None)


page()
