"""The texts on which a model and the one made from it differ most: a press shows one, and the head that moved most on it."""

import numpy as np
import streamlit as st

from vizformer.analysis.side_by_side import MovedText
from vizformer.analysis.side_by_side.texts import CHARACTERS, MOST_TEXTS
from vizformer.model import count_parameters
from vizformer.web.catalogue import model_cache
from vizformer.web.link import state
from vizformer.web.tools.side_by_side import computations
from vizformer.web.tools.side_by_side.pair import Pair
from vizformer.web.tools.side_by_side.similarity import pooling_of
from vizformer.web.widgets import data_table, model_suggestions, source_language, watched_work
from vizformer.web.words.i18n import _, show_note

BY_ITSELF = 4e11  # multiplications that begin in the background without being asked for: about half a minute
TOKENS = CHARACTERS // 3  # of a text, about
ROW, MOST_ROWS, TEXT = 35, 4, 340  # px, and rows of the list before it scrolls
KEY = "side_by_side.texts"


def draw_texts(pair: Pair) -> None:
    """The list, the text with the largest distance first; it comes by itself where it does not take long."""
    model = pair.first.model
    reads = source_language.read_by(model) or model_suggestions.language(model) or "en"
    alone = pair.first.config.architecture == "encoder-only" and not model_cache.predicts(model)
    cost = 2.0 * MOST_TEXTS * TOKENS * count_parameters(pair.first.config)
    found = watched_work.watched(
        computations.texts,
        (model, pair.second.model, reads, (pooling_of(model) or "mean") if alone else None),
        quick=False,
        runs=MOST_TEXTS,
        begin=_("Find the texts that moved most"),
        key=KEY,
        said=lambda done, n: _("{done} of {n} texts", done=done, n=n),
        takes=_("Both models read {n} short texts. You can stop that.", n=MOST_TEXTS),
        begins=cost < BY_ITSELF,
    )
    if found is not None:
        draw_list(found, alone)


def draw_list(found: tuple[MovedText, ...], alone: bool) -> None:
    def take() -> None:
        rows = st.session_state[KEY]["selection"]["rows"]
        if rows and rows[0] < len(found):
            one = found[rows[0]]
            kind, layer, head = one.most
            read = {"text": one.passage.text, "target": one.passage.target, "second": "", "edits": "", "position": None}
            state.update(**read, kind=kind, layer=layer, head=head)

    text, maps = _("Text on which they differ"), _("Attention elsewhere")
    answers = _("1 − cosine") if alone else _("Answers, bits")
    data_table.show(
        {
            text: [one.passage.text for one in found],
            maps: [100 * one.maps for one in found],
            **({answers: [one.answers for one in found]} if found[0].answers is not None else {}),
            _("Most in"): [_("layer {layer}, head {head}", layer=one.most[1], head=one.most[2]) for one in found],
        },
        hide_index=True,
        height=ROW * (1 + min(len(found), MOST_ROWS)) + 2,
        on_select=take,
        selection_mode="single-row",
        key=KEY,
        column_config={
            text: st.column_config.TextColumn(width=TEXT),
            maps: st.column_config.NumberColumn(format="%.2g%%"),
            answers: st.column_config.NumberColumn(format="%.2g"),
        },
    )
    kinds = {kind: np.nanmean([one.heads[kind] for one in found], axis=0) for kind in found[0].heads}
    every = np.concatenate([one.ravel() for one in kinds.values()])
    show_note(
        "Of {n} short texts, those on which the maps of all heads are furthest apart: the share of their attention "
        "that goes to other keys. A click shows a text, and its head that moved most. On all of them together {far} "
        "of {total} heads turn more than a tenth of their attention elsewhere.",
        n=len(found),
        far=int((every > 0.1).sum()),
        total=every.size,
    )
