"""Of a recorded model the logit of the answer as a sum over its blocks."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.explain import Proof
from vizformer.explain.step import TOLERANCE
from vizformer.messages import N_
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.lens import computations
from vizformer.web.tools.lens.token_choice import Asked
from vizformer.web.widgets import chart, proof_badge
from vizformer.web.words.i18n import _, show_note


def draw_layer_shares(subject: Subject, asked: Asked) -> None:
    """What every block adds to the logit of the answer, and how closely the sum is the logit."""
    st.subheader(_("What adds to its logit"), anchor=False)
    found = computations.layer_shares(subject, asked.position, asked.token, asked.against)
    names = [_("embeddings"), *found.names[1:], _("biases")]
    values = np.array([*found.values, found.constant])
    chart.show(figures.logit_terms(names, values), key="lens.shares")
    show_note(
        "Each block's share is what it wrote into the row times the direction of the answer, by the calls that this model "
        "makes after its last block. What is not linear in these is held as it was: the number by which a norm divides, the "
        "ratio by which an activation bends. Shares of a sum are no effects."
    )
    size = max(1.0, float(np.abs(values).sum()))
    holds = found.error <= TOLERANCE * size
    proof_badge.show(Proof(N_("the model's own logit"), found.error, holds, direct=True), edited=bool(subject.edited))
