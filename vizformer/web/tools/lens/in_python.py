"""The same in Python: what is on the page, as lines that run by themselves."""

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import edits
from vizformer.web.tools.lens.asked import Asked
from vizformer.web.widgets.folded import folded
from vizformer.web.words.i18n import _


def in_python(subject: Subject, asked: Asked) -> None:
    """The box with the code."""
    with folded(_("The same in Python"), key="lens.python") as is_open:
        if is_open:
            st.code(code(subject, asked), language="python", wrap_lines=True)


def code(subject: Subject, asked: Asked) -> str:
    """Lens, terms, input and scan of this answer."""
    model = subject.model
    name = model.id if model.source in ("bundled", "hub") else "path/to/the/model"
    answers = "".join(f", {field}={value!r}" for field, value in model.answers)
    dtype = "" if model.dtype == "float32" else f", dtype={model.dtype!r}"
    given = f", target={subject.target!r}" if subject.target.strip() else ""
    lines = ["import vizformer as vf", "from vizformer.analysis.scan import scan", ""]
    if subject.edited:
        lines[1:1] = ["from vizformer.model import Cell, Edit"]
        given += f", edit={edits.edit(subject.edited)!r}"
    against = repr(asked.against)
    lines += [
        f"checkpoint = vf.load({name!r}{dtype}{answers})",
        f"trace = checkpoint.trace({subject.text!r}{given})",
        f"lens = vf.analysis.logit_lens(checkpoint, trace, [{asked.position}], targets=[{asked.token}])",
        "print(lens.rank, lens.target_probability)",
        f"terms = vf.analysis.logit_attribution(checkpoint, trace, {asked.position}, {asked.token}, against={against})",
        "print(terms.logit, terms.total, terms.sorted[:5])",
        f"tokens = vf.analysis.input_attribution(checkpoint, trace, {asked.position}, {asked.token}, against={against})",
        "print(tokens.integrated, tokens.missing)",
        f"print(scan(checkpoint, trace, {asked.position}, {asked.token}))",
    ]
    return "\n".join(lines)
