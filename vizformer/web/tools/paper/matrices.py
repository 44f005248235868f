"""Matrices of Worked examples: to type over, and to read."""

import numpy as np
import streamlit as st

from vizformer.components import matrix
from vizformer.web.words.i18n import _


def editable(name: str, caption: str, start: np.ndarray) -> np.ndarray:
    import pandas as pd

    st.caption(caption)
    names = [_("value v")] if start.shape[1] == 1 else [str(column) for column in range(start.shape[1])]
    edited = st.data_editor(pd.DataFrame(start, columns=names), key=f"paper.{name}", hide_index=True, num_rows="fixed")
    return np.nan_to_num(np.asarray(edited, dtype=np.float64))


def tables(*parts: tuple[str, np.ndarray]) -> None:
    html = "".join(f"<div>{matrix.to_html(value, caption=caption)}</div>" for caption, value in parts)
    st.html(f'<div class="vf-row">{html}</div>')
