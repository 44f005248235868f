"""Worked examples: the classic examples to the printed digits, editable, and attention without any weights."""

import streamlit as st

from vizformer.components import matrix
from vizformer.web.tools.paper.four_keys import four_keys
from vizformer.web.tools.paper.no_weights import no_weights
from vizformer.web.tools.paper.two_rows import two_rows


def page() -> None:
    st.html(matrix.style())
    two_rows()
    four_keys()
    no_weights()


page()
