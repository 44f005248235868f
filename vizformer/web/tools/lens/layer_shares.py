"""The logit of a recorded model's answer as a sum over its blocks, and the share of the heads."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.explain import Proof
from vizformer.explain.step import limit
from vizformer.messages import N_
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.lens import computations
from vizformer.web.tools.lens.terms import draw_keys
from vizformer.web.tools.lens.token_choice import Asked
from vizformer.web.widgets import chart, proof_badge
from vizformer.web.widgets.choices import box
from vizformer.web.words.i18n import _, show_note

HEADS = 12


def draw_layer_shares(subject: Subject, asked: Asked) -> None:
    """What every block adds to the logit of the answer, and how closely the sum is the logit."""
    st.subheader(_("Direct logit attribution"), anchor=False)
    found = computations.layer_shares(subject, asked.position, asked.token, asked.against)
    names = [_("embeddings"), *found.names[1:], _("biases")]
    values = np.array([*found.values, found.constant])
    chart.show(figures.logit_terms(names, values), key="lens.shares")
    show_note(
        "Each block's share is the dot product of its output with the direction of the answer, by the calls "
        "after the model's last block. Nonlinear parts keep their values: the divisor of a norm, the ratio "
        "of an activation. Shares of a sum are not effects."
    )
    dtype = subject.checkpoint.dtype
    holds = bool(found.error <= limit(np.array([np.abs(values).sum()]), dtype)[0])
    proof = Proof(N_("the model's own logit"), found.error, holds, direct=True, precision=str(dtype)[6:])
    proof_badge.show(proof, edited=bool(subject.edited))
    _draw_heads(subject, asked)


def _draw_heads(subject: Subject, asked: Asked) -> None:
    """The heads that add or take off most, where what heads bring sums to what their attention adds."""
    found = computations.head_shares(subject, asked.position, asked.token, asked.against)
    shares = [(site, head, value) for site, values in found.items() for head, value in enumerate(values or ())]
    if None in found.values():
        sites = ", ".join(site for site, values in found.items() if values is None)
        show_note(
            "Heads have no share of their own in {sites}: their outputs do not sum to the addition to the "
            "stream, or a norm follows the sum.",
            sites=sites,
        )
    if shares:
        st.subheader(_("The heads with the largest contributions"), anchor=False)
        most = sorted(shares, key=lambda one: -abs(one[2]))[:HEADS]
        names = [_("{site}, head {head}", site=site, head=head) for site, head, _value in most]
        chart.show(figures.logit_terms(names, np.array([value for *_names, value in most])), key="lens.head_shares")
        _draw_one(subject, asked, most, names)


def _draw_one(subject: Subject, asked: Asked, most: list[tuple[str, int, float]], names: list[str]) -> None:
    """One of these heads, key by key; where none was chosen the first."""
    places = computations.places(subject)
    parts = {f"{places[site]}.{head}": (site, head) for site, head, _value in most}
    first = next(iter(parts))
    said = {
        "": _("the head with the largest contribution: {name}", name=names[0]),
        **dict(zip(parts, names, strict=True)),
    }
    st.subheader(_("One part"), anchor=False)
    site, head = parts[box(_("Head"), "lens.part", said, width="stretch") or first]
    found = computations.recorded_keys(subject, asked.position, asked.token, asked.against, site, head)
    draw_keys(subject, asked, places[site], head, found)
