"""How another model comes into the list."""

import streamlit as st

from vizformer.web.catalogue import server_folder
from vizformer.web.tools.model_report import report_words
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_text


@guarded()
def draw_own_models() -> None:
    """How another model comes into the list."""
    with st.expander(_("Your own models")):
        if server_folder.root() is None:
            show_text(
                "Start VizFormer with a folder whose subfolders are models in Hugging Face layout (config.json, "
                "weights, tokenizer), or that holds files of weights. Each then stands in the list above, on every "
                "page."
            )
        else:
            show_text(
                "This server offers the models of one folder: every subfolder with a model and every file of weights "
                "stands in the list above. A new one appears when the page is drawn again."
            )
        st.code("vizformer --models DIR\nVIZFORMER_MODELS=DIR make run", language="bash")
        show_text("These families open: {families}.", families=", ".join(report_words.families()))
        show_text(
            "State dicts without a config.json open too, under assumptions that you choose: {layouts}; and models "
            "written by hand, whose tensors are read by role.",
            layouts=", ".join(report_words.layouts()),
        )
