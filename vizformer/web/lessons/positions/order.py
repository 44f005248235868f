"""A laboratory of the lesson Positions: the tokens in another order, and which output rows change."""

from typing import Literal

import streamlit as st

from vizformer.analysis import positions
from vizformer.analysis.positions import Shuffled
from vizformer.components import matrix
from vizformer.options import Positions
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.lessons.positions.sinusoid import SCHEMES, small, words_only
from vizformer.web.link import state
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("positions", "shuffle")
EXAMPLES = ("我爱中国", "国中爱我", "dog bites man")
Order = Literal["reverse", "random"]
SHOWN = 5  # numbers of a row
ORDERS: tuple[Order, ...] = ("reverse", "random")


@cached
def shuffled(subject: Subject, scheme: Positions, causal: bool, order: Order, seed: int = 0) -> Shuffled:
    """The outputs of a small untrained model for the words of the text, and for them in another order."""
    ids = [token.id for token in words_only(subject)]
    model = small(scheme, subject.config.input_vocab_size, causal)
    return positions.shuffle(model, ids, positions.other_order(len(ids), order, seed))


@lab.draws
def draw_word_order(subject: Subject) -> None:
    tokens = words_only(subject)
    lesson.ask(word_order_question(subject))
    with controls():
        scheme = lab.buttons("scheme", SCHEMES, "sinusoidal")
        mask = lab.buttons("mask", ("both", "causal"))
        order = lab.buttons("order", ORDERS)
        seed = lab.slider("seed", 0, 20, 1) if order == "random" else 0
        _examples(subject)
    if len(tokens) < 2:
        st.info(lab.text("alone"))
        return
    found, texts = shuffled(subject, scheme, mask == "causal", order, seed), labels.texts(tokens)
    mixed = [texts[i] for i in found.order]
    before = matrix.to_html(found.before[:, :SHOWN], rows=texts, caption=lab.text("before"), digits=2, shown=10)
    after = matrix.to_html(found.after[:, :SHOWN], rows=mixed, caption=lab.text("after"), digits=2, shown=10)
    st.html(f'{matrix.style()}<div class="vf-row">{before}{after}</div>')
    st.html(matrix.to_html(found.moved, columns=texts, caption=lab.text("moved"), digits=3, shown=12))
    n, same = len(tokens), found.n_unmoved
    (st.success if same == n else st.info)(lab.text("same", same=same, n=n, sets=matrix.number(found.sets)))
    lab.note("model")


@lab.asks("shuffle")
def word_order_question(subject: Subject) -> lesson.Choice | None:
    texts = labels.texts(words_only(subject))
    n = len(texts)
    if n < 2:
        return None
    here = next((i for i in range(n) if texts[n - 1 - i] != texts[i]), 0)  # another one comes to stand there
    there = n - 1 - here
    moved = matrix.number(shuffled(subject, "none", False, "reverse").moved[here])
    values = {"token": texts[here], "other": texts[there], "here": here, "there": there, "difference": moved}
    choices = ("new", "same", "other")[: 3 if texts[there] != texts[here] else 2]
    return lab.choice("shuffle", choices, "same", subject.text, **values)


def _examples(subject: Subject) -> None:
    """Short sentences whose order matters, to be taken."""
    with st.popover(lab.text("examples")):
        for text in (text for text in EXAMPLES if model_cache.reads(subject.model, text)):
            if presses.button(text, key=f"positions.example.{text}"):
                state.update(text=text, target="")
                st.rerun()  # the whole page: the sentence stands above
