"""The line under a number that says whether the model computed the same."""

import math

import streamlit as st

from vizformer.explain import Proof
from vizformer.web.catalogue import torch_setup as computing
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import Markup, _, show_warning, translate


def show(proof: Proof, agrees: str = "", *, edited: bool = False) -> None:
    """Green where it holds, red where it does not; where numbers were set by hand, it need not."""
    values = {"anchor": Markup(translate(proof.anchor, plain)), "difference": f"{proof.difference:.1g}"}
    if not math.isfinite(proof.difference):
        show_warning("Not compared with {anchor}: its numbers are not finite.", **values)
    elif proof.holds and proof.direct:
        agrees = agrees or _(
            "Checked: differs from the model by at most {difference} (compared with {anchor}).", **values
        )
        st.success(agrees + precision(proof))
    elif proof.holds:
        agrees = agrees or _("Checked: differs from the model by at most {difference} (through {anchor}).", **values)
        st.success(agrees + precision(proof))
    elif edited:
        show_warning("You set numbers by hand, so {anchor} differs by up to {difference}.", **values)
    else:
        said = _("Differs from the model: {anchor} is off by up to {difference}.", **values)
        st.error(said + precision(proof))


def precision(proof: Proof) -> str:
    """What is added where the model computes in half precision: how exact agreement can be."""
    if proof.precision not in ("bfloat16", "float16"):
        return ""
    return " " + _(
        "(The model computes in {dtype}, with {bits} significant bits. Every result is rounded to them, here "
        "too; a few units in the last place are allowed.)",
        dtype=proof.precision,
        bits=computing.BITS[proof.precision],
    )
