"""The sentence as a strip of words to hide, and what the model makes of its gaps."""

import math
from collections import Counter

import numpy as np
import streamlit as st

from vizformer.analysis import mean_guess
from vizformer.components import tokens
from vizformer.text.scripts import HAN, script
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.fill_mask import computations
from vizformer.web.tools.fill_mask.computations import Positions, Shown, mask_piece
from vizformer.web.tools.fill_mask.one_gap import attention, candidates
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.i18n import _, show_note

_STRIP, _CLICKED, _SEVERAL, _OPENED = "blanks.strip", "blanks.clicked", "blanks.several", "blanks.opened"
FOUND, LONGER = 0.1, 4  # a word worth hiding: the probability with which it is found, and its letters
NOWHERE = 0  # the start mark, which cannot be hidden
EXAMPLES = ("The cat sat on the chair.", "She opened the door and went in.", "我有一只猫。", "今天天气很好。")


@laboratory
def blank(subject: Subject) -> None:
    shown = subject.unedited.tokens
    several = st.session_state.get(_SEVERAL, False)
    chances = computations.guesses(subject.unedited)
    typed = [i for i, token in enumerate(shown) if token.piece == mask_piece(subject)]
    why = "" if typed else open_on_a_blank(subject, shown, chances)
    hidden, focus = choice(shown, several)
    tokens.mount(
        chips(subject, shown, hidden, chances),
        selected=focus,
        label=_("Click a word to hide it. The bars: the model's probability for each word if it alone is hidden."),
        key=_STRIP,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.toggle(_("Hide several words"), key=_SEVERAL)
        st.button(_("Show all words again"), on_click=_show_all, disabled=not hidden, key="blanks.none")
        examples(subject.model)
        if why:
            st.caption(why)
    if not hidden and not typed:
        nothing_hidden(chances)
        return
    all_hidden = tuple(sorted({*hidden, *typed}))
    focus = focus if focus in all_hidden else all_hidden[-1]
    prediction, looking = st.columns([2, 3])
    with prediction:
        candidates(subject, shown, hidden, focus, truth=focus not in typed)
        filled_in(subject, shown, hidden, all_hidden)
    with looking:
        attention(subject, shown, hidden, all_hidden, focus)


def open_on_a_blank(subject: Subject, shown: Shown, chances: np.ndarray) -> str:
    """Hides the word that the model finds most surely where nobody has hidden one; and why."""
    words = [i for i, token in enumerate(shown) if any(map(str.isalnum, token.text)) and not math.isnan(chances[i])]
    if not words:
        return ""
    whole = whole_words(subject.text, shown) & {*words}
    longer = {
        i for i in whole if chances[i] >= FOUND and (len(shown[i].text) >= LONGER or script(shown[i].text) == HAN)
    }
    surest = max(longer or whole or words, key=lambda i: chances[i])
    if not state.suggest(hidden=str(surest)):
        return ""
    if st.session_state.get(_OPENED) != (subject.text, surest):
        st.session_state[_OPENED], st.session_state[_CLICKED] = (subject.text, surest), surest
    if not longer or chances[surest] == max(chances[i] for i in words):
        return _("Hidden: the word that the model is surest of.")
    return _("Hidden: of the longer words the one that the model is surest of.")


def whole_words(text: str, shown: Shown) -> set[int]:
    """The tokens that are a word by themselves: no piece of one, and nothing beside an apostrophe, as in “didn't”."""
    pieces = Counter(token.word for token in shown)
    beside = {i for i, token in enumerate(shown) if {*text[max(token.start - 1, 0) : token.end + 1]} & {*"'’"}}
    return {i for i, token in enumerate(shown) if pieces[token.word] == 1 and i not in beside}


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


def chips(subject: Subject, shown: Shown, hidden: Positions, chances: np.ndarray) -> list[tokens.Token]:
    row = labels.chips(shown)
    for i, chip in enumerate(row):
        if i in hidden:
            chip["hover"] = _("hidden: “{text}”", text=chip["text"])
            chip["text"] = mask_piece(subject)
        elif not math.isnan(chances[i]):
            chip["value"] = float(chances[i])
            chip["hover"] = _("probability {percent} if it alone is hidden", percent=labels.percent(chances[i]))
    return row


def nothing_hidden(chances: np.ndarray) -> None:
    if (mean := mean_guess(chances)) is not None:
        show_note(
            "Nothing is hidden yet. If one word at a time is hidden, the model gives the right token "
            "{percent}: the geometric mean over {words}.",
            words=counts.words(int(np.count_nonzero(~np.isnan(chances)))),
            percent=labels.percent(mean),
        )
    else:
        show_note("The model knows no word of this text, so there is none to hide.")


def examples(model: ModelRef) -> None:
    if not (found := [text for text in EXAMPLES if model_cache.reads(model, text)]):
        return
    with st.popover(_("Examples")):
        for text in found:
            if presses.button(text, key=f"blanks.example.{text}"):
                state.update(text=text)
                state.unsay("hidden")
                st.rerun()  # the whole page: it is another sentence


def filled_in(subject: Subject, shown: Shown, hidden: Positions, all_hidden: Positions) -> None:
    """The sentence with the most probable word in each gap."""
    checkpoint = subject.checkpoint
    ids = [token.id for token in shown]
    for position in all_hidden:
        ids[position] = computations.predictions(subject.unedited, hidden, position)[0].token.id
    with st.container(border=True):
        show_note("With the most probable words")
        st.text(checkpoint.tokenizer.decode(ids).strip())
