"""The Python code that computes what the page shows; it runs on its own."""

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.lens.token_choice import Asked
from vizformer.web.widgets.folded_box import folded
from vizformer.web.widgets.in_python import opening
from vizformer.web.words.i18n import _


def draw_in_python(subject: Subject, asked: Asked) -> None:
    with folded(_("The same in Python"), key="lens.python") as is_open:
        if is_open:
            st.code(code(subject, asked), language="python", wrap_lines=True)


def code(subject: Subject, asked: Asked) -> str:
    """Evidence, lens, terms and input of this answer."""
    against = repr(asked.against)
    lines = [
        *opening(subject),
        f"why = vf.analysis.answer_evidence(checkpoint, trace, {asked.position}, {asked.token}, against={against})",
        "print(why.to_frame(vf.analysis.taken_out(checkpoint, trace, why)))",
        f"lens = vf.analysis.logit_lens(checkpoint, trace, [{asked.position}], targets=[{asked.token}])",
        "print(lens.rank, lens.target_probability)",
        f"terms = vf.analysis.logit_attribution(checkpoint, trace, {asked.position}, {asked.token}, against={against})",
        "print(terms.logit, terms.total, terms.sorted[:5])",
        f"tokens = vf.analysis.input_attribution(checkpoint, trace, {asked.position}, {asked.token}, against={against})",
        "print(tokens.integrated, tokens.missing)",
    ]
    return "\n".join(lines)
