"""Another model to choose, where the one that is chosen cannot do what a page shows."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Literal

import streamlit as st

from vizformer.analysis.one_forward import predictions
from vizformer.analysis.one_forward.predictions import Bounds, Familiarity, Sign
from vizformer.assets import asset
from vizformer.config import ModelConfig
from vizformer.errors import VizformerError
from vizformer.messages import ranges
from vizformer.text.pieces import HAN, LATIN, called, script
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.model_list import that_open, titles
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import asked_of
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.link.beginnings import CHINESE, CONTINUED, ENGLISH, FILLED, TEXTS, Beginning, in_language
from vizformer.web.link.languages import SOURCE
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words import i18n, labels, model_words
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, language, quoted, show_note, translate
from vizformer.web.words.labels import size

# Which language a translator reads, and whether the typed text is in it.
#
# A translator knows one direction, unless it puts a token of its own before a text of each script.  Text in another language
# is not refused: it is cut into tokens like any other, and some translation comes out, from a model that has never seen such
# a sentence.  So it is said, in words.

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

measured = asked_of("subject", lambda one: (one.checkpoint, one.trace, one.text), predictions.familiarity, 3)


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
        st.info(_said(reads, _script_name(used)))
        if other is not None and (usable is None or usable(other)):
            label = _("Use the model {name}", name=quoted(sources.title(other)))
            st.button(label, key="language.use", on_click=_change, kwargs={"model": other})
        else:
            label = _("Use the sentence “{text}”", text=sentence)
            st.button(label, key="language.use", on_click=_change, kwargs={"text": sentence, "target": ""})
    return True


def _script_name(script: str) -> str:
    """The name of a script, which Unicode calls so, in the reader's language: "ARABIC" is 阿拉伯文."""
    english = called(script)
    if language() == SOURCE:
        return english
    from babel import Locale  # as languages.py: readers of English do not wait for it

    code = next((code for code, name in Locale("en").scripts.items() if name == english), "")
    return str(Locale.parse(language()).scripts.get(code, english))


def _said(reads: Language | None, name: str) -> str:
    """Said of a text in the script of this name, which the model does not read; None: it reads Chinese and English."""
    if reads is None:
        return _(
            "This model reads Chinese and English. Your text is in another script ({script}), so its result means little.",
            script=name,
        )
    if reads == "zh":
        return _(
            "This model reads Chinese. Your text is in another script ({script}), so its result means little.",
            script=name,
        )
    return _(
        "This model reads English. Your text is in another script ({script}), so its result means little.", script=name
    )


def _change(**changes: object) -> None:
    state.update(**changes)


# A text that a bundled model has not learned: said from a measurement, with the nearest sentence that works.
@cache
def _bounds(name: str) -> dict[str, Bounds]:
    """The familiarity bounds of a bundled model, by script; empty where they were not measured."""
    file = asset("models", name, "familiar.json")
    return predictions.read_bounds(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


@guarded()
def unlearned_notice(subject: Subject) -> None:
    """Says that the model has hardly learned such text, by what, and the way out; nothing of models from elsewhere."""
    known = _bounds(subject.model.name) if subject.model.source == "bundled" else {}
    if not known or subject.edited:
        return
    bounds = predictions.bounds_for(subject.text, known)
    found = measured(subject)
    sign = predictions.strange(found, bounds, written=not subject.target.strip())
    if sign is None:
        return
    offered = known.get(script(subject.text)) or known[script(in_language(language()[:2]).text)]
    sentence = predictions.nearest(subject.text, offered.sentences)
    with st.container(horizontal=True, key="other-language"):
        st.info(said(sign, found, bounds))
        label = _("Use the sentence “{text}”", text=sentence)
        st.button(label, key="unlearned.use", on_click=_use, args=(sentence,))


def _use(sentence: str) -> None:
    state.update(text=sentence, target="", edits="")


def said(sign: Sign, found: Familiarity, bounds: Bounds) -> str:
    """What was measured, and what held-out texts have."""
    share = labels.percent(bounds.share)
    if sign == "unknown":
        return _(
            "This model has not learned texts like this, so its result means little: {value} of the tokens are "
            "unknown to the vocabulary; {share} of held-out texts have at most {most}.",
            value=labels.percent(found.unknown),
            share=share,
            most=labels.percent(bounds.unknown),
        )
    if sign == "pieces":
        return _(
            "This model has not learned texts like this, so its result means little: the tokenizer makes {value} "
            "tokens a character; {share} of held-out texts have at most {most}.",
            value=f"{found.pieces:.2f}",
            share=share,
            most=f"{bounds.pieces:.2f}",
        )
    return _(
        "This model has not learned texts like this, so its result means little: the mean log-probability of "
        "a token is {value}; the median of held-out texts is {typical}, and {share} of them are above "
        "{least}.",
        value=f"{found.log_prob:.2f}".replace("-", "−"),
        typical=f"{bounds.typical:.2f}".replace("-", "−"),
        share=share,
        least=f"{bounds.log_prob:.2f}".replace("-", "−"),
    )


_STAND_IN = "vizformer.stand_in"
_FITTED = "vizformer.fitted"
MOST_PIECES = 1.5  # for a Chinese character, of a model that reads Chinese
MOST = 4  # buttons; the bundled models come first, and the list above has the rest

SHOWN = 6  # of them, above the pictures; captions of files and the page Model report have all


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
    reads, text = read_by(found), view.text
    if reads is not None and text in TEXTS:
        text = in_language(reads).text
    elif text == ENGLISH.text and model_cache.shape(found).architecture != "encoder-decoder":
        text = (FILLED if model_cache.options(found).architecture == "encoder-only" else CONTINUED).text
    stand_in = Beginning(found, text)
    st.session_state[_STAND_IN] = need, stand_in, Beginning(view.model, view.text)
    state.update(model=stand_in.model, text=stand_in.text)


def language_of(model: ModelRef) -> Literal["en", "zh"] | None:
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
        reads = read_by(model)
        if (
            reads is None
            and i18n.language() == SOURCE
            and model_cache.pieces_per_word(model, CONTINUED.text) < math.inf
        ):
            reads = "en"
        reads = reads or language_of(model)
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


# The assumptions that were made where a model's files say nothing: shown beside every picture of the model.
def assumed(model: ModelRef) -> list[str]:
    """What is assumed of a model, as `vizformer.load` is told it; nothing of one that says itself what it is."""
    try:
        found = model_cache.assumed(model)
    except VizformerError:
        return []  # the page says what is wrong with it
    return [f"{name} = {value}" for name, value in found.items()]


def caption(model: ModelRef) -> str:
    """The assumptions as part of a picture's caption; empty where nothing is assumed."""
    said = assumed(model)
    return _("computed under these assumptions: {assumptions}", assumptions=", ".join(said)) if said else ""


def line(model: ModelRef) -> None:
    """One line above the pictures, with the way to the form."""
    said = assumed(model)
    if not said:
        return
    shown = ", ".join(said[:SHOWN])
    if more := len(said) - SHOWN:
        shown = _("{some} and {n} more", some=shown, n=more) if more > 0 else shown
    with st.container(horizontal=True, vertical_alignment="center"):
        said_of = _(
            "{model} is computed under these assumptions: {assumptions}.",
            model=plain(sources.title(model)),
            assumptions=plain(shown),
        )
        st.caption(said_of, width="stretch")
        st.page_link(sitemap.REPORT.file, label=_("Change the assumptions"), width="content")


def saved(config: ModelConfig, n: int, held: int, rolling: int) -> str:
    """What a cache of n positions with `held` bytes would need if it forgot what no query sees; empty without a window."""
    if config.sliding_window is None:
        return ""
    layers, window = ranges(sorted(config.windowed_layers)), f"{config.sliding_window:,}"
    if held == rolling:
        return _(
            "A sliding window hides all but the latest {window} tokens (layers: {layers}). These {n} fit into it, "
            "so there is nothing to forget yet.",
            layers=layers,
            window=window,
            n=f"{n:,}",
        )
    return _(
        "A sliding window hides all but the latest {window} tokens (layers: {layers}). The cache here keeps "
        "everything; without tokens that no query sees any more it would hold {rolling} instead of {held}.",
        layers=layers,
        window=window,
        rolling=size(rolling),
        held=size(held),
    )
