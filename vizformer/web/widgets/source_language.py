"""Which language a translator reads, and whether the typed text is in it.

A translator knows one direction, unless it puts a token of its own before a text of each script.  Text in another language
is not refused: it is cut into tokens like any other, and some translation comes out, from a model that has never seen such
a sentence.  So it is said, in words.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.text.scripts import HAN, LATIN, script
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.link import state
from vizformer.web.link.beginnings import CHINESE, ENGLISH, in_language
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words.i18n import _, language, show_note
from vizformer.web.words.plain_text import quoted

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
MEANINGS: Mapping[str, str] = {
    CHINESE.text: "I have a cat.",
    "我有一只狗。": "I have a dog.",
    "他十分钟前离开了。": "He left ten minutes ago.",
    "我喜欢喝水。": "I like to drink water.",
    "今天天气很好，我们去公园。": "The weather is fine today; we are going to the park.",
    "今天天气": "the weather today",
    "今天天气很好。": "The weather is fine today.",
    "这家店的面包比那家的便宜。": "The bread of this shop is cheaper than that of the other one.",
}
"""The meanings of the Chinese sentences that pages propose."""
WORDS: Mapping[str, str] = {"我": "I", "有": "have", "一": "one", "只": "measure word", "猫": "cat"}
"""The meanings of the tokens of the first of these sentences."""
GLOSSES: Mapping[str, str] = {
    "我": "I",
    "有": "have",
    "一": "one",
    "只": "(counter)",
    "猫": "cat",
    "爱": "love",
    "北": "Bei-",
    "京": "-jing",
    "的": "’s",
    "春": "spring",
    "天": "season",
    "坐": "sit",
    "在": "at",
    "地": "floor",
    "毯": "rug",
    "上": "on",
}
"""What the Chinese tokens mean of the sentences that are proposed, and of their translations."""
PROPOSED = (CHINESE.text, ENGLISH.text, "The cat sat on the mat.", "我爱北京的春天。")
CARD = 20_000  # characters of a card that are looked at


def stated(card: str) -> Language | None:
    """The language that a translator reads, by its model card; None where that does not say, or it is another one."""
    for pattern in _STATED:
        for found in pattern.findall(card[:CARD]):
            if (language := _KNOWN.get(found.lower())) is not None:
                return language
    return None


def written_in(text: str) -> Language | None:
    """The language whose script most of a text is in; None where there is no such script, or it is another one."""
    languages: Mapping[str, Language] = {HAN: "zh", LATIN: "en"}
    return languages.get(script(text))


def reads_both(model: ModelRef) -> bool:
    """Whether the model translates from Chinese and from English, and the first token of a text says which way."""
    return {HAN, LATIN} <= model_cache.marked_scripts(model)


@cached
def read_by(model: ModelRef) -> Language | None:
    """The language that a model's card says it reads; None for models that do not translate, and those that read both."""
    if model_cache.shape(model).architecture != "encoder-decoder" or reads_both(model):
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


def meaning(text: str) -> str:
    """What a Chinese sentence that a page proposes means, to those who read the app in another language; else empty."""
    return "" if language().startswith("zh") else MEANINGS.get(text.strip(), "")


def words_with_meaning(text: str, tokens: Sequence[str]) -> list[str]:
    """Tokens of a Chinese sentence that a page proposes, each with what it means in brackets, where that is to be said."""
    known = WORDS if text == CHINESE.text and meaning(text) else {}
    return [f"{token} ({known[token]})" if token in known else token for token in tokens]


def glosses(tokens: Sequence[str]) -> list[str]:
    """What the tokens of a proposed sentence mean, to those who read the app in another language; else nothing."""
    found = [GLOSSES.get(token, "") for token in tokens]
    return [] if language().startswith("zh") or not any(found) else found


def with_meaning(said: str, text: str) -> str:
    """A label, or the text itself, and what the text means in brackets, where that is to be said."""
    return f"{said} ({meant})" if (meant := meaning(text)) else said


def gloss(text: str) -> None:
    """Says below the title of a page what its sentence means."""
    if meant := meaning(text):
        with st.container(key="gloss"):
            show_note("{text} means: {meaning}", text=text, meaning=meant)


def notice(model: ModelRef, text: str, usable: Callable[[ModelRef], bool] | None = None) -> bool:
    """Says that the model reads another language than the text is in, where its card says so; whether that was said.

    With it the way out: the bundled model that reads such texts or, where it is not `usable` on the page, a sentence.
    """
    reads, written, used = read_by(model), written_in(text), script(text)
    both = reads is None and written is None and reads_both(model)
    if not used or not (both or (reads is not None and reads != written)):
        return False
    sentence = in_language(reads or language()[:2]).text
    other = None if written is None else in_language(written).model
    with st.container(horizontal=True, key="other-language"):
        st.info(
            _(
                "This model reads Chinese and English, not {script}: its result means little.",
                script=used.title(),
            )
            if reads is None
            else _another_script(reads, used.title())
            if written is None
            else _(
                "This model reads Chinese. Your text looks like English, which its training did not contain, so its "
                "result means little. Type the Chinese sentence, and its translation into the box “Target”."
            )
            if reads == "zh"
            else _(
                "This model reads English. Your text looks like Chinese, which its training did not contain, so its "
                "result means little. Type the English sentence, and its translation into the box “Target”."
            )
        )
        if other is not None and (usable is None or usable(other)):
            label = _("Use the model {name}", name=quoted(sources.title(other)))
            st.button(label, key="language.use", on_click=_change, kwargs={"model": other})
        else:
            label = _("Use the sentence “{text}”", text=sentence)
            st.button(label, key="language.use", on_click=_change, kwargs={"text": sentence, "target": ""})
    return True


def _another_script(reads: Language, name: str) -> str:
    """Said of a text in a script that is of neither language."""
    if reads == "zh":
        return _(
            "This model reads Chinese. Your text is mostly in another script ({script}), which its training did "
            "not contain, so its result means little. Type a Chinese sentence.",
            script=name,
        )
    return _(
        "This model reads English. Your text is mostly in another script ({script}), which its training did "
        "not contain, so its result means little. Type an English sentence.",
        script=name,
    )


def _change(**changes: object) -> None:
    state.update(**changes)
