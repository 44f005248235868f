"""Worked examples: the classic examples to the printed digits, editable, and attention without any weights."""

import streamlit as st

from vizformer.components import matrix
from vizformer.web.pages.paper import draw_four_keys, draw_no_weights, draw_two_rows


def page() -> None:
    st.html(matrix.style())
    draw_two_rows()
    draw_four_keys()
    draw_no_weights()


page()
