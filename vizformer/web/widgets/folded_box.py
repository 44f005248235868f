"""A box that is closed at first; its content is computed only when somebody opens it."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st


@contextmanager
def folded(label: str, *, key: str) -> Iterator[bool]:
    """The box, and whether it is open: `with folded(_("More"), key="page.more") as is_open: ...`.

    Opening it runs the fragment again in which it stands, or else the page.
    """
    box = st.expander(label, key=key, on_change="rerun")
    with box:
        yield bool(box.open)
