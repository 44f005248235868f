"""What several laboratories of the lesson Masks share: the boxes for layer and head, and the lines under a mask."""

import streamlit as st

from vizformer.analysis import Kind, n_layers
from vizformer.components import mask
from vizformer.explain import Proof
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks import wording
from vizformer.web.lessons.masks.which_attention import tokens
from vizformer.web.link import state
from vizformer.web.widgets import proof_badge
from vizformer.web.words.i18n import _, translate


def place(subject: Subject, attention: Kind, *extra: float) -> list[st.delta_generator.DeltaGenerator]:
    """Boxes for the layer and the head, held within what the model has, and further columns beside them."""
    config, layers = subject.config, n_layers(subject.trace, attention)
    state.fit(layer=layers, head=config.n_heads)
    layer, head, *others = st.columns([1, 1, *extra], vertical_alignment="bottom")
    layer.selectbox(_("Layer"), range(layers), **state.bind("layer"))
    head.selectbox(_("Head"), range(config.n_heads), **state.bind("head"))
    return others


def own_mask(subject: Subject, attention: Kind) -> None:
    """Names the mask of the layer, where the model's layers have windows."""
    n = len(tokens(subject, attention)[0])
    if said := wording.own_mask(subject.config, attention, state.view().layer, n):
        st.caption(said)


def proof(found: Proof, *, own: bool) -> None:
    """Whether an independent computation gives the same, and whether the model itself uses the mask."""
    values = {"difference": f"{found.difference:.1g}", "anchor": translate(found.anchor)}
    if not found.holds:
        said = _("Differs from the model: {anchor} is off by up to {difference}.", **values)
    elif own:
        said = _(
            "The model itself uses this mask here. Checked: differs from it by at most {difference} (compared with "
            "{anchor}).",
            **values,
        )
    else:
        said = _(
            "The scores are the model's, the mask is laid over them here; it was not trained with it. Checked: "
            "differs from PyTorch by at most {difference} (compared with {anchor}).",
            **values,
        )
    (st.success if found.holds else st.error)(said + proof_badge.precision(found))


def only_first(n: int) -> None:
    """Says of how many positions the first are drawn, where not all of them are."""
    if n > mask.LARGEST:
        st.caption(
            _(
                "The first {shown} of {n} positions are drawn; everything is computed with all of them.",
                shown=mask.LARGEST,
                n=n,
            )
        )
