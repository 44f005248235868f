"""Patches between two prompts: parts of the clean run in the corrupted one."""

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.analysis import Kind, kinds
from vizformer.analysis.heads.maps import n_layers
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.tools.what_if import patched_cells
from vizformer.web.tools.what_if.patch_maps import maps
from vizformer.web.tools.what_if.patched_cells import Asked
from vizformer.web.tools.what_if.prompts import Prompts, choose, second
from vizformer.web.widgets import telling
from vizformer.web.widgets.choices import BESIDE, kind_of_attention, one_of
from vizformer.web.widgets.lab import aside
from vizformer.web.words.ablated_parts import signed
from vizformer.web.words.i18n import _, show_text


def draw_between_prompts(subject: Subject, settings: DeltaGenerator) -> None:
    with settings:
        names = {
            "stream": _("residual stream"),
            "heads": _("outputs of heads"),
            "heads_by_position": _("outputs of heads, by position"),
            "patterns": _("patterns of heads"),
        }
        what = one_of(_("What is patched"), "whatif.what", names, labelled=False)
    corrupted = second(subject)
    picture, beside = st.columns(BESIDE, gap="medium")
    with beside:
        prompts = choose(subject, corrupted)
        if prompts is not None:
            explained(prompts)
    if prompts is None:
        return
    with picture:
        with settings:
            asked = patch_choice(prompts, what)
        maps(prompts, asked)


def explained(prompts: Prompts) -> None:
    """Explains what is measured, and what a cell means."""
    answer, other = (patched_cells.text_of(prompts, token) for token in (prompts.answer, prompts.other))
    pair = prompts.pair
    show_text(
        "Measured: the logit of “{answer}” minus that of “{other}”, {clean} for the clean prompt, "
        "{corrupted} for the corrupted one.",
        answer=answer,
        other=other,
        clean=signed(float(pair.difference(pair.clean.logits))),
        corrupted=signed(float(pair.difference(pair.corrupted.logits))),
    )
    st.text(_("Each cell: the share of the gap between these two values that its patch restores; 0 is none, 1 is all."))
    st.caption(
        _(
            "The model reads the corrupted prompt, with one part of its numbers replaced by those of the clean "
            "prompt. If the clean answer returns, that part carries the difference (Vig et al. 2020; Meng et al. "
            "2022)."
        )
    )


def patch_choice(prompts: Prompts, what: str) -> Asked:
    """The boxes that say where it is patched, and why they open on this layer, if nobody chose it."""
    trace = prompts.clean.trace
    usable = [kind for kind in kinds(trace) if what != "stream" or kind != "cross"]
    if what == "stream" and state.view().kind == "cross":  # nobody asked for it here
        state.update(kind="decoder")
    kind = kind_of_attention(
        usable, names={"encoder": _("Encoder"), "decoder": _("Decoder")} if what == "stream" else None
    )
    if what != "heads_by_position":
        return Asked(what, kind)  # type: ignore[arg-type]  # (one of `names`)
    layers = n_layers(trace, kind)
    state.fit(layer=layers)
    why = _open_on_a_layer(prompts, kind)
    st.selectbox(
        _("Layer"),
        range(layers),
        format_func=lambda layer: _("layer {layer}", layer=layer),
        label_visibility="collapsed",
        width=160,
        **state.bind("layer"),
    )
    aside(why)
    return Asked("heads_by_position", kind, state.view().layer)


def _open_on_a_layer(prompts: Prompts, kind: Kind) -> str:
    """Shows the layer in which a patch brings back most by the estimate, where nobody chose one; why, in a sentence."""
    if not patched_cells.is_estimated(prompts):
        return telling.open_on_a_layer(prompts.clean, kind)
    found = patched_cells.estimated(prompts, Asked("heads_by_position", kind))
    layer = int(np.nanmax(found, axis=(1, 2)).argmax())
    if not state.suggest(layer=layer):
        return ""
    return _("Shown: layer {layer}. By the estimate it has the cell that restores most.", layer=layer)
