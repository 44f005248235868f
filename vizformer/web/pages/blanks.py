"""The page Fill in the blank: words to hide, what the model makes of the gaps, and one gap in detail."""

import json
import math
from collections import Counter

import numpy as np
import streamlit as st
from jaxtyping import Float

from vizformer import analysis, figures
from vizformer.analysis import Guess, Prediction, hide, mean_guess, next_tokens
from vizformer.components import tokens
from vizformer.model import Trace
from vizformer.text import Token
from vizformer.text.pieces import HAN, script
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.link.model_ref import USUAL_DTYPE, ModelRef
from vizformer.web.widgets import chart, in_python, map_words, model_suggestions
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.position_choice import ask_why
from vizformer.web.words import counts, labels
from vizformer.web.words.i18n import _, show_note

_HEAD = "blanks.head"

Shown = tuple["Token", ...]
Positions = tuple[int, ...]


def candidates(subject: Subject, shown: Shown, hidden: Positions, focus: int, truth: bool) -> None:
    best = predictions(subject.unedited, hidden, focus)
    chart.show(
        figures.next_token_bars(
            labels.told_apart([p.token for p in best]),
            np.array([p.probability for p in best], dtype=np.float32),
            title=_("Most probable at position {position}", position=focus),
        ),
        key="blanks.bars",
        code=lambda: code_of_gap(subject, hidden, focus),
    )
    text = masked_text(subject, shown, hidden)
    ask_why(best[0].token.text, focus, key="blanks.why", text=text, target="", edits="")
    if not truth:
        return
    found = guess(subject.unedited, hidden, focus)
    text = shown[focus].text
    st.text(
        _(
            "The hidden word was “{text}”: the model's first choice, {percent}.",
            text=text,
            percent=labels.percent(found.probability),
        )
        if found.rank == 0
        else _(
            "The hidden word was “{text}”: rank {rank} for the model, {percent}.",
            text=text,
            rank=found.rank + 1,
            percent=labels.percent(found.probability),
        )
    )


@laboratory
def attention(subject: Subject, shown: Shown, hidden: Positions, all_hidden: Positions, focus: int) -> None:
    shape = subject.shape
    names = {-1: _("All heads, averaged"), **{h: _("Head {head}", head=h) for h in range(shape.n_heads)}}
    head = st.selectbox(_("Heads"), list(names), format_func=names.__getitem__, key=_HEAD)
    weights = looks_at(subject.unedited, hidden, focus, None if head == -1 else head)
    rows = {  # a row of this picture is a layer, its query always the gap
        "query": _("Layer"),
        "attends": _("{query_token}: the gap attends to key {key} “{key_token}” with weight {value}"),
    }
    keys = [mask_piece(subject) if i in all_hidden else token.text for i, token in enumerate(shown)]
    chart.show(
        figures.attention_heatmap(
            weights.astype(np.float32),
            [_("Layer {layer}", layer=layer) for layer in range(len(weights))],
            keys,
            title=_("Attention of the gap at position {position}", position=focus),
            words=rows,
        ),
        key="blanks.map",
    )
    map_words.say_pronoun(subject)
    if presses.button("→ " + _("Every head for the sentence with its gaps"), key="blanks.heads"):
        state.update(text=masked_text(subject, shown, hidden), kind="encoder", query=focus)
        st.switch_page("pages/explore/attention.py")


def code_of_gap(subject: Subject, hidden: Positions, position: int) -> dict[str, str]:
    """The most probable words of one gap, by the package that the code needs."""
    places, model = ", ".join(map(str, sorted(hidden))), subject.model
    found = {
        "vizformer": "\n".join(
            [
                *in_python.imports(model),
                "from vizformer.analysis import hide, next_tokens",
                "",
                f"checkpoint = {in_python.loaded(model)}",
                f"tokens = checkpoint.encode({subject.text!r})",
                f"trace = hide(checkpoint, tokens, {{{places}}})",
                f"best = next_tokens(checkpoint, trace, {position})",
                "print([(one.token.text, one.probability) for one in best])",
            ]
        )
    }
    if model_cache.written_as(subject.model) != "hugging-face" or model.dtype != USUAL_DTYPE:
        return found
    mask = subject.shape.mask_id
    ids = [mask if at in hidden else token.id for at, token in enumerate(subject.tokens)]
    name, at = in_python.name_and_revision(model)
    segments = subject.checkpoint.segments(subject.tokens)
    given = "" if segments is None else f", token_type_ids=torch.tensor({segments.tolist()})"
    found["transformers"] = "\n".join(
        [
            "import torch",
            "from transformers import AutoModelForMaskedLM, AutoTokenizer",
            "",
            f"name = {json.dumps(name, ensure_ascii=False)}",
            f"model = AutoModelForMaskedLM.from_pretrained(name{at}).eval()",
            "with torch.no_grad():",
            f"    logits = model(torch.tensor([{ids}]){given}).logits[0, {position}]",
            "best = logits.double().softmax(-1).topk(10)",
            f"names = AutoTokenizer.from_pretrained(name{at}).convert_ids_to_tokens(best.indices.tolist())",
            "print(list(zip(names, best.values.tolist())))",
        ]
    )
    return found


# Cached computations of the page Fill in the blank, and how a gap is written.
def mask_piece(subject: Subject) -> str:
    mask_id = subject.shape.mask_id
    assert mask_id is not None  # the page has asked
    return subject.checkpoint.tokenizer.tokens([mask_id])[0].piece


def masked_text(subject: Subject, shown: Shown, hidden: Positions) -> str:
    """The text as typed, with [MASK] where words are hidden."""
    text = subject.text
    for position in sorted(hidden, reverse=True):
        text = text[: shown[position].start] + mask_piece(subject) + text[shown[position].end :]
    return text


@cached
def trace(subject: Subject, hidden: tuple[int, ...]) -> Trace:
    """The forward over the text with these positions hidden."""
    return hide(subject.checkpoint, subject.tokens, hidden)


@cached
def guesses(subject: Subject) -> Float[np.ndarray, " n"]:
    """The probability of each token where it alone is hidden."""
    return analysis.guesses(subject.checkpoint, subject.tokens)


@cached
def predictions(subject: Subject, hidden: tuple[int, ...], position: int) -> tuple[Prediction, ...]:
    return next_tokens(subject.checkpoint, trace(subject, hidden), position)


@cached
def guess(subject: Subject, hidden: tuple[int, ...], position: int) -> Guess:
    """The probability and the rank of the text's own token at the hidden `position`."""
    return analysis.guess(trace(subject, hidden), position, subject.tokens[position].id)


@cached
def looks_at(
    subject: Subject, hidden: tuple[int, ...], position: int, head: int | None
) -> Float[np.ndarray, "n_layers n"]:
    """Where a position looks, layer by layer: in one head, or averaged over the heads."""
    return analysis.looks_at(trace(subject, hidden), position, head)


# The sentence as a strip of words to hide, and what the model makes of its gaps.

_STRIP, _CLICKED, _SEVERAL, _OPENED = "blanks.strip", "blanks.clicked", "blanks.several", "blanks.opened"
FOUND, LONGER = 0.1, 4  # a word worth hiding: the probability with which it is found, and its letters
NOWHERE = 0  # the start mark, which cannot be hidden
EXAMPLES = ("The cat sat on the chair.", "She opened the door and went in.", "我有一只猫。", "今天天气很好。")


@laboratory
def blank(subject: Subject) -> None:
    shown = subject.unedited.tokens
    several = st.session_state.get(_SEVERAL, False)
    chances = guesses(subject.unedited)
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
    return _("Hidden: the longer word that the model is surest of.")


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
        ids[position] = predictions(subject.unedited, hidden, position)[0].token.id
    with st.container(border=True):
        show_note("With the most probable words")
        st.text(checkpoint.tokenizer.decode(ids).strip())


def draw_other_model(model: ModelRef) -> None:
    """Says what this model lacks, and offers one that has it."""
    if model_cache.shape(model).architecture != "encoder-only":
        lacking = _(
            "This model predicts the next token. An encoder-only model trained with [MASK] fills in hidden "
            "words: it reads both sides of the gap."
        )
    elif not model_cache.predicts(model):
        lacking = _(
            "This model's files contain no output layer that predicts tokens: it turns a text into vectors and "
            "cannot fill a gap."
        )
    else:
        lacking = _("This model has no [MASK] token, so it cannot fill in hidden words.")
    st.info(lacking)
    model_suggestions.offer(model_suggestions.fills_blanks, "blanks", hidden="")
