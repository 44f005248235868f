"""What if: heads and sublayers taken out of the forward, and what becomes of the answer."""

import streamlit as st

from vizformer.components import table
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.what_if.all_parts import all_parts
from vizformer.web.tools.what_if.place import choose
from vizformer.web.tools.what_if.switched_off import switched_off
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
    st.html(table.style())
    place = choose(subject)
    switched_off(subject, place)
    all_parts(subject, place)


page()
