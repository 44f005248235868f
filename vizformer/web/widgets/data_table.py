"""A table of Streamlit's, which a browser can write as CSV."""

from typing import Any

import streamlit as st

from vizformer.figures.files import no_formula


def show(data: Any, **options: Any) -> None:
    """`st.dataframe` of them; an unseen character stands before each text that a spreadsheet would run as a formula."""
    import pandas as pd

    def told(value: object) -> object:
        return no_formula(value, "\u2060")

    frame = pd.DataFrame(data).rename(index=told, columns=told)
    st.dataframe(frame.apply(lambda column: column if column.dtype.kind in "fiub" else column.map(told)), **options)
