"""Which language a translator reads, and whether the typed text is in it.

A translator knows one direction.  Text in its other language is not refused: it is cut into tokens like any other, and
some translation comes out, from a model that has never seen such a sentence.  So it is said, in words.
"""

import re
from collections.abc import Callable, Mapping
from typing import Literal

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.link import state
from vizformer.web.link.beginnings import CHINESE, in_language
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words.i18n import _, language

Language = Literal["zh", "en"]

_KNOWN: Mapping[str, Language] = {
    "chinese": "zh",
    "mandarin": "zh",
    "zh": "zh",
    "zho": "zh",
    "cmn": "zh",
    "english": "en",
    "en": "en",
    "eng": "en",
}
_STATED = (  # how model cards say it: ours and others' in a sentence, OPUS-MT's in lists
    re.compile(r"\b([A-Z][a-z]+) (?:→|->|to|into) [A-Z][a-z]+\b"),
    re.compile(r"(?im)^\W*source (?:group|languages?)\W+([a-z]+)"),
)
_HAN, _LATIN = re.compile(r"[\u3400-\u9fff]"), re.compile(r"[A-Za-z]+")
CARD = 20_000  # characters of a card that are looked at


def stated(card: str) -> Language | None:
    """The language that a translator reads, by its model card; None where that does not say, or it is another one."""
    for pattern in _STATED:
        for found in pattern.findall(card[:CARD]):
            if (language := _KNOWN.get(found.lower())) is not None:
                return language
    return None


def written_in(text: str) -> Language | None:
    """The script that most of a text is in, a Chinese character counting as much as a word of Latin letters.

    None where both are as frequent, or there is neither: numbers, marks, other scripts.
    """
    chinese, latin = len(_HAN.findall(text)), len(_LATIN.findall(text))
    return None if chinese == latin else "zh" if chinese > latin else "en"


@cached
def read_by(model: ModelRef) -> Language | None:
    """The language that a model's card says it reads; None for models that do not translate."""
    if model_cache.options(model).architecture != "encoder-decoder":
        return None
    try:
        folder = sources.folder(model)
    except VizformerError:
        return None
    card = folder / "README.md"
    if not card.is_file():
        return None
    with card.open(encoding="utf-8", errors="replace") as file:
        return stated(file.read(CARD))


def gloss(text: str) -> None:
    """Says what the sentence with which readers of Chinese begin means, to those who read the app in another language."""
    if text == CHINESE.text and not language().startswith("zh"):
        with st.container(key="gloss"):
            st.caption(_("{text} means: I have a cat.", text=text))


def notice(model: ModelRef, text: str, usable: Callable[[ModelRef], bool] | None = None) -> None:
    """Says that the model reads another language than the text is in, where its card says so, and the way out.

    That is the bundled model that reads such texts, or where it is not `usable` on the page, a sentence for this model.
    """
    reads, written = read_by(model), written_in(text)
    if reads is None or written is None or reads == written:
        return
    other, sentence = in_language(written).model, in_language(reads).text
    with st.container(horizontal=True, key="other-language"):
        st.info(
            _(
                "This model reads Chinese. What you typed looks like English: no such sentence was in its training, so "
                "what it makes of it means little. Type the Chinese sentence; what it is to be translated to goes into "
                "the box “Target”."
            )
            if reads == "zh"
            else _(
                "This model reads English. What you typed looks like Chinese: no such sentence was in its training, so "
                "what it makes of it means little. Type the English sentence; what it is to be translated to goes into "
                "the box “Target”."
            )
        )
        if usable is None or usable(other):
            label = _("Use the model {name}", name=sources.title(other))
            st.button(label, key="language.use", on_click=_change, kwargs={"model": other})
        else:
            label = _("Use the sentence {text}", text=sentence)
            st.button(label, key="language.use", on_click=_change, kwargs={"text": sentence, "target": ""})


def _change(**changes: object) -> None:
    state.update(**changes)
