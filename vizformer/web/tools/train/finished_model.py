"""What becomes of a trained model: it is opened on the other pages, or downloaded."""

import streamlit as st

from vizformer.web.catalogue import trained_models, trainings
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words.i18n import _, show_note, show_text, translate

SIDE_BY_SIDE = "side_by_side"
OPENED_ON = ("qkv", "layer", "attention", "generation", SIDE_BY_SIDE)  # addresses of the pages that look at any model


def keep(name: str) -> None:
    """The model as a file, and on the other pages."""
    st.subheader(_("Keep the model"), anchor=False)
    trainings.claim(name)
    plan = trainings.run(name).plan
    asked = plan.on.read(str(st.session_state.get(f"train.asked.{plan.task}", plan.on.example)))
    with st.container(horizontal=True, vertical_alignment="center"):
        show_text("Open it on:")
        for entry in map(sitemap.PAGES.__getitem__, OPENED_ON):
            if presses.button(translate(entry.title), key=f"train.open.{entry.url}"):
                place = st.session_state.get("train.place", {})
                model = ModelRef.parse(name)
                if entry.url == SIDE_BY_SIDE:  # what the training has made of what it began with
                    place = {**place, "other": model, "second": ""}
                    model = trained_models.steps(model)[0]
                text = plan.on.text(asked, plan.architecture)
                state.update(model=model, text=text, target="", edits="", query=0, position=0, step=0, **place)
                st.switch_page(entry.file)
        st.download_button(
            _("Download (zip)"),
            data=lambda: trainings.archive(name),
            file_name=f"{name}.zip",
            mime="application/zip",
            on_click="ignore",
            key="train.download",
        )
    show_note(
        "The list of models of the other pages shows it as “{title}”, for you and everyone with your "
        "link, until the server restarts or needs the room for newer trainings. vizformer.load opens the "
        "file.",
        title=trainings.title(name),
    )
