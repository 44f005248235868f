"""Another model to choose, where the one that is chosen cannot do what a page shows."""

import math
from collections.abc import Callable, Iterable
from typing import Literal

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.model_list import that_open, titles
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.link.beginnings import CHINESE, CONTINUED, ENGLISH, FILLED, TEXTS, Beginning, in_language
from vizformer.web.link.languages import SOURCE
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import source_language
from vizformer.web.words import i18n, model_words
from vizformer.web.words.i18n import _, translate
from vizformer.web.words.plain_text import quoted

_STAND_IN = "vizformer.stand_in"
_FITTED = "vizformer.fitted"
MOST_PIECES = 1.5  # for a Chinese character, of a model that reads Chinese
MOST = 4  # buttons; the bundled models come first, and the list above has the rest


def writes(model: ModelRef) -> bool:
    """Whether the model can write a text by itself: it has a decoder, a head, and it is known how a target begins."""
    shape = model_cache.shape(model)
    if shape.architecture == "encoder-only" or not model_cache.predicts(model):
        return False
    return shape.architecture == "decoder-only" or bool(shape.start_ids)


def fills_blanks(model: ModelRef) -> bool:
    """Whether the model was trained with [MASK] and can say what it hides."""
    shape = model_cache.shape(model)
    return shape.architecture == "encoder-only" and shape.mask_id is not None and model_cache.predicts(model)


def does(model: ModelRef) -> str:
    """What a model does, in five words at most; empty where its files do not say what it is."""
    if model.source == "bundled" and model.name in model_words.DOES:
        return translate(model_words.DOES[model.name])
    try:
        kind = "code" if model_cache.is_code(model) else model_cache.shape(model).architecture
        return translate(model_words.DOES[kind if kind == "code" or model_cache.predicts(model) else "headless"])
    except VizformerError:
        return ""


def described(models: Iterable[ModelRef]) -> dict[ModelRef, str]:
    """The titles of a list, each with what the model does."""
    return {model: ": ".join(filter(None, (title, does(model)))) for model, title in titles(models).items()}


def fit(usable: Callable[[ModelRef], bool] | None) -> None:
    """Opens a page that needs a certain kind of model on the first that is `usable`, where the link names none.

    A page that needs another kind, or none (None), is on the usual model again, unless the reader chose a third one.  The
    sentence with which the reader began goes along with the model, if the model that stands in reads another language.
    """
    need = None if usable is None else usable.__name__
    last_need, stand_in, before = st.session_state.get(_STAND_IN, (None, None, None))
    if need == last_need:  # the same page again: what the reader chooses now stays
        return
    view = state.view()
    if stand_in is not None and view.model == stand_in.model:
        text = before.text if view.text == stand_in.text else view.text
        view = state.update(model=before.model, text=text)
    found = None
    if usable is not None and not state.is_chosen(view) and not usable(view.model):
        found = next(filter(usable, that_open()), None)
    if found is None:
        st.session_state[_STAND_IN] = need, None, None
        return
    reads, text = source_language.read_by(found), view.text
    if reads is not None and text in TEXTS:
        text = in_language(reads).text
    elif text == ENGLISH.text and model_cache.shape(found).architecture != "encoder-decoder":
        text = (FILLED if model_cache.options(found).architecture == "encoder-only" else CONTINUED).text
    stand_in = Beginning(found, text)
    st.session_state[_STAND_IN] = need, stand_in, Beginning(view.model, view.text)
    state.update(model=stand_in.model, text=stand_in.text)


def language(model: ModelRef) -> Literal["en", "zh"] | None:
    """The language of the sentence that a model reads best; None where it reads neither."""
    chinese, english = (model_cache.pieces_per_word(model, one.text) for one in (CHINESE, CONTINUED))
    if chinese > MOST_PIECES and english < chinese:
        return "en"
    return "zh" if chinese < math.inf else None


def fit_text(model: ModelRef) -> None:
    """Gives a model that the reader opened a sentence that it reads, where nobody has chosen one: the usual one is Chinese.

    Who reads English gets an English one, if the model reads it, whatever else its vocabulary holds.  Once a session:
    who types that sentence wants to see what the model makes of it.
    """
    seen: set[ModelRef] = st.session_state.setdefault(_FITTED, set())
    if not model.is_from_elsewhere or state.is_text_chosen() or model in seen:
        return
    seen.add(model)
    with st.spinner(_("Running the model …"), show_time=False):
        reads = source_language.read_by(model)
        if (
            reads is None
            and i18n.language() == SOURCE
            and model_cache.pieces_per_word(model, CONTINUED.text) < math.inf
        ):
            reads = "en"
        reads = reads or language(model)
    if reads == "en":
        state.update(text=CONTINUED.text)
        st.rerun()


def offer(usable: Callable[[ModelRef], bool], key: str, **changes: object) -> None:
    """A button for each of the first models that are `usable`; it also makes these `changes` of the view."""
    with st.container(horizontal=True):
        for model in [model for model in that_open() if usable(model)][:MOST]:
            if presses.button(_("Use the model {name}", name=quoted(sources.title(model))), key=f"{key}.use.{model}"):
                state.update(model=model, **changes)
                st.rerun()  # the whole page, also from inside a fragment
