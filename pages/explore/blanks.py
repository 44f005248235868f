"""Fill in the blank: hide words of the sentence; what the model puts there, and where it looks."""

import math
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import tokens
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.fill_mask import computed as blanks
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from vizformer.text import Token

Shown = tuple["Token", ...]
Places = tuple[int, ...]
_STRIP, _CLICKED, _SEVERAL, _HEAD = "blanks.strip", "blanks.clicked", "blanks.several", "blanks.head"
NOWHERE = 0  # the start mark, which cannot be hidden
EXAMPLES = ("The cat sat on the chair.", "She opened the door and went in.", "我有一只猫。", "今天天气很好。")


def page() -> None:
    subject = subject_box()
    if subject is None:
        return
    if not model_suggestions.fills_blanks(subject.model):
        other_model(subject.model)
        return
    blank(subject)


def other_model(model: ModelRef) -> None:
    """Says what this model lacks, and offers one that has it."""
    if model_cache.options(model).architecture != "encoder-only":
        lacking = _(
            "This model predicts what comes next. Hidden words are filled in by an encoder-only model that was trained "
            "with [MASK]: it reads both sides of the gap."
        )
    elif not model_cache.predicts(model):
        lacking = _(
            "This model's files hold no head that predicts tokens: it turns a text into vectors and has no words to "
            "put into a gap."
        )
    else:
        lacking = _("This model has no [MASK] token, so nothing can be hidden from it.")
    st.info(lacking)
    model_suggestions.offer(model_suggestions.fills_blanks, "blanks", hidden="")


@st.fragment
@guarded()
def blank(subject: Subject) -> None:
    """The sentence, what is hidden in it, and what the model makes of that."""
    shown = blanks.tokens(subject.unedited)
    several = st.session_state.get(_SEVERAL, False)
    hidden, focus = choice(shown, several)
    chances = blanks.guesses(subject.unedited)
    tokens.mount(
        chips(subject, shown, hidden, chances),
        selected=focus,
        label=_("Click a word to hide it. The bars: how surely the model finds each word where it alone is hidden."),
        words=words(tokens.ENGLISH),
        key=_STRIP,
    )
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.toggle(_("Hide several words"), key=_SEVERAL)
    right.button(_("Show all words again"), on_click=_show_all, disabled=not hidden, key="blanks.none")
    typed = [i for i, token in enumerate(shown) if token.piece == mask_piece(subject)]
    if not hidden and not typed:
        nothing_hidden(subject.model, chances)
        return
    all_hidden = tuple(sorted({*hidden, *typed}))
    focus = focus if focus in all_hidden else all_hidden[-1]
    filled_in(subject, shown, hidden, all_hidden)
    prediction, looking = st.columns([2, 3])
    with prediction:
        candidates(subject, shown, hidden, focus, truth=focus not in typed)
    with looking:
        attention(subject, shown, hidden, all_hidden, focus)


def choice(shown: Shown, several: bool) -> tuple[tuple[int, ...], int]:
    """What is hidden, and which position was clicked last; a new click hides its word."""
    wanted = [int(part) for part in state.view().hidden.split(",") if part]
    hidden = tuple(i for i in wanted if i < len(shown) and not shown[i].special)
    known: int = st.session_state.get(_CLICKED, hidden[-1] if hidden else NOWHERE)
    clicked = tokens.peek(key=_STRIP, selected=known)
    clicked = known if clicked is None or clicked >= len(shown) else clicked
    if clicked != known and not shown[clicked].special:
        hidden = tuple(sorted({*hidden, clicked})) if several else (clicked,)
        state.update(hidden=",".join(map(str, hidden)))
    st.session_state[_CLICKED] = clicked
    return hidden, clicked


def _show_all() -> None:
    state.update(hidden="")
    st.session_state[_CLICKED] = NOWHERE


def mask_piece(subject: Subject) -> str:
    mask_id = model_cache.options(subject.model).mask_id
    assert mask_id is not None  # the page has asked
    return model_cache.checkpoint(subject.model).tokenizer.tokens([mask_id])[0].piece


def chips(subject: Subject, shown: Shown, hidden: Places, chances: np.ndarray) -> list[tokens.Token]:
    row = labels.chips(shown)
    for i, chip in enumerate(row):
        if i in hidden:
            chip["hover"] = _("hidden: “{text}”", text=chip["text"])
            chip["text"] = mask_piece(subject)
        elif not math.isnan(chances[i]):
            chip["value"] = float(chances[i])
            chip["hover"] = _("found with {percent} where it alone is hidden", percent=labels.percent(chances[i]))
    return row


def nothing_hidden(model: ModelRef, chances: np.ndarray) -> None:
    known = np.maximum(chances[~np.isnan(chances)], 1e-12)
    if len(known):
        mean = float(np.exp(np.log(known).mean()))
        st.caption(
            _(
                "Nothing is hidden yet. The model finds each of the {n} words with {percent} on (geometric) average.",
                n=len(known),
                percent=labels.percent(mean),
            )
        )
    else:
        st.caption(_("The model knows no word of this text, so there is none to hide."))
    if not (examples := [text for text in EXAMPLES if model_cache.reads(model, text)]):
        return
    st.caption(_("Or try one of these:"))
    with st.container(horizontal=True):
        for text in examples:
            st.button(text, on_click=_try, args=(text,), key=f"blanks.example.{text}")


def _try(text: str) -> None:
    state.update(text=text)
    _show_all()


def filled_in(subject: Subject, shown: Shown, hidden: Places, all_hidden: Places) -> None:
    """The sentence with the most probable word in each gap."""
    checkpoint = model_cache.checkpoint(subject.model)
    ids = [token.id for token in shown]
    for position in all_hidden:
        ids[position] = blanks.predictions(subject.unedited, hidden, position)[0].token.id
    with st.container(border=True):
        st.caption(_("The most probable words put in"))
        st.text(checkpoint.tokenizer.decode(ids).strip())


def candidates(subject: Subject, shown: Shown, hidden: Places, focus: int, truth: bool) -> None:
    """The most probable words for one gap, and how well the hidden one was found."""
    best = blanks.predictions(subject.unedited, hidden, focus)
    st.plotly_chart(
        figures.next_token_bars(
            [p.token.text for p in best],
            np.array([p.probability for p in best], dtype=np.float32),
            title=_("Most probable at position {position}", position=focus),
            words=words(figures.ENGLISH),
        ),
        config={"displayModeBar": False},
        key="blanks.bars",
    )
    if not truth:
        return
    found = blanks.guess(subject.unedited, hidden, focus)
    text = shown[focus].text
    st.text(
        _(
            "The hidden word was “{text}”: the model's first choice, {percent}.",
            text=text,
            percent=labels.percent(found.probability),
        )
        if found.rank == 0
        else _(
            "The hidden word was “{text}”: number {rank} for the model, {percent}.",
            text=text,
            rank=found.rank + 1,
            percent=labels.percent(found.probability),
        )
    )


def attention(subject: Subject, shown: Shown, hidden: Places, all_hidden: Places, focus: int) -> None:
    """Where the gap looks, layer by layer."""
    config = model_cache.options(subject.model)
    names = {-1: _("All heads, averaged"), **{h: _("Head {head}", head=h) for h in range(config.n_heads)}}
    head = st.selectbox(_("Heads"), list(names), format_func=names.__getitem__, key=_HEAD)
    weights = blanks.looks_at(subject.unedited, hidden, focus, None if head == -1 else head)
    rows = {  # a row of this picture is a layer, its query always the gap
        "query": _("Layer"),
        "attends": _("{query_token}: the gap attends to key {key} “{key_token}” with weight {value}"),
    }
    keys = [mask_piece(subject) if i in all_hidden else token.text for i, token in enumerate(shown)]
    st.plotly_chart(
        figures.attention_heatmap(
            weights.astype(np.float32),
            [_("Layer {layer}", layer=layer) for layer in range(len(weights))],
            keys,
            title=_("Where the gap at position {position} looks", position=focus),
            words={**words(figures.ENGLISH), **rows},
        ),
        config={"displayModeBar": False},
        key="blanks.map",
    )
    if st.button("→ " + _("Every head for the sentence with its gaps"), key="blanks.heads"):
        state.update(text=masked_text(subject, shown, hidden), site="encoder", query=focus)
        st.switch_page("pages/explore/attention.py")


def masked_text(subject: Subject, shown: Shown, hidden: Places) -> str:
    """The text as typed, with [MASK] where words are hidden."""
    text = subject.text
    for position in sorted(hidden, reverse=True):
        text = text[: shown[position].start] + mask_piece(subject) + text[shown[position].end :]
    return text


page()
