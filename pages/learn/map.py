"""placeholder"""

import streamlit as st

from vizformer.messages import N_
from vizformer.web import lesson, sitemap
from vizformer.web.errors import guarded
from vizformer.web.i18n import _
from vizformer.web.subject import Subject


def page() -> None:
    lesson.show(sitemap.MAP, [lesson.Part("first", N_("First"), first), lesson.Part("second", N_("Second"), first)])


@st.fragment
@guarded()
def first(subject: Subject) -> None:
    st.slider(_("Window"), 1, 8, **lesson.dial("map.window", 3, range(1, 9)))
    lesson.ask("map", "leak" if "map" == "masks" else "cost", "2+2?", ["3", "4 <b>"], 1, "because", about=subject.text)


page()
