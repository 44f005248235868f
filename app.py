"""The door: `streamlit run app.py` (and so `vizformer` and `make run`) comes in here."""

import streamlit as st

from vizformer.web.frame import component_scripts, head_routes, page_frame, server, term_sentences
from vizformer.web.words import errors

if __name__ == "__main__":  # every run of every visitor
    page_frame.run()
else:  # once, when the server starts: Streamlit finds this name and serves it
    app = st.App(
        __file__,
        lifespan=server.lifespan,
        routes=[*component_scripts.routes(), *head_routes.routes(), *term_sentences.routes(), *server.routes()],
        middleware=server.middleware(),
        on_script_error=errors.on_script_error,
    )
