"""What if: heads and sublayers taken out of the forward, or patched from another prompt; and what becomes of the answer."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.components import table
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.pages.what_if.all_parts import draw_all_parts, draw_all_tokens
from vizformer.web.pages.what_if.between_prompts import draw_between_prompts
from vizformer.web.pages.what_if.set_of_prompts import draw_set_of_prompts
from vizformer.web.widgets.choices import line, one_of
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words.i18n import _, show_info, show_note


def page() -> None:
    subject = subject_box()
    if subject is not None:
        parts(subject)


@laboratory
def parts(subject: Subject) -> None:
    if not model_cache.predicts(subject.model):
        show_info(
            "This model's files contain no output layer that predicts tokens, so no answer can change. Choose "
            "another model."
        )
        return
    if subject.trace.first_not_finite() is not None:  # which has been said: no answer can be compared
        return
    st.html(table.style())
    settings = line()
    with settings:
        ways = {"out": _("Ablation"), "between": _("Patching"), "set": _("Prompt set")}
        way = one_of(_("What to change"), "whatif.way", ways, labelled=False)
    if way == "between":
        draw_between_prompts(subject, settings)
    elif way == "set":
        draw_set_of_prompts(subject, settings)
    else:
        taken_out(subject, settings)


def taken_out(subject: Subject, settings: DeltaGenerator) -> None:
    """What is taken out: parts of the model, or tokens of the input."""
    names = {
        "parts": _("heads and sublayers") if subject.checkpoint.is_own else _("attention heads"),
        "tokens": _("input tokens"),
    }
    with settings:
        taken = one_of(_("What to remove"), "whatif.taken", names, labelled=False)
    if taken == "parts":
        draw_all_parts(subject, settings)
        return
    if subject.edited:
        show_note("Numbers set by hand are ignored here: this is the original model.")
    draw_all_tokens(subject.unedited, settings)


page()
