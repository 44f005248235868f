"""What if: heads and sublayers taken out of the forward, or patched from another prompt; and what becomes of the answer."""

import streamlit as st

from vizformer.components import table
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.what_if.all_neurons import all_neurons
from vizformer.web.tools.what_if.all_parts import all_parts
from vizformer.web.tools.what_if.all_tokens import all_tokens
from vizformer.web.tools.what_if.between_prompts import between_prompts
from vizformer.web.tools.what_if.learned_gates import learned_gates
from vizformer.web.tools.what_if.place import choose
from vizformer.web.tools.what_if.switched_off_parts import switched_off
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words.i18n import _


def page() -> None:
    subject = subject_box()
    if subject is not None:
        parts(subject)


@laboratory
def parts(subject: Subject) -> None:
    if not model_cache.predicts(subject.model):
        st.info(
            _(
                "This model's files hold no head that predicts tokens, so that no answer could change. Choose another model."
            )
        )
        return
    if subject.trace.first_not_finite() is not None:  # which has been said: no answer can be compared
        return
    st.html(table.style())
    names = {"out": _("Parts taken out"), "between": _("Patches between two prompts")}
    st.segmented_control(
        _("What is changed"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        label_visibility="collapsed",
        **lesson.setting("whatif.way", "out", list(names)),
    )
    if lesson.value("whatif.way", "out", list(names)) == "between":
        between_prompts(subject)
        return
    taken_out(subject)


def taken_out(subject: Subject) -> None:
    """What is taken out: parts of the model, neurons of one network, tokens of the input, or heads by learned gates."""
    names = {
        "parts": _("heads and sublayers"),
        "neurons": _("neurons"),
        "tokens": _("tokens of the input"),
        "gates": _("learned gates"),
    }
    st.segmented_control(
        _("What is taken out"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        **lesson.setting("whatif.taken", "parts", list(names)),
    )
    taken = lesson.value("whatif.taken", "parts", list(names))
    if taken == "parts":
        place = choose(subject)
        switched_off(subject, place)
        all_parts(subject, place)
        return
    if subject.edited:
        st.caption(_("Numbers set by hand are left out here: this is the model as it is."))
    if taken == "gates":
        learned_gates(subject.unedited)
        return
    place = choose(subject.unedited, with_instead=False)
    if taken == "neurons":
        all_neurons(subject.unedited, place)
    else:
        all_tokens(subject.unedited, place)


page()
