"""One gap: the most probable words for it, how well the hidden one was found, and where the gap looks."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.tools.fill_mask import computations, in_python
from vizformer.web.tools.fill_mask.gaps import Positions, Shown, mask_piece, masked_text
from vizformer.web.widgets import chart
from vizformer.web.widgets.answer_question import ask_why
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

_HEAD = "blanks.head"


def candidates(subject: Subject, shown: Shown, hidden: Positions, focus: int, truth: bool) -> None:
    best = computations.predictions(subject.unedited, hidden, focus)
    chart.show(
        figures.next_token_bars(
            labels.told_apart([p.token for p in best]),
            np.array([p.probability for p in best], dtype=np.float32),
            title=_("Most probable at position {position}", position=focus),
        ),
        key="blanks.bars",
        code=lambda: in_python.of_gap(subject, hidden, focus),
    )
    text = masked_text(subject, shown, hidden)
    ask_why(best[0].token.text, focus, key="blanks.why", text=text, target="", edits="")
    if not truth:
        return
    found = computations.guess(subject.unedited, hidden, focus)
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


def attention(subject: Subject, shown: Shown, hidden: Positions, all_hidden: Positions, focus: int) -> None:
    config = subject.config
    names = {-1: _("All heads, averaged"), **{h: _("Head {head}", head=h) for h in range(config.n_heads)}}
    head = st.selectbox(_("Heads"), list(names), format_func=names.__getitem__, key=_HEAD)
    weights = computations.looks_at(subject.unedited, hidden, focus, None if head == -1 else head)
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
            title=_("Where the gap at position {position} looks", position=focus),
            words=rows,
        ),
        key="blanks.map",
    )
    if presses.button("→ " + _("Every head for the sentence with its gaps"), key="blanks.heads"):
        state.update(text=masked_text(subject, shown, hidden), kind="encoder", query=focus)
        st.switch_page("pages/explore/attention.py")
