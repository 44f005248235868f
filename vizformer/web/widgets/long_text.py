"""A box for a text that is longer than a line: typed, pasted, or taken from a text file."""

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.messages import N_
from vizformer.web.catalogue import model_cache
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.widgets import dropzone
from vizformer.web.words import errors
from vizformer.web.words.i18n import _, show_note

MOST_FILE_MB = 1
ENCODINGS = ("utf-8-sig", "gb18030")  # what editors write, also older ones in China
_BOX, _FILE = "long_text.box", "long_text.file"


def button() -> None:
    if presses.button("⤢", help=_("A longer text, or a text file"), key="long_text.open"):
        st.session_state[_BOX] = state.view().text
        st.dialog(_("A longer text"), width="large")(_content)()  # made only while the box over the page is open


def _content() -> None:
    st.html(dropzone.style(_("Choose a file")))
    st.file_uploader(
        _("A text file of at most {n} MB: drop it here", n=MOST_FILE_MB),
        type=["txt", "md"],
        key=_FILE,
        on_change=_take_file,
        max_upload_size=MOST_FILE_MB,
    )
    if st.session_state.get(f"{_FILE}.refused"):
        errors.show(N_("This file is no text in UTF-8 or GB18030. Save it as plain text in UTF-8."))
    text = st.text_area(_("Text"), height=320, key=_BOX) or ""
    left, right = st.columns([3, 1], vertical_alignment="center")
    with left:
        fits = _count(text)
    if presses.button(_("Read this text"), at=right, type="primary", disabled=not fits, key="long_text.read"):
        state.update(text=text)
        st.rerun()


def _take_file() -> None:
    """Puts the text of the chosen file into the box."""
    file = st.session_state.get(_FILE)
    st.session_state[f"{_FILE}.refused"] = False
    if file is None:
        return
    for encoding in ENCODINGS:
        try:
            found = file.getvalue().decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in found:
            st.session_state[_BOX] = found[: MOST_FILE_MB * 2**20]
            return
    st.session_state[f"{_FILE}.refused"] = True


def _count(text: str) -> bool:
    """Says how many tokens the text has and how many the model reads; whether it reads all of them."""
    view = state.view()
    try:
        n = len(model_cache.checkpoint(view.model).encode(text))
    except VizformerError as error:
        errors.show(error.message)
        return False
    most = model_cache.shape(view.model).max_positions
    show_note("{n} tokens; this model reads at most {most}.", n=f"{n:,}", most=f"{most:,}")
    return True
