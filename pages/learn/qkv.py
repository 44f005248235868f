import streamlit as st

from vizformer.web import state
from vizformer.web.i18n import _

st.text_area(_("Sentence"), **state.bind("text"))
