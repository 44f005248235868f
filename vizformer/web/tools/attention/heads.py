"""All heads of one kind of attention, in the picture that the view asks for: a map, lines, or the text itself."""

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.tools.attention import aids, over_texts
from vizformer.web.tools.attention.effective_weights import draw_effective
from vizformer.web.tools.attention.head_lines import as_lines
from vizformer.web.tools.attention.head_maps import as_map, as_one_map
from vizformer.web.tools.attention.head_text import as_text
from vizformer.web.tools.attention.heads_of_kind import Heads
from vizformer.web.tools.attention.score_reasons import draw_reasons
from vizformer.web.widgets import row_names, telling
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _


@laboratory
def draw_heads(subject: Subject) -> None:
    kind = state.view().kind
    queries, keys = (subject.trace.tokens[stack] for stack in labels.stacks(kind))
    config = subject.config
    n_layers = config.layers_of(kind)
    state.fit(layer=n_layers, head=config.most_heads, query=len(queries), key=len(keys))
    shape = (n_layers, config.most_heads, len(queries), len(keys))
    beside = aids.choose(subject, kind, telling.open_on_a_head(subject, kind))
    here = Heads(subject, kind, shape, queries, keys)
    if state.view().picture == "text":
        as_text(here)
    elif state.view().over != "one" and aids.fits(subject, kind):
        as_one_map(here)
    elif state.view().picture == "lines":
        as_lines(here)
    else:
        as_map(here)
    with beside:
        over_texts.tell(here)
    view = state.view()
    row_names.caption(subject, kind, view.query_of(queries))
    there = "→ " + _(
        "Every number of head {head} in layer {layer}, for query {query}, step by step",
        head=view.head,
        layer=view.layer,
        query=view.query_of(queries),
    )
    if presses.button(there, type="tertiary", key="attention.steps"):
        state.keep_suggested()
        state.update(part="arithmetic")  # of the lesson, which begins with another part
        st.switch_page("pages/learn/qkv.py")
    draw_reasons(here)
    draw_effective(here)
