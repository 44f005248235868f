"""The box of the reader's own texts, one in each line, on which something is measured."""

import streamlit as st

from vizformer.analysis.corpus_heads.corpus import MOST_CHARACTERS, Corpus
from vizformer.checkpoints.any_checkpoint import check_characters
from vizformer.errors import VizformerError
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.words import errors
from vizformer.web.words.i18n import _, show_info, show_warning


def box(key: str, most_characters: int) -> Corpus | None:
    """The texts that stand in it; None where there are none yet, or too many, which it says."""
    written = st.text_area(
        _("One text in each line; for a model that translates: text, tab, translation"),
        key=key,
        persist_state="session",
    )
    try:
        check_characters(written or "", most_characters)
    except VizformerError as error:
        errors.show(error.message)
        return None
    corpus = _corpus(written or "")
    if corpus is None:
        show_info("Write or paste some texts, one in each line; a dozen are enough to begin.")
    elif corpus.cut:
        show_warning(
            "Texts of more than {most} characters are cut there ({n} of yours). Put the rest into another line.",
            most=f"{MOST_CHARACTERS:,}",
            n=corpus.cut,
        )
    return corpus


@cached
def _corpus(texts: str) -> Corpus | None:
    prepare_torch()
    try:
        return Corpus.of(texts.splitlines(), "own")
    except VizformerError:
        return None
