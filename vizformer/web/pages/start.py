"""What stands over the picture of the first page: its heading, and sentences that work."""

import streamlit as st

from vizformer.messages import N_, Message
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import bar, sitemap
from vizformer.web.frame.sitemap import START
from vizformer.web.link import state
from vizformer.web.link.beginnings import CONTINUED
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import View
from vizformer.web.widgets.whole_model import picture, saved_page
from vizformer.web.widgets.whole_model.picture import WRITTEN
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, translate

HEADINGS: dict[str, Message] = {
    "encoder-decoder": START.heading,
    "decoder-only": N_("A Transformer continuing your text. Every picture is its real arithmetic: press anything."),
    "encoder-only": N_("A Transformer filling in the blank. Every picture is its real arithmetic: press anything."),
}
EXAMPLES: tuple[tuple[Message | None, ModelRef, str], ...] = (
    (None, View().model, "The cat sat on the mat."),
    (None, View().model, "我爱北京的春天。"),
    (N_("Continue an English text"), CONTINUED.model, CONTINUED.text),
)
"""Sentences that work: what the button says (None: the sentence itself), the model, and the sentence."""


def draw_examples() -> None:
    for at, (label, model, text) in enumerate(EXAMPLES):
        st.button(translate(label) if label else text, key=f"start.example.{at}", on_click=_open, args=(model, text))


def _open(model: ModelRef, text: str) -> None:
    state.update(model=model, text=text, target="", edits="")


def forget_written() -> None:
    """Drops the text that was written token by token where the sentence has changed."""
    view = state.view()
    text, target = st.session_state.get(WRITTEN, ("", ""))
    if target and view.target == target and view.text != text:
        state.update(target="")


def draw_heading(subject: Subject | None) -> None:
    bar.heading(translate(HEADINGS[subject.shape.architecture] if subject else START.heading))


@st.fragment
@guarded()
def draw_picture(subject: Subject) -> None:
    picture.draw_whole_model(subject)


@guarded()
def draw_doors(subject: Subject | None) -> None:
    with st.container(horizontal=True, key="start-doors", gap="medium"):
        for entry, label in (
            (sitemap.PATH, translate(sitemap.PATH.title)),
            (sitemap.ATTENTION, translate(sitemap.ATTENTION.title)),
            (sitemap.TEACH, _("In class")),
            (sitemap.OPEN, translate(sitemap.OPEN.title)),
        ):
            st.page_link(entry.file, label=f"{label} →")
        if subject is not None and subject.checkpoint.is_own:
            picture.draw_away(subject, saved_page.html)
